"""bin/pulsar-client and bin/pulsar-perf go on while their server is killed (-9) and started again, and over unloads.

Real processes. Nothing here waits for luck: a fault comes when as much was produced or consumed as the tool has printed.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.cluster_admin import by_owner, started_brokers, until_alone
from tests.clients.server_process import Ready, ServerProcess

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 150.0
COUNT = 300

pytestmark = pytest.mark.clients


@contextmanager
def started(name: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    command = [str(ROOT / "bin" / name), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[str]", code: int = 0) -> tuple[list[str], str]:
    """The lines that were not read yet, and stderr, to which a tool writes little."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    assert process.wait(SECONDS_MAX) == code, err
    return out.splitlines(), err


def admin(ready: Ready, *words: str) -> None:
    command = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", ready.web_url, *words]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX)


def kill_and_start(server: ServerProcess) -> None:
    server.kill()
    server.start()


def unload(server: ServerProcess, *what: str) -> Callable[[], None]:
    def act() -> None:
        assert server.ready is not None
        admin(server.ready, *what)

    return act


@pytest.mark.parametrize("fault", ["kill -9", "unload topic", "unload namespace"])
def test_consume_prints_each_message_once_while_its_server_goes_away(own_server: ServerProcess, topic: str, fault: str) -> None:
    ready = own_server.ready
    assert ready is not None
    faults: dict[str, Callable[[], None]] = {
        "kill -9": lambda: kill_and_start(own_server),
        "unload topic": unload(own_server, "topics", "unload", topic),
        "unload namespace": unload(own_server, "namespaces", "unload", "public/default"),
    }
    url = ("--url", ready.broker_url)
    produced = ["produce", topic, "-m", ",".join(f"m{number}" for number in range(COUNT))]
    words = ["consume", topic, "-s", "s", "-p", "Earliest", "-n", str(2 * COUNT), "-q", "50", "--json"]
    with started("pulsar-client", *url, *words) as consumer:
        with started("pulsar-client", *url, *produced) as producer:
            assert ended(producer)[0] == [f"{COUNT} messages successfully produced"]
        assert consumer.stdout is not None
        first = [consumer.stdout.readline() for _ in range(COUNT // 2)]  # it is in the middle of them
        faults[fault]()
        with started("pulsar-client", *url, *produced) as producer:
            ended(producer)
        rest, err = ended(consumer)
    found = [json.loads(line)["payload"] for line in [*first, *rest]]
    assert found == [f"m{number}" for number in range(COUNT)] * 2
    assert "connecting again" in err
    assert "connected again after" in err


def test_perf_produces_and_consumes_over_a_killed_server(own_server: ServerProcess, topic: str) -> None:
    ready = own_server.ready
    assert ready is not None
    url = ("-u", ready.broker_url, "--json", "-i", "1")
    with started("pulsar-perf", "consume", topic, *url, "-sp", "Earliest", "-m", "8000") as consumer:
        assert consumer.stderr is not None
        with started("pulsar-perf", "produce", topic, *url, "-m", "8000", "-r", "2000", "-s", "50", "-db") as producer:
            assert producer.stderr is not None
            assert "Throughput produced" in producer.stderr.readline()
            kill_and_start(own_server)
            figures = json.loads(ended(producer)[0][-1])
        received = json.loads(ended(consumer)[0][-1])
    assert figures["messages"] == 8000
    assert figures["reconnected"] >= 1
    assert received["messages"] == 8000  # what was stored twice is in the topic, and is read by whoever comes next


def test_perf_transactions_go_on_over_a_killed_server(tmp_path: Path, topic: str) -> None:
    with ServerProcess(tmp_path, ("transactionCoordinatorEnabled=true",)) as server:
        ready = server.start()
        url = ("-u", ready.broker_url, "--json")
        with started("pulsar-perf", "produce", topic, *url, "-m", "400", "-r", "0") as producer:
            ended(producer)
        words = ["--topics-c", topic, "--topics-p", f"{topic}-out", "-ntxn", "200", "-nmc", "0", "-nmp", "2", "-i", "1"]
        with started("pulsar-perf", "transaction", *url, *words, "-txnRate", "50") as tool:
            assert tool.stderr is not None
            assert "Throughput transaction" in tool.stderr.readline()
            kill_and_start(server)
            lines, err = ended(tool)
        assert json.loads(lines[-1])["transactions"] == 200
        assert "connecting again" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_tool_with_its_summary(own_server: ServerProcess, topic: str, number: signal.Signals) -> None:
    ready = own_server.ready
    assert ready is not None
    with started("pulsar-client", "--url", ready.broker_url, "produce", topic, "-m", "a,b,c") as producer:
        ended(producer)
    words = ["consume", topic, "-s", "s", "-p", "Earliest", "-n", "0", "--json"]
    with started("pulsar-client", "--url", ready.broker_url, *words) as consumer:
        assert consumer.stdout is not None
        assert [json.loads(consumer.stdout.readline())["payload"] for _ in range(3)] == ["a", "b", "c"]
        consumer.send_signal(number)
        _, err = ended(consumer, 128 + number)
    assert err.splitlines()[-1] == "3 messages successfully consumed"
    assert "Traceback" not in err


@pytest.mark.timeout(240)
def test_consume_moves_to_the_broker_that_takes_over_from_one_that_is_killed(tmp_path: Path, storage: str, topic: str) -> None:
    with started_brokers(tmp_path, storage) as brokers:
        until_alone(brokers)
        for number, owner in enumerate(brokers):
            name = by_owner(brokers, f"{topic}-{number}")[owner.ready.broker_url]
            addresses = ",".join(each.ready.broker_url.partition("://")[2] for each in brokers)
            url = ("--url", f"pulsar://{addresses}")
            words = ["consume", name, "-s", "s", "-p", "Earliest", "-n", str(2 * COUNT), "--json"]
            produced = ["produce", name, "-m", ",".join(f"m{each}" for each in range(COUNT))]
            with started("pulsar-client", *url, *words) as consumer:
                with started("pulsar-client", *url, *produced) as producer:
                    ended(producer)
                assert consumer.stdout is not None
                first = [consumer.stdout.readline() for _ in range(COUNT // 2)]
                owner.kill()  # each in its turn, so that the leader is among them
                with started("pulsar-client", *url, *produced) as producer:
                    ended(producer)
                rest, err = ended(consumer)
            assert [json.loads(line)["payload"] for line in [*first, *rest]] == [f"m{each}" for each in range(COUNT)] * 2
            assert "connected again after" in err
            owner.start()
            until_alone(brokers)
