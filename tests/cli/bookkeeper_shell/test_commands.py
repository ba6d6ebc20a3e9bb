"""The shell's commands about bookies and ledgers, on ZooKeeper and three bookies."""

import asyncio
import io
import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError
from metadata.zookeeper.store import ZooKeeperStore
from tests.cli.bookkeeper_shell.shell_cluster import (
    Cluster,
    Shell,
    a_batch,
    a_ledger,
    entry_ids,
    on_store,
    payload,
    told,
    until,
    with_ledgers,
    write,
)
from tests.started_process import ROOT

pytestmark = pytest.mark.timeout(300)

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
    assert told(cluster, "bookie/sanity") == {"passed": False, "readOnly": True}
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
        """Makes the ledger name a bookie that is stopped."""
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
