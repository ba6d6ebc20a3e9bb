"""The shell's commands about cookies, repair and whole clusters, on ZooKeeper and three bookies."""

import io
import re
from pathlib import Path

import pytest

from bookkeeper.repair.underreplication.store import UnderreplicationStore
from bookkeeper.repair.underreplication.tree import encode_lock, lock_path
from metadata.zookeeper.store import ZooKeeperStore
from ports.clock import RealClock
from tests.cli.bookkeeper_shell.shell_cluster import Cluster, Shell, a_ledger, entry_ids, on_store, until
from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies.repaired_cluster import AutoRecoveryProcess

pytestmark = pytest.mark.timeout(300)

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
    with BookieProcess(tmp_path / "fourth", cluster.uri, "zkTimeout=30000", "autoRecoveryDaemonEnabled=false") as fourth:
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


def test_a_bookie_that_is_stopped_is_decommissioned_by_those_who_repair(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    with BookieProcess(tmp_path / "fourth", cluster.uri, "zkTimeout=30000", "autoRecoveryDaemonEnabled=false") as fourth:
        fourth.start()
        made = [str(a_ledger(cluster, 5))]
        while fourth.bookie_id not in shell("ledgermetadata", "-l", made[-1]).out:
            assert len(made) < 100  # each has an even chance
            made.append(str(a_ledger(cluster, 5)))
        fourth.stop()
    command = ("decommissionbookie", "-bookieid", fourth.bookie_id)
    refused = shell(*command)
    assert (refused.code, "autorecovery runs nowhere" in refused.err) == (255, True)
    assert shell("cookie_get", fourth.bookie_id).code == 0
    assert shell("lostbookierecoverydelay", "-set", "3600").code == 0  # what is asked for is not done before it is
    with AutoRecoveryProcess(tmp_path / "repair", cluster.servers, "zkTimeout=30000") as repair:
        repair.start()
        until(lambda: shell("whoisauditor").out == f"Auditor: {repair.name}\n")
        done = shell(*command)
        assert (done.code, done.err) == (0, "")
        assert "Count of Ledgers which need to be rereplicated: 1 of 1, " in done.out
        assert done.out.splitlines()[-3].endswith("the rest: about 0:00:00")
        assert done.out.endswith(f"Cookie of the decommissioned bookie: {fourth.bookie_id} is deleted successfully\n")
        assert shell("triggeraudit").code == 0
        repair.stop()
    assert shell("cookie_get", fourth.bookie_id).code == 255
    assert fourth.bookie_id not in shell("ledgermetadata", "-l", made[-1]).out
    assert entry_ids(shell("readledger", "-l", made[-1])) == [0, 1, 2, 3, 4]


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
