"""`bin/pulsar standalone` as a process: how it starts, what it says, how it ends."""

import json
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.raw_client import RawClient, send_frame
from cli.doctor.checks import machine as machine_checks
from cli.doctor.examination import CHECKS
from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT, DidNotStart
from tests.toolchain import run_tool
from wire.generated.pulsar_api_pb2 import CommandSubscribe

ENTRIES = 2000
"""A consumer that acknowledges nothing gets no more than maxUnackedMessagesPerConsumer, however fast the disk."""
TOPIC = "persistent://public/default/process"


def test_a_standalone_is_ready_under_its_urls_and_ends_cleanly_at_sigterm(tmp_path: Path) -> None:
    """On ports that the system chooses."""
    with ServerProcess(tmp_path) as server:
        server.ports = ("0", "0")
        ready = server.start()
        with urllib.request.urlopen(ready.web_url + "/admin/v2/brokers/health", timeout=60) as answer:
            assert answer.read() == b"ok"
        with closing(RawClient(ready.broker_url)) as client:
            client.producer(TOPIC)
        assert json.loads((tmp_path / "ready.json").read_text())["pid"] == ready.pid
        assert server.stop() == 0
    log = server.log.read_text()
    assert f"what=ready brokerServiceUrl={ready.broker_url} webServiceUrl={ready.web_url}" in log
    assert "what=stopped" in log
    assert "level=error" not in log


def test_a_second_process_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as first:
        first.start()
        with pytest.raises(DidNotStart, match=r"exit code 1[\s\S]*is in use by another process"):
            ServerProcess(tmp_path).start()
        assert first.stop() == 0


def test_a_taken_port_is_told_by_its_number(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "a") as first:
        first.start()
        second = ServerProcess(tmp_path / "b")
        second.ports = (first.ports[0], "0")
        with pytest.raises(DidNotStart, match=rf"exit code 1[\s\S]*{first.ports[0]}"):
            second.start()
        assert first.stop() == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("brokerServisePort=1",), "did you mean brokerServicePort?"),
        (("brokerServicePort=x",), "brokerServicePort=x: expected a whole number"),
        (("webServicePort=70000",), "webServicePort: expected 0 to 65535"),
        (("functionsWorkerEnabled=true",), "functionsWorkerEnabled=true: there are no functions"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(tmp_path: Path, settings: tuple[str, ...], says: str) -> None:
    server = ServerProcess(tmp_path, settings)
    with pytest.raises(DidNotStart, match="exit code 1"):
        server.start()
    assert says in server.log.read_text()
    assert "Traceback" not in server.log.read_text()


def test_a_setting_of_apaches_that_does_nothing_here_is_said_to_do_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, ("numIOThreads=9",)) as server:
        server.start()
    assert 'what="settings without effect here" keys=numIOThreads' in server.log.read_text()


def test_published_entries_survive_a_clean_stop_and_kill_9(tmp_path: Path) -> None:
    one = send_frame(100, 1)
    with ServerProcess(tmp_path) as server:
        with closing(RawClient(server.start().broker_url)) as client:
            client.subscribe(TOPIC, "s", CommandSubscribe.Shared)
            client.producer(TOPIC)
            count = client.publish(one, 100, 10.0, ENTRIES)
            assert server.stop() == 0
        with closing(RawClient(server.start().broker_url)) as client:
            client.producer(TOPIC)
            count += client.publish(one, 100, 10.0, ENTRIES)
            server.kill()
        with closing(RawClient(server.start().broker_url)) as client:
            client.subscribe(TOPIC, "s", CommandSubscribe.Shared)
            assert client.consume(count, 1000, 1) > 100 * count
        assert server.stop() == 0


def test_help_names_every_option() -> None:
    shown = run_tool([str(ROOT / "bin" / "pulsar"), "standalone", "--help"], ROOT, 60)
    for option in ("--data-dir", "--config", "--set", "--json-ready"):
        assert option in shown


def test_the_doctor_has_a_verdict_on_a_server_that_runs_and_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    """Findings about the machine are the machine's affair."""
    with ServerProcess(tmp_path) as server:
        ready = server.start()
        with closing(RawClient(ready.broker_url)) as client:
            client.subscribe(TOPIC, "s", CommandSubscribe.Shared)
            words = ("--admin-url", ready.web_url, "--data-dir", str(tmp_path / "data"), "--json")
            doctor = ("sh", "-c", '"$@"; echo "exit code $?"', "sh", str(ROOT / "bin" / "pulsar"), "doctor", *words)
            told, _, code = run_tool(doctor, ROOT, 60).rpartition("exit code ")
        assert server.stop() == 0
    levels = {each["id"]: each["level"] for each in json.loads(told)["checks"]}
    assert set(levels) == {check.id for check in CHECKS}
    assert int(code) == int("fail" in levels.values())
    of_the_machine = {check.id for check in machine_checks.CHECKS} | {"disk-free", "disk-inodes"}
    assert {level for name, level in levels.items() if name not in of_the_machine} <= {"ok", "skipped"}
    asked = ("server-answers", "broker-health", "leader", "bookies-enough", "stuck-subscriptions", "cookies-present")
    assert {levels[name] for name in asked} == {"ok"}
