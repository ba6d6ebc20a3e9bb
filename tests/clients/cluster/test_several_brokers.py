"""`bin/pulsar broker --processes 2` with real clients: kills, restarts, stops, metrics and admin at the port in front."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.cluster_admin import get, owner_of, receive_all
from tests.clients.python_client import names, quiet_client, until
from tests.clients.several_processes import SeveralBrokers, runs
from tests.prometheus_text import families
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

COUNT = 200
TAKEN_OVER_SECONDS_MAX = 8.0
"""Less than the session of ten seconds that a killed broker would have had."""


@pytest.fixture
def brokers(tmp_path: Path, storage: str) -> Iterator[SeveralBrokers]:
    """With the default session of ten seconds."""
    with SeveralBrokers(tmp_path, storage, 2, "loadBalancerEnabled=false") as several:
        yield several.start()


def topics_of_both(brokers: SeveralBrokers, topic: str) -> dict[str, str]:
    """A topic of each process, by the URL of its own port."""
    found = {owner_of(name, brokers): name for name in (f"{topic}-{index}" for index in range(16))}
    assert set(found) == {f"pulsar://127.0.0.1:{brokers.port + number}" for number in (1, 2)}
    return found


def confirmed_sends(producer: pulsar.Producer, count: int, prefix: str = "m") -> set[str]:
    """Acknowledged messages, added to the set as they are."""
    confirmed: set[str] = set()
    for index in range(count):
        text = f"{prefix}{index}"

        def on_sent(result: pulsar.Result, _message_id: pulsar.MessageId, text: str = text) -> None:
            if result == pulsar.Result.Ok:
                confirmed.add(text)

        producer.send_async(text.encode(), on_sent)
    return confirmed


def test_topics_of_a_killed_process_are_served_by_the_other_and_the_killed_one_comes_back(
    brokers: SeveralBrokers, topic: str
) -> None:
    owned, before = topics_of_both(brokers, topic), brokers.pids()
    name = owned[f"pulsar://127.0.0.1:{brokers.port + 2}"]
    client = quiet_client(brokers.ready.broker_url)
    try:
        consumer = client.subscribe(name, "s")
        producer = client.create_producer(name, block_if_queue_full=True, send_timeout_millis=0, batching_enabled=False)
        confirmed = confirmed_sends(producer, COUNT // 2)
        os.kill(before[2], signal.SIGKILL)
        killed_at = time.monotonic()
        later = confirmed_sends(producer, COUNT // 2, "n")
        producer.flush()
        assert time.monotonic() - killed_at < TAKEN_OVER_SECONDS_MAX
        assert (len(confirmed), len(later)) == (COUNT // 2, COUNT // 2)
        wanted = [*names(0, COUNT // 2), *(f"n{index}" for index in range(COUNT // 2))]
        assert receive_all(consumer, set(wanted)) == wanted
    finally:
        client.close()
    until(lambda: brokers.pids()[2] != before[2])
    assert brokers.pids()[1] == before[1]
    assert sorted(get(brokers, "/admin/v2/brokers")) == [f"127.0.0.1:{brokers.web_port + number}" for number in (1, 2)]
    assert brokers.stop() == 0


def test_nothing_is_left_when_the_supervisor_is_killed_and_the_next_one_starts(brokers: SeveralBrokers) -> None:
    before = brokers.pids()
    brokers.kill()
    until(lambda: not any(runs(pid) for pid in before.values()))
    assert "the supervisor is gone: this process stops" in brokers.log.read_text()
    brokers.start()
    assert set(brokers.pids().values()).isdisjoint(before.values())


def test_a_restart_in_turn_and_then_a_stop_cost_a_client_nothing(brokers: SeveralBrokers, topic: str) -> None:
    owned, before = topics_of_both(brokers, topic), brokers.pids()
    client = quiet_client(brokers.ready.broker_url)
    try:
        consumers = [client.subscribe(name, "s") for name in owned.values()]
        producers = [client.create_producer(name, send_timeout_millis=60_000) for name in owned.values()]
        brokers.hang_up()
        sent = 0
        while not all(pid != before[number] for number, pid in brokers.pids().items()):
            for producer in producers:
                producer.send(f"m{sent}".encode())
            sent += 1
        for consumer in consumers:
            assert receive_all(consumer, set(names(0, sent))) == names(0, sent)
    finally:
        client.close()
    assert brokers.stop() == 0
    log = brokers.log.read_text()
    assert "every process was restarted" in log
    assert "level=error" not in log


def test_the_port_in_front_has_the_metrics_of_all_and_takes_any_admin_request(brokers: SeveralBrokers, topic: str) -> None:
    owned = topics_of_both(brokers, topic)
    client = quiet_client(brokers.ready.broker_url)
    try:
        for name in owned.values():
            client.create_producer(name).send(b"m")
        with urllib.request.urlopen(f"{brokers.ready.web_url}/metrics", timeout=60) as answer:
            found = families(answer.read().decode())
        assert found["supervised_process_up"].samples == {
            f'supervised_process_up{{process="{number}"}}': 1 for number in (1, 2)
        }
        shown = [{**each, "pid": 0} for each in get(brokers, "/admin/v2/brokers/processes")]
        assert shown == [{"number": number, "phase": "serving", "pid": 0, "starts": 1} for number in (1, 2)]
        published = found["pulsar_in_messages_total"].samples
        for url, name in owned.items():
            number = int(url.rpartition(":")[2]) - brokers.port
            label = f'pulsar_in_messages_total{{process="{number}",cluster="test",namespace="public/default",topic="{name}"}}'
            assert published[label] == 1
        for name in owned.values():
            assert get(brokers, f"/admin/v2/{name.replace('://', '/')}/stats")["msgInCounter"] == 1
            words = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", brokers.ready.web_url, "topics", "stats", name]
            told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
            assert '"msgInCounter"' in told
    finally:
        client.close()


def test_a_second_supervisor_on_the_same_ports_is_refused_by_the_key_and_leaves_the_first_alone(
    brokers: SeveralBrokers, tmp_path: Path
) -> None:
    before = brokers.pids()
    words = [*brokers.command[:-1], str(tmp_path / "other.json")]
    second = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{brokers.port} in front of all processes" in second.stderr
    assert "set brokerServicePort to another port" in second.stderr
    assert brokers.pids() == before
    assert all(runs(pid) for pid in before.values())


def test_a_start_that_fails_ends_with_an_exit_code_and_says_why_once(tmp_path: Path, storage: str) -> None:
    brokers = SeveralBrokers(tmp_path, storage, 2, "managedLedgerDefaultEnsembleSize=50")
    ended = subprocess.run(brokers.command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 1
    assert ended.stderr.count("managedLedgerDefaultEnsembleSize=50") == 1
    assert "a process ended before all were ready" in ended.stderr


def test_a_standalone_is_refused_with_the_remedy(tmp_path: Path) -> None:
    words = [str(ROOT / "bin" / "pulsar"), "standalone", "--data-dir", str(tmp_path), "--processes", "2"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "interpulse devcluster --brokers N" in ended.stderr
    assert list(tmp_path.iterdir()) == []
