"""A bookie's HTTP about ledgers, the cluster and its repair says and does what the shell does."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.bookkeeper_shell.shell_cluster import Cluster, Shell, a_ledger, ask, payload, told, until
from tests.clients.bookie_process import BookieProcess

pytestmark = pytest.mark.timeout(300)


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

    def marks_agree() -> bool:
        """Unless a flush moves the mark between the two."""
        ((key, value),) = told(cluster, "bookie/last_log_mark").items()
        return f"{key.replace('Mark: ', 'Mark : ')}, {value}\n" == shell("lastmark", sets=sets).out

    until(marks_agree)
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
    with BookieProcess(tmp_path / "fourth", cluster.uri, "zkTimeout=30000", "autoRecoveryDaemonEnabled=false") as fourth:
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
