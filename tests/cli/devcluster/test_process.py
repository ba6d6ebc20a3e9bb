"""`bin/pulsar devcluster` as a person uses it: a client goes on while members are killed, and nothing is left behind."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.deployment.compose_cluster import free_network
from tests.clients.python_client import names, publish, quiet_client, receive, until
from tests.metadata.zookeeper.zookeeper_server import keep_classpath, need_zookeeper
from tests.started_process import ROOT, StartedProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

PULSAR = str(ROOT / "bin" / "pulsar")


class Devcluster(StartedProcess):
    """On addresses that no other test has; the same ones at each start."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.network = free_network()

    def start(self, brokers: int, bookies: int) -> dict[str, int]:
        """The pids of the members."""
        keep_classpath(self.directory / "data" / "zookeeper")
        counts = ["--brokers", str(brokers), "--bookies", str(bookies)]
        where = ["--data", str(self.directory / "data"), "--json-ready", str(self.ready_file), "--network", self.network]
        self.launch_command([PULSAR, "devcluster", *counts, *where])
        self.written = self.until_ready_file()
        return {name: member["pid"] for name, member in self.written["members"].items()}

    def interrupt(self) -> int:
        return self._end(signal.SIGINT)

    def say(self, *words: str) -> tuple[int, str]:
        command = [PULSAR, "devcluster", "--data", str(self.directory / "data"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Devcluster]:
    need_zookeeper()
    with Devcluster(tmp_path) as process:
        yield process


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def goes_on(client: pulsar.Client, consumer: pulsar.Consumer, first: int) -> None:
    """Asserts that published messages are received, in order; a broker that was killed may let some come again."""
    publish(client, "t", 20, first=first)
    got: dict[str, None] = {}
    while f"m{first + 19}" not in got:
        got.update(dict.fromkeys(receive(consumer, 1)))
    assert [name for name in got if int(name[1:]) >= first] == names(first, 20)


def states(cluster: Devcluster) -> dict[str, str]:
    code, status = cluster.say("--status")
    assert code == 0
    return {words[0]: words[1] for words in map(str.split, status.splitlines()[1:])}


def test_members_are_killed_and_restarted_and_a_client_goes_on(cluster: Devcluster) -> None:
    pids = cluster.start(brokers=2, bookies=3)
    assert set(pids) == {"zookeeper", "bookie-1", "bookie-2", "bookie-3", "broker-1", "broker-2"}
    client = quiet_client(cluster.written["serviceUrl"])
    try:
        consumer = client.subscribe("t", "s")
        goes_on(client, consumer, 0)
        assert cluster.say("--kill", "broker-1") == (0, "broker-1 is killed\n")
        assert cluster.say("--kill", "broker-1") == (1, "interpulse devcluster: broker-1 does not run\n")
        goes_on(client, consumer, 20)
        os.kill(pids["bookie-2"], signal.SIGKILL)
        until(lambda: "bookie-2   | ENDED BY ITSELF, killed by SIGKILL" in cluster.log.read_text())
        assert states(cluster) == dict.fromkeys(pids, "ready") | {"broker-1": "down", "bookie-2": "down"}
        goes_on(client, consumer, 40)
        for name in ("broker-1", "bookie-2"):
            assert cluster.say("--restart", name)[1].startswith(f"{name} is ready, pid ")
        goes_on(client, consumer, 60)
        assert cluster.say("--kill", "brokre-1") == (1, "interpulse devcluster: there is no brokre-1 here; is it broker-1?\n")
        code, said = cluster.say()
        assert code == 1
        assert "a devcluster runs on" in said
    finally:
        client.close()
    now = [int(line.split()[2]) for line in cluster.say("--status")[1].splitlines()[1:]]
    assert cluster.interrupt() == 0, cluster.log.read_text()
    assert not any(map(runs, [*pids.values(), *now]))
    told = cluster.log.read_text()
    assert told.count("exit code 0") == 6, told
    assert "Traceback" not in told


def test_nothing_is_left_of_a_devcluster_that_is_killed(cluster: Devcluster) -> None:
    pids = cluster.start(brokers=1, bookies=1)
    cluster.kill()
    until(lambda: not any(map(runs, pids.values())))


def test_without_zookeeper_nobody_is_waited_for(cluster: Devcluster) -> None:
    pids = cluster.start(brokers=1, bookies=1)
    assert cluster.say("--kill", "zookeeper") == (0, "zookeeper is killed\n")
    assert cluster.interrupt() == 0, cluster.log.read_text()
    assert not any(map(runs, pids.values()))
    assert "does not stop" not in cluster.log.read_text()


def in_copies(web_url: str, copies: int) -> None:
    """Topics of public/default are written to so many bookies from now on."""
    quorums = {"bookkeeperEnsemble": copies, "bookkeeperWriteQuorum": copies, "bookkeeperAckQuorum": copies}
    body = json.dumps({**quorums, "managedLedgerMaxMarkDeleteRate": 1.0}).encode()
    headers = {"Content-Type": "application/json"}
    url = f"{web_url}/admin/v2/namespaces/public/default/persistence"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers, method="POST"), timeout=30) as answer:
        assert answer.status == 204


def by_hand(cluster: Devcluster) -> list[str]:
    """The command of docs/bookies.md, for an address and a directory of its own."""
    (line,) = [
        text for text in (ROOT / "docs" / "bookies.md").read_text().splitlines() if text.startswith("    bin/pulsar bookie")
    ]
    zookeeper = cluster.written["metadataStoreUrl"].removeprefix("zk:").removesuffix(":2181")
    places = {
        "ZOOKEEPER": zookeeper,
        "ADDRESS": zookeeper.rpartition(".")[0] + ".199",
        "DIRECTORY": str(cluster.directory / "own"),
    }
    words = line.split()[1:]
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    return [PULSAR, *words]


def test_a_bookie_is_added_to_a_cluster_that_runs_and_stays(cluster: Devcluster, tmp_path: Path) -> None:
    cluster.start(brokers=1, bookies=1)
    web_url = cluster.written["webServiceUrl"]
    client = quiet_client(cluster.written["serviceUrl"])
    try:
        assert cluster.say("--add-bookie")[1].startswith("bookie-2 is ready, pid ")
        in_copies(web_url, 2)
        publish(client, "two", 5)
        own = StartedProcess(tmp_path / "by-hand")
        with own:
            own.launch_command([*by_hand(cluster), "--json-ready", str(own.ready_file)])
            assert own.until_ready_file()["bookieId"].endswith(".199:3181")
            in_copies(web_url, 3)
            publish(client, "three", 5)
            assert own.stop() == 0, own.log.read_text()
    finally:
        client.close()
    assert cluster.interrupt() == 0, cluster.log.read_text()
    assert set(cluster.start(brokers=1, bookies=1)) == {"zookeeper", "bookie-1", "bookie-2", "broker-1"}
    assert states(cluster) == dict.fromkeys(("zookeeper", "bookie-1", "bookie-2", "broker-1"), "ready")
    assert cluster.interrupt() == 0, cluster.log.read_text()
