"""The shell's commands on a cluster that runs: ZooKeeper and three bookies, as operators have them."""

import asyncio
import io
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError, LedgerWriter
from bookkeeper.network_bookies import NetworkBookies
from bookkeeper.repair.underreplication_store import UnderreplicationStore
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.underreplication import encode_lock, lock_path
from cli.bookkeeper_shell.__main__ import main
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.store import ZooKeeperStore
from ports.clock import RealClock
from ports.rng import RealRng
from tests.bookie.runs import sealed
from tests.clients.bookie_process import BookieProcess
from tests.metadata.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.started_process import ROOT, free_port
from wire.run import EntryBatch

pytestmark = pytest.mark.timeout(300)

T = TypeVar("T")
SETTLE_SECONDS_MAX = 60.0
TICK_MS = 1500
"""Twenty of them are the longest session: a machine that is busy must not lose a bookie."""


class Result(NamedTuple):
    """Of one command."""

    code: int
    out: str
    err: str


class Cluster(NamedTuple):
    """What runs."""

    servers: str
    bookies: list[BookieProcess]
    web_port: int

    @property
    def uri(self) -> str:
        return f"zk+hierarchical://{self.servers}/ledgers"


Shell = Callable[..., Result]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_zookeeper()
    directory, web_port = tmp_path_factory.mktemp("cluster"), free_port()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper", f"tickTime={TICK_MS}")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        web = ("httpServerEnabled=true", "httpServerHost=127.0.0.1", f"httpServerPort={web_port}")
        bookies = []
        for number in range(3):
            process = BookieProcess(directory / str(number), uri, "zkTimeout=30000", *(web if number == 0 else ()))
            bookies.append(running.enter_context(process).start())
        yield Cluster(zookeeper.servers, bookies, web_port)


@pytest.fixture
def shell(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs a command, as `bin/bookkeeper shell` does in a process of its own."""

    def run(*words: str, uri: str = cluster.uri, sets: tuple[str, ...] = ()) -> Result:
        capsys.readouterr()
        own = [word for each in (f"metadataServiceUri={uri}", *sets) for word in ("--set", each)]
        code = main(["shell", *own, *words])
        written = capsys.readouterr()
        return Result(code, written.out, written.err)

    return run


async def with_store(servers: str, work: Callable[[ZooKeeperStore], Awaitable[T]]) -> T:
    store = await ZooKeeperStore.open(partial(KazooSession, servers, 30.0), 60.0, servers)
    try:
        return await work(store)
    finally:
        await store.close()


def on_store(cluster: Cluster, work: Callable[[ZooKeeperStore], Awaitable[T]]) -> T:
    return asyncio.run(with_store(cluster.servers, work))


async def with_ledgers(
    store: ZooKeeperStore, work: Callable[[BookKeeper], Awaitable[T]], quorum: int = 2, password: str = ""
) -> T:
    bookies = NetworkBookies(store, 60.0)
    settings = BookKeeperSettings(quorum, quorum, quorum, "CRC32", password, bookkeeper_client_rackaware_policy_enabled=False)
    ledgers = BookKeeper(bookies, store, settings, RealRng())
    try:
        await ledgers.initialise()
        await bookies.open()
        return await work(ledgers)
    finally:
        await bookies.close()
        await ledgers.close()


def a_batch(entry_id: int) -> EntryBatch:
    run = sealed(0, entry_id, 1, 30)
    return EntryBatch(bytearray(run.buffer), run.offsets, run.header_bytes, 1)


def payload(entry_id: int) -> bytes:
    return bytes(sealed(0, entry_id, 1, 30).payload(entry_id))


async def write(ledgers: BookKeeper, count: int) -> LedgerWriter:
    writer = await ledgers.create({"application": b"test"})
    for entry_id in range(count):
        await writer.append(a_batch(entry_id))
    return writer


def a_ledger(cluster: Cluster, count: int = 5, quorum: int = 2, password: str = "") -> int:
    """A closed one."""

    async def work(ledgers: BookKeeper) -> int:
        writer = await write(ledgers, count)
        await writer.close()
        return writer.ledger_id

    return on_store(cluster, lambda store: with_ledgers(store, work, quorum, password))


def entry_ids(result: Result) -> list[int]:
    return [int(entry_id) for entry_id in re.findall(r"Eid=(\d+)", result.out)]


def until(is_so: Callable[[], bool]) -> None:
    """Each call of `is_so` runs a command, which takes long enough."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline


# Bookies


def test_bookies_are_listed_in_apaches_form(cluster: Cluster, shell: Shell) -> None:
    lines = {f"BookieID:{each.bookie_id}, IP:127.0.0.1, Port:{each.port}, Hostname:" for each in cluster.bookies}
    for option, title in (("-rw", "ReadWrite Bookies :"), ("--readwrite", "ReadWrite Bookies :"), ("-a", "All Bookies :")):
        result = shell("listbookies", option, "-h")
        first, *rest = result.out.splitlines()
        assert (result.code, first, len(rest)) == (0, title, 3)
        assert all(any(each.startswith(line) for line in lines) for each in rest)


def test_a_bookie_that_is_made_read_only_is_listed_so(cluster: Cluster, shell: Shell) -> None:
    result = shell("listbookies", "-ro")
    assert (result.code, result.err) == (0, "No bookie exists!\n")

    def make_read_only(wanted: bool) -> None:
        url = f"http://127.0.0.1:{cluster.web_port}/api/v1/bookie/state/readonly"
        body = json.dumps({"readOnly": wanted}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=30) as answer:
            assert answer.status == 200

    name = f"BookieID:{cluster.bookies[0].bookie_id},"
    make_read_only(True)
    until(lambda: name in shell("listbookies", "-ro").out)
    assert name not in shell("listbookies", "-rw").out
    make_read_only(False)
    until(lambda: name in shell("listbookies", "-rw").out)


def test_room_endpoints_and_counts_of_the_cluster(cluster: Cluster, shell: Shell) -> None:
    info = shell("bookieinfo")
    assert info.code == 0
    assert len(re.findall(r"^BookieID:.*: \tFree: [1-9]\d*\(.*\)\tTotal: [1-9]\d*\(.*\)$", info.out, re.M)) == 3
    assert "Total free disk space in the cluster:\t" in info.out
    bookie = cluster.bookies[1]
    endpoint = shell("endpointinfo", "-b", bookie.bookie_id)
    assert f"Address: 127.0.0.1 : {bookie.port}" in endpoint.out
    unknown = shell("endpointinfo", "--bookieid", "nobody:1")
    assert (unknown.code, "Bookie nobody:1 does not exist" in unknown.err) == (255, True)
    title, _, text = shell("clusterinfo").out.partition("\n")
    counts = json.loads(text)
    assert (title, counts["writableBookiesCount"], counts["totalBookiesCount"]) == ("--------- Cluster Info ---------", 3, 3)


def test_a_shell_in_a_process_of_its_own_finds_the_instance_that_its_configuration_names(
    cluster: Cluster, shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "bk.conf"
    file.write_text(f"metadataServiceUri={cluster.uri}\n")
    done = subprocess.run(
        [ROOT / "bin" / "bookkeeper", "shell", "-conf", file, "whatisinstanceid"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "BOOKIE_CONF": ""},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"Metadata Service Uri: {re.escape(cluster.uri)} InstanceId: [0-9a-f-]{{36}}\n", done.stdout)
    assert shell("whatisinstanceid").out == done.stdout


# Ledgers


def test_metadata_is_shown_dumped_and_put_back(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    ledger_id, file = a_ledger(cluster, 5, password="pw"), str(tmp_path / "metadata")
    shown = shell("ledgermetadata", "-l", str(ledger_id))
    assert shown.code == 0
    assert shown.out.startswith(f"ledgerID: {ledger_id}\nLedgerMetadata{{formatVersion=3, ensembleSize=2, writeQuorumSize=2,")
    assert "state=CLOSED, length=150, lastEntryId=4, digestType=CRC32, password=base64:cHc=, ensembles={0=[" in shown.out
    assert shown.out.endswith("customMetadata={application=base64:dGVzdA==}}\n")
    assert shell("ledgermetadata", "-ledgerid", str(ledger_id), "-dumptofile", file).code == 0
    refused = shell("ledgermetadata", "-l", str(ledger_id), "-restorefromfile", file)
    assert (refused.code, "-update replaces" in refused.err) == (255, True)
    assert shell("ledgermetadata", "-l", str(ledger_id), "-restorefromfile", file, "-update").code == 0
    assert shell("deleteledger", "-l", str(ledger_id), "-force").code == 0
    gone = shell("ledgermetadata", "-l", str(ledger_id))
    assert (gone.code, f"ledger {ledger_id} is not there" in gone.err) == (255, True)
    assert shell("ledgermetadata", "-l", str(ledger_id), "-restorefromfile", file).code == 0
    assert shell("ledgermetadata", "-l", str(ledger_id)).out == shown.out
    (tmp_path / "other").write_text("nothing of that kind")
    wrong = shell("ledgermetadata", "-l", "5", "-restorefromfile", str(tmp_path / "other"))
    assert (wrong.code, "holds no ledger metadata" in wrong.err) == (255, True)


def test_ledgers_are_listed_all_or_those_of_a_bookie(cluster: Cluster, shell: Shell) -> None:
    ledger_id = a_ledger(cluster)
    assert f"ledgerID: {ledger_id}\n" in shell("listledgers").out
    assert f"ledgerID: {ledger_id:x}\nLedgerMetadata{{" in main_hex(shell)
    metadata = shell("ledgermetadata", "-l", str(ledger_id)).out
    for bookie in cluster.bookies:
        listed = shell("listledgers", "-bookieid", bookie.bookie_id)
        assert (f"ledgerID: {ledger_id}\n" in listed.out) == (bookie.bookie_id in metadata)


def main_hex(shell: Shell) -> str:
    return shell("-ledgeridformat", "hex", "listledgers", "-m").out


def test_entries_are_read_from_all_bookies_and_from_one(cluster: Cluster, shell: Shell) -> None:
    ledger_id = a_ledger(cluster, 5, quorum=2, password="secret")
    read = shell("readledger", "-l", str(ledger_id))
    assert (read.code, entry_ids(read)) == (0, [0, 1, 2, 3, 4])
    assert read.out.splitlines()[0] == f"--------- Lid={ledger_id}, Eid=0, EntrySize=30 ---------"
    some = shell("-entryformat", "hex", "readledger", "-m", "-l", str(ledger_id), "-fe", "2", "-le", "3")
    assert (some.code, entry_ids(some)) == (0, [2, 3])
    assert payload(2)[:16].hex(" ") in some.out
    beyond = shell("readledger", "-l", str(ledger_id), "-fe", "3", "-le", "9")
    assert (beyond.code, entry_ids(beyond), f"ledger {ledger_id} has no entry 5" in beyond.err) == (255, [3, 4], True)
    metadata = shell("ledgermetadata", "-l", str(ledger_id)).out
    for bookie in cluster.bookies:
        one = shell("readledger", "-l", str(ledger_id), "-b", bookie.bookie_id, "-fe", "0", "-le", "4")
        if bookie.bookie_id in metadata:
            assert (one.code, entry_ids(one)) == (0, [0, 1, 2, 3, 4])
        else:
            assert (one.code, f"{bookie.bookie_id} has no entry 0" in one.err) == (255, True)


def test_reading_leaves_a_writer_alone_unless_recovery_is_forced(cluster: Cluster, shell: Shell) -> None:
    async def work(ledgers: BookKeeper) -> None:
        writer = await write(ledgers, 3)
        words = ("readledger", "-l", str(writer.ledger_id))
        plain = await asyncio.to_thread(shell, *words)
        assert (plain.code, entry_ids(plain)) == (0, [0, 1, 2])
        await writer.append(a_batch(3))
        forced = await asyncio.to_thread(shell, *words, "-force-recovery")
        assert (forced.code, entry_ids(forced)) == (0, [0, 1, 2, 3])
        assert "state=CLOSED" in (await asyncio.to_thread(shell, "ledgermetadata", "-l", str(writer.ledger_id))).out
        with pytest.raises(LedgerError):
            await writer.append(a_batch(4))

    on_store(cluster, lambda store: with_ledgers(store, work))


def test_deleting_a_ledger_asks_unless_forced(cluster: Cluster, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger_id = str(a_ledger(cluster))
    monkeypatch.setattr("sys.stdin", io.StringIO("perhaps\nn\n"))
    asked = shell("deleteledger", "-l", ledger_id)
    assert (asked.code, asked.out.count(f"Are your sure to delete Ledger : {ledger_id}? (Y or N)")) == (0, 2)
    assert shell("ledgermetadata", "-l", ledger_id).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("Y\n"))
    assert shell("deleteledger", "-l", ledger_id).code == 0
    assert shell("ledgermetadata", "-l", ledger_id).code == 255
    assert shell("deleteledger", "-l", ledger_id, "-f").code == 255


def test_a_trial_writes_reads_and_leaves_nothing(cluster: Cluster, shell: Shell) -> None:
    before = shell("listledgers").out
    trial = shell("simpletest", "-ensemble", "3", "-writeQuorum", "3", "-ackQuorum", "2", "-numEntries", "150")
    assert trial.code == 0
    assert re.search(r"^150 entries written to ledger \d+\. Last entry Id 149$", trial.out, re.M)
    too_few = shell("simpletest", "-e", "4")
    assert (too_few.code, "4 bookies" in too_few.err) == (255, True)
    sets = ("advertisedAddress=127.0.0.1", f"bookiePort={cluster.bookies[2].port}")
    sane = shell("bookiesanity", "-t", "30", sets=sets)
    assert (sane.code, "Bookie sanity test succeeded" in sane.out) == (0, True)
    away = shell("bookiesanity", sets=("advertisedAddress=127.0.0.1", "bookiePort=1"))
    assert (away.code, "127.0.0.1:1" in away.err) == (255, True)
    assert shell("listledgers").out == before


def test_a_bookies_name_is_replaced_in_ledgers_and_never_twice_in_one(cluster: Cluster, shell: Shell) -> None:
    ledger_id = str(a_ledger(cluster))
    old = [each.bookie_id for each in cluster.bookies if each.bookie_id in shell("ledgermetadata", "-l", ledger_id).out]
    active = shell("updateBookieInLedger", "-sb", old[0], "-db", "new:1")
    assert (active.code, "can't be active" in active.err) == (255, True)
    metadata_file = shell("ledgermetadata", "-l", ledger_id).out

    async def rename(store: ZooKeeperStore) -> None:
        """So that the ledger names a bookie that is stopped."""
        from bookkeeper.paths import ledger_path

        node = await store.get(ledger_path(int(ledger_id)))
        assert node is not None
        length = len(old[0])
        await store.put(ledger_path(int(ledger_id)), node.value.replace(old[0].encode(), b"gone".ljust(length, b"x")))

    on_store(cluster, rename)
    gone = "gone".ljust(len(old[0]), "x")
    both = shell("updateBookieInLedger", "-sb", gone, "-db", old[1])
    assert (both.code, "both have copies" in both.err) == (255, True)
    done = shell("updateBookieInLedger", "-sb", gone, "-db", old[0], "-s", "1000", "-v", "true")
    assert (done.code, done.out.splitlines()[-1]) == (0, "Number of ledgers updated=1")
    assert shell("ledgermetadata", "-l", ledger_id).out == metadata_file


# Cookies


def test_a_cookie_is_generated_made_shown_replaced_and_deleted(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    file, name = str(tmp_path / "cookie"), "cookie-test:3181"
    generated = shell("cookie_generate", "-j", "/j1", "-l", "/l1,/l2", "-o", file, name)
    assert (generated.code, generated.out) == (0, f"Successfully saved the generated cookie to {file}\n")
    instance = shell("whatisinstanceid").out.split()[-1]
    text = f'5\nbookieHost: "{name}"\njournalDir: "/j1"\nledgerDirs: "2\\t/l1\\t/l2"\ninstanceId: "{instance}"\n'
    assert Path(file).read_text() == text
    assert shell("cookie_update", "-cf", file, name).code == 255
    assert shell("cookie_create", "--cookie-file", file, name).code == 0
    again = shell("cookie_create", "-cf", file, name)
    assert (again.code, f"Cookie already exist for bookie '{name}'" in again.err) == (255, True)
    assert shell("cookie_get", name).out == f"Cookie for bookie '{name}' is:\n---\n{text}\n---\n"
    assert shell("cookie_update", name, "-cf", file).code == 0
    Path(file).write_text("no cookie")
    assert shell("cookie_update", name, "-cf", file).code == 255
    assert shell("cookie_delete", name).code == 0
    missing = shell("cookie_get", name)
    assert (missing.code, missing.err) == (255, f"cookie_get: Cookie not found for bookie '{name}'\n")


def test_a_generated_cookie_is_the_one_that_a_bookie_makes(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    bookie, file = cluster.bookies[0], str(tmp_path / "cookie")
    journal, ledgers = f"{bookie.directory}/journal", f"{bookie.directory}/ledgers"
    assert shell("cookie_generate", "-j", journal, "-l", ledgers, "-o", file, bookie.bookie_id).code == 0
    shown = shell("cookie_get", bookie.bookie_id).out
    assert shown == f"Cookie for bookie '{bookie.bookie_id}' is:\n---\n{Path(file).read_text()}\n---\n"


# Repair


def test_autorecovery_is_switched_and_its_delay_set(cluster: Cluster, shell: Shell) -> None:
    assert shell("autorecovery").out == "Autorecovery is enabled.\n"
    assert shell("autorecovery", "-disable").out == "Disabling autorecovery\n"
    assert shell("autorecovery", "-d").out == "Autorecovery already disabled. Doing nothing\n"
    refused = shell("triggeraudit")
    assert (refused.code, "Autorecovery is disabled" in refused.err) == (255, True)
    assert shell("autorecovery", "status").out == "Autorecovery is disabled.\n"
    assert shell("autorecovery", "-enable").out == "Enabling autorecovery\n"
    refused = shell("triggeraudit")
    assert (refused.code, "No auditor elected" in refused.err) == (255, True)
    assert shell("whoisauditor").code == 255
    assert shell("lostbookierecoverydelay", "-set", "17").code == 0
    assert shell("lostbookierecoverydelay", "-get").out == "LostBookieRecoveryDelay value in ZK: 17\n"
    assert shell("lostbookierecoverydelay", "-get", "-set", "1").code == 255
    assert "Resetting CheckAllLedgersCTime to : " in shell("forceauditchecks", "-calc", "-rc").out


def test_ledgers_that_lack_copies_are_listed_with_who_misses_and_who_repairs_them(cluster: Cluster, shell: Shell) -> None:
    async def mark(store: ZooKeeperStore) -> None:
        marks = UnderreplicationStore(store, RealClock(), "test")
        await marks.initialise()
        await marks.mark_missing(990001, ["a:1"])
        await marks.mark_missing(990002, ["a:1", "b:2"])
        await store.put(lock_path(990002), encode_lock("worker:1"))

    async def unmark(store: ZooKeeperStore) -> None:
        marks = UnderreplicationStore(store, RealClock(), "test")
        await store.delete(lock_path(990002))
        for ledger_id in (990001, 990002):
            held = await marks.take(ledger_id)
            assert held is not None
            await marks.mark_replicated(held)

    on_store(cluster, mark)
    listed = shell("listunderreplicated", "-pmr", "-prw")
    assert listed.code == 0
    assert re.fullmatch(
        r"990001\n\tCtime : \d+\n\tMissingReplica : a:1\n990002\n\tCtime : \d+\n\tMissingReplica : a:1\n"
        r"\tMissingReplica : b:2\n\tReplicationWorkerId : worker:1\nUnder replicated ledger count: 2\n",
        listed.out,
    )
    assert shell("listunderreplicated", "-c", "-mr", "b:2").out == "Under replicated ledger count: 1\n"
    assert shell("listunderreplicated", "-c", "-mr", "a:1", "-emr", "b:2").out == "Under replicated ledger count: 1\n"
    status = shell("queryautorecoverystatus")
    assert status.out == "CurrentRecoverLedgerInfo:\n\tLedgerId:990002\tBookieId:worker:1\n"
    on_store(cluster, unmark)
    assert shell("listunderreplicated").out == "Under replicated ledger count: 0\n"
    assert "No Ledger is being recovered" in shell("queryautorecoverystatus").out


def test_a_bookie_that_runs_is_not_decommissioned(cluster: Cluster, shell: Shell) -> None:
    refused = shell("decommissionbookie", "-bookieid", cluster.bookies[0].bookie_id)
    assert (refused.code, "is up: stop it" in refused.err) == (255, True)
    assert shell("cookie_get", cluster.bookies[0].bookie_id).code == 0


def test_a_lost_bookies_ledgers_are_planned_recovered_and_its_cookie_goes(
    cluster: Cluster, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BookieProcess(tmp_path / "fourth", cluster.uri, "zkTimeout=30000") as fourth:
        fourth.start()
        ledger_id = str(a_ledger(cluster, 5, quorum=4))
        fourth.stop()
    query = shell("recover", "-query", fourth.bookie_id)
    assert f"ledger {ledger_id} : CLOSED\n" in query.out
    assert f"{fourth.bookie_id}*" in query.out
    monkeypatch.setattr("sys.stdin", io.StringIO("N\n"))
    assert shell("recover", fourth.bookie_id).code == 255
    full = shell("recover", "-f", "-l", ledger_id, fourth.bookie_id)  # the other three have copies already
    assert full.code == 255
    assert fourth.bookie_id in shell("ledgermetadata", "-l", ledger_id).out
    assert shell("deleteledger", "-l", ledger_id, "-f").code == 0
    recovered = shell("recover", "-f", "-d", fourth.bookie_id)
    assert (recovered.code, "0 ledgers recovered" in recovered.out) == (0, True)
    assert shell("cookie_get", fourth.bookie_id).code == 255


# A cluster's metadata


def test_a_cluster_is_made_nuked_and_formatted_only_when_that_is_meant(cluster: Cluster, shell: Shell) -> None:
    for words in (("nukeexistingcluster", "-p", "/ledgers", "-f"), ("metaformat", "-n", "-f"), ("initnewcluster",)):
        refused = shell(*words)
        assert refused.code == 1, words
    assert shell("listledgers").code == 0

    async def root(store: ZooKeeperStore) -> None:
        await store.put("/other", b"")

    on_store(cluster, root)
    other = f"metadata-store:zk:{cluster.servers}/other/ledgers"
    assert shell("listledgers", uri=other).code == 255
    made = shell("initnewcluster", uri=other)
    assert (made.code, "Successfully initiated cluster." in made.out) == (0, True)
    instance = made.out.split()[-1]
    wrong = shell("nukeexistingcluster", "-p", "/ledgers", "-i", "another", uri=other)
    assert (wrong.code, f"is not matching with {instance}" in wrong.err) == (1, True)
    assert shell("nukeexistingcluster", "-p", "/elsewhere", "-f", uri=other).code == 1
    assert shell("metaformat", "-nonInteractive", uri=other).code == 1
    assert shell("metaformat", "-n", "-force", uri=other).code == 0
    formatted = shell("whatisinstanceid", uri=other).out.split()[-1]
    assert formatted != instance
    assert shell("nukeexistingcluster", "-zkledgersrootpath", "/ledgers", "-instanceid", formatted, uri=other).code == 0
    assert shell("whatisinstanceid", uri=other).code == 255
    assert shell("nukeexistingcluster", "-p", "/ledgers", "-f", uri=other).code == 0


# A bookie's HTTP


def ask(cluster: Cluster, path: str, body: object = None, method: str = "") -> tuple[int, str]:
    """GET, or PUT when there is a body: the status, and the answer's text."""
    data = None if body is None else json.dumps(body).encode()
    url = f"http://127.0.0.1:{cluster.web_port}/api/v1/{path}"
    request = urllib.request.Request(url, data, method=method or ("GET" if body is None else "PUT"))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def told(cluster: Cluster, path: str, body: object = None, method: str = "") -> Any:
    status, text = ask(cluster, path, body, method)
    assert status == 200, text
    return json.loads(text)


def test_http_lists_shows_reads_and_deletes_ledgers(cluster: Cluster, shell: Shell) -> None:
    ledger_id = a_ledger(cluster, 5, password="secret")
    key = str(ledger_id)
    assert told(cluster, "ledger/list")[key] is None
    shown = told(cluster, f"ledger/metadata?ledger_id={key}")[key]
    assert (shown["state"], shown["lastEntryId"], shown["length"], shown["digestType"]) == ("CLOSED", 4, 150, "CRC32")
    assert shown["password"] == "OMITTED"
    assert all(each["id"] in shell("listbookies", "-a").out for each in shown["allEnsembles"]["0"])
    assert told(cluster, "ledger/list?print_metadata=true&decode_meta=true")[key] == shown
    assert told(cluster, "ledger/list?print_metadata=true")[key].startswith("BookieMetadataFormatVersion\t3\n")
    assert told(cluster, "ledger/list?print_metadata=true&page=1000") == {}
    texts = {str(entry_id): payload(entry_id).decode("ascii", errors="replace") for entry_id in range(5)}
    assert told(cluster, f"ledger/read?ledger_id={key}") == texts
    some = told(cluster, f"ledger/read?ledger_id={key}&start_entry_id=1&end_entry_id=2")
    assert some == {"1": texts["1"], "2": texts["2"]}
    assert told(cluster, f"ledger/read?ledger_id={key}&page=1") == {"Entries for page: ": "1", **texts}
    assert told(cluster, f"ledger/delete?ledger_id={key}", method="DELETE") == f"Deleted ledger: {key}"
    for path in (f"ledger/metadata?ledger_id={key}", f"ledger/read?ledger_id={key}"):
        status, text = ask(cluster, path)
        assert (status, f"ledger {key} is not there" in text) == (404, True)
    for path in ("ledger/metadata", "ledger/read?ledger_id=x", "ledger/read?ledger_id=1&page=2&end_entry_id=3"):
        assert ask(cluster, path)[0] == 400


def test_http_knows_the_cluster_as_the_shell_does(cluster: Cluster, shell: Shell) -> None:
    ids = {each.bookie_id for each in cluster.bookies}
    assert told(cluster, "bookie/list_bookies") == dict.fromkeys(ids)
    assert set(told(cluster, "bookie/list_bookies?print_hostnames=true")) == ids
    assert told(cluster, "bookie/list_bookies?type=ro") == {}
    room = told(cluster, "bookie/list_bookie_info")
    assert set(room) == {*ids, "ClusterInfo: "}
    assert all(re.fullmatch(r"(: )?\{Free: \d+\(.*\), Total: \d+\(.*\)\},?", text) for text in room.values())
    assert told(cluster, "bookie/cluster_info") == json.loads(shell("clusterinfo").out.partition("\n")[2])
    before = told(cluster, "ledger/list")
    assert told(cluster, "bookie/sanity") == {"passed": True, "readOnly": False}
    assert told(cluster, "ledger/list") == before
    sets = tuple(f"{kind}Directories={cluster.bookies[0].directory}/{name}" for kind, name in _DIRECTORIES)
    ((key, value),) = told(cluster, "bookie/last_log_mark").items()
    assert f"{key.replace('Mark: ', 'Mark : ')}, {value}\n" == shell("lastmark", sets=sets).out
    config = told(cluster, "config/server_config")
    assert config["bookiePort"] == str(cluster.bookies[0].port)


_DIRECTORIES = (("journal", "journal"), ("ledger", "ledgers"))


def test_http_switches_repair_and_says_who_does_it(cluster: Cluster, shell: Shell) -> None:
    assert told(cluster, "autorecovery/status") == {"enabled": True}
    assert told(cluster, "autorecovery/status?enabled=false", {}) == {"enabled": False}
    assert shell("autorecovery").out == "Autorecovery is disabled.\n"
    assert told(cluster, "autorecovery/status?enabled=true", {}) == {"enabled": True}
    assert ask(cluster, "autorecovery/status", {})[0] == 400
    assert ask(cluster, "autorecovery/who_is_auditor") == (404, "No auditor elected")
    assert ask(cluster, "autorecovery/trigger_audit", {})[0] == 500
    assert ask(cluster, "autorecovery/list_under_replicated_ledger") == (404, "No under replicated ledgers found")
    path = "autorecovery/lost_bookie_recovery_delay"
    assert ask(cluster, path, {"delay_seconds": 23}) == (200, "Success set lostBookieRecoveryDelay to 23")
    assert ask(cluster, path) == (200, "lostBookieRecoveryDelay value: 23")
    assert ask(cluster, path, {"delay_seconds": -1})[0] == 400


def test_http_recovers_a_lost_bookie_and_decommissions_none_that_runs(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    with BookieProcess(tmp_path / "fourth", cluster.uri, "zkTimeout=30000") as fourth:
        fourth.start()
        fourth.stop()
    body = {"bookie_src": [fourth.bookie_id], "delete_cookie": True}
    assert ask(cluster, "autorecovery/bookie", body) == (200, "Success send recovery request command.")
    until(lambda: shell("cookie_get", fourth.bookie_id).code == 255)
    running = cluster.bookies[0].bookie_id
    status, text = ask(cluster, "autorecovery/decommission", {"bookie_src": running})
    assert (status, text) == (200, f"Success send decommission Bookie command {running}")
    until(lambda: "is up: stop it" in cluster.bookies[0].log.read_text())
    assert shell("cookie_get", running).code == 0
    wrongs: tuple[object, ...] = ({}, {"bookie_src": "x y"}, {"bookie_src": []})
    for wrong in wrongs:
        assert ask(cluster, "autorecovery/decommission", wrong)[0] == 400
        assert ask(cluster, "autorecovery/bookie", wrong)[0] == 400
