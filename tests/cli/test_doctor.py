"""Every check of the doctor against planted faults: the fault is named, what is sound is not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.admin.http import Answer, Refused, Unreachable
from cli.admin.request import Request
from cli.doctor.__main__ import CHECKS, main
from cli.doctor.checks import FAIL, OK, SKIPPED, WARN, Facts, judged
from cli.doctor.cluster_checks import Bookies, CompactionState, SubscriptionState
from cli.doctor.cluster_facts import bookie_facts, cluster_facts
from cli.doctor.data_checks import Directory
from cli.doctor.local_facts import directory_facts, machine_facts, port_taken
from cli.doctor.machine_checks import DiskUse, MemoryUse
from tests.started_process import free_port

GIB = 1 << 30
COOKIE = '4\nbookieHost: "a:3181"\ninstanceId: "x"\n'
CALM = SubscriptionState("persistent://t/n/a", "s", 10, 1, 5.0, 0, False, 100, 0)
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
FOREIGN = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
SOUND: Mapping[str, Any] = {
    "skew_seconds": 0.4,
    "year": 2026,
    "disk": DiskUse("/d", 100 * GIB, 50 * GIB, 1000, 900),
    "fsync_ms": 2.0,
    "writable": True,
    "files": 1 << 20,
    "processes": 1 << 16,
    "memory": MemoryUse(4 * GIB, 0),
    "load_per_cpu": 0.5,
    "compiled": True,
    "settings": {"authenticationEnabled": "true", "authenticationProviders": "x", "metadataStoreUrl": "zk:a:2181"},
    "taken_ports": (),
    "unreadable_tls_files": (),
    "directories": (Directory("/j", COOKIE, True), Directory("/l", COOKIE, True)),
    "journal_files": 1,
    "health": "ok",
    "leader_url": "http://a:8080",
    "bookies": Bookies(4, 3, 2),
    "read_only_bookies": (),
    "under_replicated": 0,
    "subscriptions": (CALM,),
    "load_managers": (("a:8080", MODULAR), ("b:8080", MODULAR)),
    "slow_transactions": (),
    "compactions": (CompactionState("persistent://t/n/a", 10, False),),
}
SETTINGS = SOUND["settings"]
PLANTED: list[tuple[str, str, str, Any]] = [
    ("clock-skew", WARN, "skew_seconds", -3.0),
    ("clock-skew", FAIL, "skew_seconds", 120.0),
    ("clock-plausible", FAIL, "year", 1970),
    ("disk-free", WARN, "disk", DiskUse("/d", 100 * GIB, 8 * GIB, 1000, 900)),
    ("disk-free", FAIL, "disk", DiskUse("/d", 100 * GIB, 4 * GIB, 1000, 900)),
    ("disk-inodes", FAIL, "disk", DiskUse("/d", 100 * GIB, 50 * GIB, 1000, 10)),
    ("disk-writable", FAIL, "writable", False),
    ("fsync-time", WARN, "fsync_ms", 40.0),
    ("fsync-time", FAIL, "fsync_ms", 900.0),
    ("open-files-limit", WARN, "files", 4096),
    ("open-files-limit", FAIL, "files", 256),
    ("processes-limit", WARN, "processes", 100),
    ("memory-available", FAIL, "memory", MemoryUse(1 << 20, 0)),
    ("swap-in-use", WARN, "memory", MemoryUse(4 * GIB, GIB)),
    ("load", WARN, "load_per_cpu", 9.0),
    ("kernels-compiled", WARN, "compiled", False),
    ("quorum-order", FAIL, "settings", SETTINGS | {"managedLedgerDefaultAckQuorum": "3"}),
    ("one-copy", WARN, "settings", SETTINGS | {"managedLedgerDefaultAckQuorum": "1"}),
    ("ports-distinct", FAIL, "settings", SETTINGS | {"brokerServicePort": "8080", "webServicePort": "8080"}),
    ("ports-free", FAIL, "taken_ports", ("webServicePort=8080",)),
    ("retention-and-quota", FAIL, "settings", SETTINGS | {"defaultRetentionTimeInMinutes": "60"}),
    (
        "retention-and-quota",
        FAIL,
        "settings",
        SETTINGS
        | {"defaultRetentionTimeInMinutes": "60", "defaultRetentionSizeInMB": "100", "backlogQuotaDefaultLimitGB": "1"},
    ),
    ("journal-synced", WARN, "settings", SETTINGS | {"journalSyncData": "false"}),
    ("disk-thresholds", FAIL, "settings", SETTINGS | {"diskUsageWarnThreshold": "0.99", "diskUsageThreshold": "0.9"}),
    ("message-size", FAIL, "settings", SETTINGS | {"maxMessageSize": "99999999"}),
    ("authorization-without-authentication", FAIL, "settings", {"authorizationEnabled": "true"}),
    ("providers-named", FAIL, "settings", {"authenticationEnabled": "true"}),
    ("open-to-everybody", WARN, "settings", {"bindAddress": "0.0.0.0"}),
    ("advertised-address", FAIL, "settings", SETTINGS | {"advertisedAddress": "localhost"}),
    ("session-length", WARN, "settings", SETTINGS | {"metadataStoreSessionTimeoutMillis": "500"}),
    ("tls-files", FAIL, "unreadable_tls_files", ("/etc/none.pem",)),
    ("cookies-present", FAIL, "directories", (Directory("/j", COOKIE, True), Directory("/l", None, True))),
    ("cookies-agree", FAIL, "directories", (Directory("/j", COOKIE, True), Directory("/l", COOKIE.replace("a:", "b:"), True))),
    ("cookies-agree", FAIL, "directories", (Directory("/j", "", True),)),
    ("directories-owned", WARN, "directories", (Directory("/j", COOKIE, False),)),
    ("journal-files", WARN, "journal_files", 500),
    ("broker-health", FAIL, "health", "no bookies"),
    ("leader", WARN, "leader_url", ""),
    ("bookies-enough", FAIL, "bookies", Bookies(1, 3, 2)),
    ("bookies-enough", WARN, "bookies", Bookies(3, 3, 2)),
    ("bookies-read-only", WARN, "read_only_bookies", ("a:3181",)),
    ("under-replication", WARN, "under_replicated", 7),
    ("stuck-subscriptions", FAIL, "subscriptions", (CALM, CALM._replace(rate_out=0.0))),
    ("blocked-subscriptions", WARN, "subscriptions", (CALM._replace(blocked=True),)),
    ("consumers-without-permits", WARN, "subscriptions", (CALM._replace(rate_out=0.0, permits=0),)),
    ("abandoned-subscriptions", WARN, "subscriptions", (CALM._replace(consumers=0, permits=None),)),
    ("cursor-holes", WARN, "subscriptions", (CALM._replace(holes=20_000), CALM)),
    ("cursor-holes", FAIL, "subscriptions", (CALM._replace(holes=2_000_000),)),
    ("backlog", WARN, "subscriptions", (CALM._replace(backlog=5_000_000),)),
    ("load-managers", FAIL, "load_managers", (("a:8080", MODULAR), ("b:8080", FOREIGN))),
    ("slow-transactions", WARN, "slow_transactions", ("(0,7)",)),
    ("compaction", WARN, "compactions", (CompactionState("t", 0, True),)),
    ("compaction", WARN, "compactions", (CompactionState("t", 5_000_000, False),)),
]
BY_ID = {check.id: check for check in CHECKS}


def test_a_sound_cluster_passes_every_check() -> None:
    assert {check.id: judged(check, Facts(SOUND, {})).level for check in CHECKS} == dict.fromkeys(BY_ID, OK)


@pytest.mark.parametrize(("name", "level", "fact", "value"), PLANTED)
def test_a_planted_fault_is_named_with_a_remedy(name: str, level: str, fact: str, value: Any) -> None:
    finding = judged(BY_ID[name], Facts({**SOUND, fact: value}, {}))
    assert (finding.id, finding.level) == (name, level)
    assert finding.evidence
    assert finding.remedy


def test_there_are_many_checks_and_every_one_has_a_planted_fault() -> None:
    assert len(BY_ID) == len(CHECKS) >= 25
    assert {name for name, *_ in PLANTED} == set(BY_ID)


def test_a_check_without_its_facts_is_skipped_and_says_why() -> None:
    finding = judged(BY_ID["leader"], Facts({}, {"leader_url": "no server answers: http://x"}))
    assert (finding.level, finding.evidence) == (SKIPPED, "no server answers: http://x")


class Server:
    """An admin REST with these answers."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = answers

    def ask(self, request: Request) -> Answer:
        if request.path not in self.answers:
            raise Refused(404, "not found")
        return Answer(200, {"date": "Sat, 21 Nov 2026 12:00:00 GMT"}, self.answers[request.path])


class Nobody:
    def ask(self, request: Request) -> Answer:
        raise Unreachable("http://x: refused")


def test_facts_of_a_cluster_come_from_its_rest() -> None:
    subscription = {
        "msgBacklog": 9,
        "msgRateOut": 0.0,
        "unackedMessages": 2,
        "consumers": [{"availablePermits": 5}],
        "nonContiguousDeletedMessagesRanges": 3,
    }
    facts = cluster_facts(
        Server(
            {
                "/admin/v2/clusters": b'["c"]',
                "/admin/v2/brokers/c": b'["a:8080","b:8080"]',
                "/admin/v3/transactions/slowTransactions/600000": b'{"(0,7)":{}}',
                "/admin/v2/brokers/health": b"ok",
                "/admin/v2/brokers/leaderBroker": b'{"serviceUrl":"http://a"}',
                "/admin/v2/bookies/all": b'{"bookies":[{"bookieId":"a"}]}',
                "/admin/v2/tenants": b'["t"]',
                "/admin/v2/namespaces/t": b'["t/n"]',
                "/admin/v2/persistent/t/n": b'["persistent://t/n/a","persistent://t/n/gone"]',
                "/admin/v2/persistent/t/n/a/stats": json.dumps(
                    {
                        "subscriptions": {"s": subscription, "__compaction": {"msgBacklog": 4}},
                        "compaction": {"lastCompactionFailedTimestamp": 2, "lastCompactionSucceedTimestamp": 1},
                    }
                ).encode(),
            }
        ),
        {},
        lambda broker: Server(
            {
                "/admin/v2/brokers/configuration/runtime": json.dumps(
                    {"loadManagerClassName": FOREIGN if broker == "a:8080" else MODULAR}
                ).encode()
            }
        ),
    )
    assert facts.found["subscriptions"] == (SubscriptionState("persistent://t/n/a", "s", 9, 1, 0.0, 2, False, 5, 3),)
    assert facts.found["bookies"] == Bookies(1, 1, 1, are_known=True)
    assert judged(BY_ID["stuck-subscriptions"], facts).level == FAIL
    assert facts.found["compactions"] == (CompactionState("persistent://t/n/a", 4, True),)
    assert judged(BY_ID["load-managers"], facts).evidence.endswith("ExtensibleLoadManagerImpl: a:8080")
    assert facts.found["slow_transactions"] == ("(0,7)",)


def test_a_cluster_of_one_kind_of_load_manager_is_sound_also_when_it_is_the_other() -> None:
    for managers in ((), (("a", FOREIGN), ("b", FOREIGN))):
        assert judged(BY_ID["load-managers"], Facts({"load_managers": managers}, {})).level == OK


def test_a_server_that_is_not_there_leaves_its_checks_skipped() -> None:
    facts = cluster_facts(Nobody(), {}, lambda _: Nobody())
    assert {judged(BY_ID[name], facts).level for name in ("broker-health", "leader", "backlog", "clock-skew")} == {SKIPPED}


def test_a_bookie_tells_of_replication_and_of_bookies_that_take_no_writes() -> None:
    lists = {
        "/api/v1/bookie/list_bookies?type=rw": b'{"a":null,"b":null}',
        "/api/v1/bookie/list_bookies?type=ro": b'{"c":null}',
    }
    lacking = {"/api/v1/autorecovery/list_under_replicated_ledger/": b'{"1":[],"2":[]}'}
    facts = bookie_facts(Server(lists | lacking), {"managedLedgerDefaultWriteQuorum": "3"})
    assert facts.found == {"bookies": Bookies(2, 1, 3), "read_only_bookies": ("c",), "under_replicated": 2}
    assert judged(BY_ID["bookies-read-only"], facts).level == WARN
    assert judged(BY_ID["bookies-enough"], facts).level == FAIL
    assert bookie_facts(Server(lists), {}).found["under_replicated"] == 0
    for nobody in (None, Nobody(), Server({})):
        assert judged(BY_ID["bookies-read-only"], bookie_facts(nobody, {})).level == SKIPPED


def test_directories_of_a_stopped_bookie_are_found_with_their_cookies(tmp_path: Path) -> None:
    for name in ("journal", "ledgers"):
        (tmp_path / name / "current").mkdir(parents=True)
        (tmp_path / name / "current" / "VERSION").write_text(COOKIE)
    (tmp_path / "ledgers" / "current" / "VERSION").write_text(COOKIE.replace("a:3181", "b:3181"))
    facts = directory_facts(tmp_path, {})
    assert judged(BY_ID["cookies-present"], facts).level == OK
    assert judged(BY_ID["cookies-agree"], facts).level == FAIL


def test_directories_of_our_own_bookie_are_found_too(tmp_path: Path) -> None:
    for name, instance in (("journal", "x"), ("ledgers", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "VERSION").write_text(f"version=1\ninstance={instance}\nsecret=00\n")
    (tmp_path / "journal" / "0000000000000001.journal").touch()
    facts = directory_facts(tmp_path, {})
    assert (len(facts.found["directories"]), facts.found["journal_files"]) == (2, 1)
    assert judged(BY_ID["cookies-present"], facts).level == OK
    assert judged(BY_ID["cookies-agree"], facts).level == FAIL


def test_facts_of_this_machine_can_be_found(tmp_path: Path) -> None:
    facts = machine_facts(tmp_path / "not" / "there")
    assert facts.found["writable"]
    assert facts.found["fsync_ms"] > 0
    assert set(facts.found) >= {"disk", "files", "processes", "year", "compiled"}
    assert not port_taken(free_port())


def test_the_command_says_what_fails_and_its_exit_code_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("managedLedgerDefaultEnsembleSize=1\nmanagedLedgerDefaultWriteQuorum=2\n")
    words = ["--offline", "--config", str(conf), "--data-dir", str(tmp_path), "--only", "quorum-order"]
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(each["id"], each["level"]) for each in told["checks"]] == [("quorum-order", FAIL)]
    conf.write_text("")
    assert main(words) == 0
    assert "1 checks: 0 fail" in capsys.readouterr().out


def test_a_check_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
