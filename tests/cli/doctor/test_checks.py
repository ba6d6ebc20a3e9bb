"""Every check of the doctor against planted facts: the fault is named with its remedy, and what is sound is not."""

from collections.abc import Mapping
from typing import Any

import pytest

from cli.configuration.contradictions import Contradiction
from cli.doctor.check import FAIL, OK, SKIPPED, WARN, Facts, judged
from cli.doctor.checks.bookies import Bookies, Ledgers, Replication
from cli.doctor.checks.cluster import Answering, BrokerState, MetadataServers, Owner, Process
from cli.doctor.checks.credentials import CertificateState, TokenState
from cli.doctor.checks.machine import MemoryUse
from cli.doctor.checks.storage import Directory, DiskUse
from cli.doctor.checks.subscriptions import ConsumerState, SubscriptionState
from cli.doctor.checks.topics import BundleState, CompactionState, QuotaState
from cli.doctor.examination import CHECKS
from cli.doctor.report import checks_table
from tests.started_process import ROOT

GIB = 1 << 30
DAY = 86_400
COOKIE = '4\nbookieHost: "a:3181"\ninstanceId: "x"\n'
OURS = "version=1\ninstance=x\nsecret=00\n"
TOPIC = "persistent://t/n/a"
CONSUMER = ConsumerState("c", "/10.0.0.7:4711", 100)
CALM = SubscriptionState(TOPIC, "s", 10, (CONSUMER,))
STILL = CALM._replace(is_silent=True)
BOOKIES = Bookies(("a:3181", "b:3181", "c:3181"), (), (), {}, 3, 2)
BROKERS = (BrokerState("a:8080", "", "pulsar://a:6650"), BrokerState("b:8080", "", "pulsar://b:6650"))
LACKING = Replication((7, 9), ("d:3181",), True, "a:3181", 3, 2)
CERTIFICATE = CertificateState(
    "tlsCertificateFilePath=/c.pem", names=("a.example", "*.b.example"), host="a.example", is_server=True
)
TOKEN = TokenState("authParams of client.conf", ends_in_seconds=30.0 * DAY, role="admin")
QUOTA = QuotaState(TOPIC, "size", 50, 100, "producer_exception", "s")
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
FOREIGN = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
LESS = Contradiction(
    ("maxConsumersPerSubscription=9", "maxConsumersPerTopic=3"), "never reached", "raise maxConsumersPerTopic", False
)
SOUND: Mapping[str, Any] = {
    "skew_seconds": 0.4,
    "year": 2026,
    "disks": (DiskUse("/d", 100 * GIB, 50 * GIB, 1000, 900),),
    "fsync_ms": 2.0,
    "writable": True,
    "files": 1 << 20,
    "processes": 1 << 16,
    "memory": MemoryUse(4 * GIB, 0, 4 * GIB, GIB),
    "load_per_cpu": 0.5,
    "compiled": True,
    "settings": {"authenticationEnabled": "true", "authenticationProviders": "x", "metadataStoreUrl": "zk:a:2181"},
    "kind": "broker",
    "settings_errors": (),
    "contradictions": (),
    "taken_ports": (),
    "silent_ports": (),
    "certificates": (CERTIFICATE,),
    "tokens": (TOKEN,),
    "directories": (Directory("/j", COOKIE), Directory("/l", COOKIE)),
    "journal_files": 1,
    "damages": (),
    "metadata_file": "",
    "answering": Answering("http://a:8080"),
    "health": "ok",
    "brokers": BROKERS,
    "leader_url": "http://a:8080",
    "several": (Process(1, "serving", 1), Process(2, "serving", 2)),
    "load_managers": (("a:8080", MODULAR), ("b:8080", MODULAR)),
    "metadata": MetadataServers(("z:2181",), {}),
    "configured_cluster": "c",
    "clusters": ("c",),
    "owners": (Owner("t/n/0x00000000_0xffffffff", "a:8080"),),
    "ledger_layout": "",
    "bookies": BOOKIES,
    "replication": Replication(),
    "ledgers": Ledgers(3),
    "cookie": "",
    "subscriptions": (CALM,),
    "slow_transactions": (),
    "compactions": (CompactionState(TOPIC, 10, False),),
    "quotas": (QUOTA,),
    "rate_limited": (),
    "unbounded": (),
    "bundles": (BundleState("t/n", 4000, 4, 1000),),
    "refused_topics": (),
}
SETTINGS = SOUND["settings"]
FULL = DiskUse("/d", 100 * GIB, 4 * GIB, 1000, 900)
USED = Directory("/j", OURS)
PLANTED: list[tuple[str, str, str, Any, str]] = [
    (
        "server-answers",
        FAIL,
        "answering",
        Answering("http://a:8080", "refuses connections", "start the broker"),
        "start the broker",
    ),
    ("broker-health", FAIL, "health", "no bookies", "log"),
    ("brokers-answer", FAIL, "brokers", (BROKERS[0], BrokerState("b:8080", "refuses")), "start the broker b:8080"),
    (
        "brokers-answer",
        FAIL,
        "brokers",
        (BROKERS[0], BrokerState("b:8080", "refuses", is_registered=False)),
        "a:8080 takes its topics",
    ),
    (
        "brokers-distinct",
        FAIL,
        "brokers",
        (BROKERS[0], BROKERS[1]._replace(service_url="pulsar://a:6650")),
        "advertisedAddress of a:8080",
    ),
    ("processes-serve", FAIL, "several", (Process(2, "given up", 11),), "send SIGHUP to the supervisor"),
    ("leader", WARN, "leader_url", "", "restart a broker"),
    ("leader", WARN, "leader_url", "http://gone:8080", "gone:8080, which is not registered"),
    ("load-managers", FAIL, "load_managers", (("a:8080", MODULAR), ("b:8080", FOREIGN)), "loadManagerClassName"),
    (
        "metadata-answers",
        FAIL,
        "metadata",
        MetadataServers(("z:2181",), {"z:2181": "refuses"}, "nobody"),
        "start ZooKeeper at z:2181",
    ),
    (
        "metadata-answers",
        WARN,
        "metadata",
        MetadataServers(("z:2181", "y:2181"), {"y:2181": "refuses"}),
        "start ZooKeeper at y:2181",
    ),
    ("cluster-name", FAIL, "configured_cluster", "other", "set clusterName to c"),
    ("bundle-owners", FAIL, "owners", (Owner("t/n/0x0_0x1", "gone:8080"),), "/namespace/t/n/0x0_0x1"),
    ("ledger-layout", FAIL, "ledger_layout", "LAYOUT is b'3'", "run the version"),
    ("bookies-present", FAIL, "bookies", BOOKIES._replace(lost=("d:3181",)), "start the bookie d:3181 again"),
    ("bookies-present", FAIL, "bookies", BOOKIES._replace(unreachable={"a:3181": "refuses"}), "start the bookie a:3181 again"),
    ("bookies-enough", FAIL, "bookies", BOOKIES._replace(writable=("a:3181",)), "start 2 more bookies"),
    ("bookies-enough", FAIL, "bookies", BOOKIES._replace(unreachable={"a:3181": "refuses"}), "start 1 more bookie "),
    ("bookies-enough", WARN, "bookies", BOOKIES._replace(lost=("d:3181",)), "add a bookie"),
    (
        "racks-enough",
        FAIL,
        "bookies",
        BOOKIES._replace(racks={"a:3181": "/default-rack"}, racks_min=2),
        "set-bookie-rack -b a:3181",
    ),
    ("bookies-read-only", WARN, "bookies", BOOKIES._replace(read_only=("d:3181",)), "free the disk of d:3181"),
    ("under-replication", WARN, "replication", LACKING, "wait: autorecovery runs"),
    ("under-replication", WARN, "replication", LACKING._replace(is_enabled=False), "autorecovery -enable"),
    ("under-replication", WARN, "replication", LACKING._replace(auditor=None), "run interpulse autorecovery"),
    ("under-replication", WARN, "replication", LACKING._replace(serving=1), "start a bookie"),
    ("ledgers-readable", FAIL, "ledgers", Ledgers(3, lost=((7, ("d:3181",)),)), "start the bookies that hold ledger 7"),
    ("orphan-ledgers", WARN, "ledgers", Ledgers(3, orphans=((7, "t/n/persistent/a"),)), "loses its entries"),
    ("cookie-registered", FAIL, "cookie", "the cookie of a:3181 says ledgerDirectories=/l", "do not delete the cookie"),
    ("topics-answer", FAIL, "refused_topics", ((TOPIC, "no bookies"),), f"topics unload {TOPIC}"),
    ("backlog-quota", FAIL, "quotas", (QUOTA._replace(used=100),), f"consume the backlog of {TOPIC}"),
    ("backlog-quota", FAIL, "quotas", (QUOTA._replace(used=100, policy="consumer_backlog_eviction"),), "set-backlog-quota t/n"),
    ("backlog-quota", WARN, "quotas", (QUOTA._replace(used=95, kind="time"),), "set-backlog-quota t/n"),
    ("publish-rate", WARN, "rate_limited", (TOPIC,), f"set-publish-rate {TOPIC}"),
    ("retention-unbounded", WARN, "unbounded", ("t/n",), "set-retention t/n"),
    ("slow-transactions", WARN, "slow_transactions", ("(0,7)",), "abort-transaction -m 0 -l 7"),
    ("compaction", WARN, "compactions", (CompactionState(TOPIC, 0, True),), f"topics compact {TOPIC}"),
    ("compaction", WARN, "compactions", (CompactionState(TOPIC, 5_000_000, False),), "compaction-status"),
    ("topics-per-bundle", WARN, "bundles", (BundleState("t/n", 4001, 4, 1000),), "split-bundle t/n"),
    ("stuck-subscriptions", FAIL, "subscriptions", (CALM, STILL), f"topics unload {TOPIC}"),
    ("blocked-subscriptions", FAIL, "subscriptions", (CALM._replace(blocked=True),), "consumer c at /10.0.0.7:4711"),
    (
        "blocked-subscriptions",
        FAIL,
        "subscriptions",
        (CALM._replace(consumers=(CONSUMER._replace(blocked=True),)),),
        "acknowledge",
    ),
    (
        "unacknowledged-messages",
        WARN,
        "subscriptions",
        (STILL._replace(unacked=5, is_ackless=True),),
        "consumer c at /10.0.0.7:4711",
    ),
    (
        "consumers-without-permits",
        WARN,
        "subscriptions",
        (STILL._replace(consumers=(CONSUMER._replace(permits=0),)),),
        "receiver queue",
    ),
    ("transaction-holds-readers", WARN, "subscriptions", (STILL._replace(open_transactions=1),), "abort-transaction"),
    ("dispatch-throttled", WARN, "subscriptions", (STILL._replace(is_throttled=True),), f"dispatch rate of {TOPIC}"),
    (
        "abandoned-subscriptions",
        WARN,
        "subscriptions",
        (CALM._replace(consumers=()),),
        f"start a consumer of s on {TOPIC} again",
    ),
    ("cursor-holes", WARN, "subscriptions", (CALM._replace(holes=20_000), CALM), f"peek-messages -s s -n 1 {TOPIC}"),
    ("cursor-holes", FAIL, "subscriptions", (CALM._replace(holes=2_000_000),), "dead letter"),
    ("backlog", WARN, "subscriptions", (CALM._replace(backlog=5_000_000),), f"add consumers to s of {TOPIC}"),
    ("delayed-messages", WARN, "subscriptions", (STILL._replace(backlog=200_000, delayed=200_000),), "not stuck"),
    ("expired-messages", WARN, "subscriptions", (CALM._replace(expired=9),), "set-message-ttl t/n"),
    ("settings-accepted", FAIL, "settings_errors", ("broker.conf line 1: nosuchKey",), "nosuchKey"),
    ("settings-contradict", WARN, "contradictions", (LESS,), "maxConsumersPerTopic"),
    ("quorum-order", FAIL, "settings", SETTINGS | {"managedLedgerDefaultAckQuorum": "3"}, "managedLedgerDefaultEnsembleSize"),
    ("one-copy", WARN, "settings", SETTINGS | {"managedLedgerDefaultAckQuorum": "1"}, "managedLedgerDefaultAckQuorum=2"),
    ("ports-distinct", FAIL, "settings", SETTINGS | {"brokerServicePort": "8080", "webServicePort": "8080"}, "of its own"),
    ("ports-free", FAIL, "taken_ports", ("webServicePort=8080",), "ss -ltnp"),
    ("ports-listening", FAIL, "silent_ports", ("webServicePortTls=8443",), "webServicePortTls=8443"),
    ("retention-and-quota", FAIL, "settings", SETTINGS | {"defaultRetentionTimeInMinutes": "60"}, "defaultRetentionSizeInMB"),
    (
        "retention-and-quota",
        FAIL,
        "settings",
        SETTINGS
        | {"defaultRetentionTimeInMinutes": "60", "defaultRetentionSizeInMB": "100", "backlogQuotaDefaultLimitGB": "1"},
        "backlogQuotaDefaultLimitGB",
    ),
    ("journal-synced", WARN, "settings", SETTINGS | {"journalSyncData": "false"}, "journalSyncData=true"),
    ("disk-thresholds", FAIL, "settings", SETTINGS | {"diskUsageWarnThreshold": "0.99"}, "diskUsageThreshold"),
    ("message-size", FAIL, "settings", SETTINGS | {"maxMessageSize": "99999999"}, "nettyMaxFrameSizeBytes"),
    ("authorization-without-authentication", FAIL, "settings", {"authorizationEnabled": "true"}, "authenticationEnabled=true"),
    ("providers-named", FAIL, "settings", {"authenticationEnabled": "true"}, "authenticationProviders"),
    ("open-to-everybody", WARN, "settings", {"bindAddress": "0.0.0.0"}, "bindAddress=127.0.0.1"),
    ("advertised-address", FAIL, "settings", SETTINGS | {"advertisedAddress": "localhost"}, "advertisedAddress"),
    ("advertised-address", FAIL, "settings", SETTINGS | {"bindAddress": "127.0.0.1"}, "bindAddress=0.0.0.0"),
    ("session-length", WARN, "settings", SETTINGS | {"metadataStoreSessionTimeoutMillis": "500"}, "10000"),
    ("tls-files", FAIL, "certificates", (CERTIFICATE._replace(problem="No such file"),), "tlsCertificateFilePath=/c.pem"),
    ("tls-files", FAIL, "certificates", (CERTIFICATE._replace(key_source="k=/k", key_problem="Permission denied"),), "k=/k"),
    (
        "certificate-time",
        FAIL,
        "certificates",
        (CERTIFICATE._replace(ends_in_seconds=-DAY),),
        "renew the certificate of tlsCert",
    ),
    (
        "certificate-time",
        WARN,
        "certificates",
        (CERTIFICATE._replace(ends_in_seconds=3.0 * DAY),),
        "renew the certificate of tlsCert",
    ),
    ("certificate-time", FAIL, "certificates", (CERTIFICATE._replace(begins_in_seconds=DAY),), "set the clock"),
    (
        "certificate-key",
        FAIL,
        "certificates",
        (CERTIFICATE._replace(key_source="k=/k", key_fits=False),),
        "private key in k=/k",
    ),
    ("certificate-host", WARN, "certificates", (CERTIFICATE._replace(host="c.example"),), "signed with c.example"),
    ("certificate-trust", WARN, "certificates", (CERTIFICATE._replace(is_trusted=False),), "authority that signed tlsCert"),
    ("token-readable", FAIL, "tokens", (TOKEN._replace(problem="No such file"),), "correct authParams"),
    ("token-time", FAIL, "tokens", (TOKEN._replace(ends_in_seconds=-5.0),), "tokens create -s admin"),
    ("token-time", WARN, "tokens", (TOKEN._replace(ends_in_seconds=3600.0),), "tokens create -s admin"),
    ("token-signature", FAIL, "tokens", (TOKEN._replace(signature="not a token of ours"),), "tokenSecretKey"),
    ("disk-free", WARN, "disks", (DiskUse("/d", 100 * GIB, 8 * GIB, 1000, 900),), "room on the disk of /d"),
    ("disk-free", FAIL, "disks", (SOUND["disks"][0], FULL._replace(path="/e")), "room on the disk of /e"),
    ("disk-inodes", FAIL, "disks", (DiskUse("/d", 100 * GIB, 50 * GIB, 1000, 10),), "inodes"),
    ("directories-present", FAIL, "directories", (USED, Directory("/l", None, there=False)), "mount the disk of /l"),
    ("directories-writable", FAIL, "directories", (USED._replace(unwritable="Read-only file system"),), "mount /j read-write"),
    ("cookies-present", FAIL, "directories", (USED, Directory("/l", None)), "mount the disk that belongs at /l"),
    ("cookies-present", FAIL, "directories", (Directory("/j", None), Directory("/l", None)), "belongs at /j"),
    ("cookies-agree", FAIL, "directories", (USED, Directory("/l", OURS.replace("00", "01"))), "journalDirectories"),
    (
        "cookies-agree",
        FAIL,
        "directories",
        (Directory("/j", COOKIE), Directory("/l", COOKIE.replace("a:", "b:"))),
        "journalDirectories",
    ),
    ("cookies-agree", FAIL, "directories", (Directory("/j", ""),), "/j/VERSION"),
    ("format-version", FAIL, "directories", (USED._replace(cookie=OURS.replace("=1", "=2")),), "run the version"),
    ("directories-owned", WARN, "directories", (Directory("/j", COOKIE, owned=False),), "chown -R them"),
    ("journal-files", WARN, "journal_files", 500, "ledger disk"),
    ("stored-files", FAIL, "damages", ("/l/1.log at 4096: checksum",), "delete nothing"),
    ("metadata-file", FAIL, "metadata_file", "/d/metadata.sqlite: malformed", "backup"),
    ("clock-skew", WARN, "skew_seconds", -3.0, "NTP"),
    ("clock-skew", FAIL, "skew_seconds", 120.0, "NTP"),
    ("clock-plausible", FAIL, "year", 1970, "set the clock"),
    ("disk-writable", FAIL, "writable", False, "read-write"),
    ("fsync-time", WARN, "fsync_ms", 40.0, "journalDirectories"),
    ("fsync-time", FAIL, "fsync_ms", 900.0, "journalDirectories"),
    ("open-files-limit", WARN, "files", 4096, "nofile"),
    ("open-files-limit", FAIL, "files", 256, "nofile"),
    ("processes-limit", WARN, "processes", 100, "nproc"),
    ("memory-available", FAIL, "memory", MemoryUse(1 << 20, 0), "add memory"),
    ("memory-limit", WARN, "memory", MemoryUse(4 * GIB, 0, GIB, GIB - (100 << 20)), "raise the limit"),
    ("memory-limit", FAIL, "memory", MemoryUse(4 * GIB, 0, GIB, GIB), "raise the limit"),
    ("swap-in-use", WARN, "memory", MemoryUse(4 * GIB, GIB), "swappiness"),
    ("load", WARN, "load_per_cpu", 9.0, "move something away"),
    ("kernels-compiled", WARN, "compiled", False, "bin/prepare"),
]
BY_ID = {check.id: check for check in CHECKS}


def standalone_wants_two() -> Facts:
    return Facts({**SOUND, "settings": {"managedLedgerDefaultWriteQuorum": "2"}, "kind": "standalone"}, {})


def test_a_sound_cluster_passes_every_check() -> None:
    assert {check.id: judged(check, Facts(SOUND, {})).level for check in CHECKS} == dict.fromkeys(BY_ID, OK)


@pytest.mark.parametrize(("name", "level", "fact", "value", "says"), PLANTED)
def test_a_planted_fault_is_named_with_its_remedy(name: str, level: str, fact: str, value: Any, says: str) -> None:
    finding = judged(BY_ID[name], Facts({**SOUND, fact: value}, {}))
    assert (finding.id, finding.level) == (name, level)
    assert finding.evidence
    assert says in finding.remedy


def test_every_check_has_a_planted_fault() -> None:
    assert len(BY_ID) == len(CHECKS) >= 80
    assert {name for name, *_ in PLANTED} | {"standalone-quorum"} == set(BY_ID)


def test_a_standalone_that_wants_two_bookies_fails_and_a_broker_that_does_is_sound() -> None:
    finding = judged(BY_ID["standalone-quorum"], standalone_wants_two())
    assert finding.level == FAIL
    assert "managedLedgerDefaultWriteQuorum=1" in finding.remedy
    assert judged(BY_ID["standalone-quorum"], Facts({**standalone_wants_two().found, "kind": "broker"}, {})).level == OK


@pytest.mark.parametrize(
    "state",
    [
        CALM._replace(backlog=0, consumers=()),
        STILL._replace(backlog=0),
        CALM._replace(unacked=5),
        STILL._replace(unacked=10, consumers=(CONSUMER,)),
        STILL._replace(delayed=10),
        CALM._replace(consumers=(CONSUMER._replace(permits=0),), unacked=5, is_ackless=True),
    ],
)
def test_a_subscription_that_moves_or_waits_for_its_time_is_in_no_trouble(state: SubscriptionState) -> None:
    facts = Facts({**SOUND, "subscriptions": (state,)}, {})
    assert {judged(check, facts).level for check in CHECKS if check.needs == ("subscriptions",)} == {OK}


def test_a_subscription_has_one_trouble_at_a_time() -> None:
    worst = STILL._replace(blocked=True, unacked=10, is_ackless=True, open_transactions=1, is_throttled=True)
    facts = Facts({**SOUND, "subscriptions": (worst,)}, {})
    named = [check.id for check in CHECKS if judged(check, facts).level != OK]
    assert named == ["blocked-subscriptions"]


DESTRUCTIVE = (
    "unsubscribe",
    "deleteledger",
    "decommissionbookie",
    "set-retention",
    "abort-transaction",
    "cookie_delete",
    "skip",
)
SAYS_SO = ("loses", "lost", "lose", "deletes", "undone", "copies elsewhere", "other bookies have the copies")


def test_no_remedy_loses_data_without_saying_so() -> None:
    remedies = [judged(BY_ID[name], Facts({**SOUND, fact: value}, {})).remedy for name, _, fact, value, _ in PLANTED]
    silent = [
        text for text in remedies if any(word in text for word in DESTRUCTIVE) and not any(word in text for word in SAYS_SO)
    ]
    assert silent == []


def test_the_leader_of_brokers_behind_tls_alone_is_somebody() -> None:
    facts = Facts({**SOUND, "brokers": (BrokerState("a:8443"),), "leader_url": "https://a:8443"}, {})
    assert judged(BY_ID["leader"], facts).level == OK


def test_a_cluster_of_one_kind_of_load_manager_is_sound_also_when_it_is_the_other() -> None:
    for managers in ((), (("a", FOREIGN), ("b", FOREIGN))):
        assert judged(BY_ID["load-managers"], Facts({"load_managers": managers}, {})).level == OK


def test_loopback_is_sound_where_all_of_the_cluster_is_on_this_machine() -> None:
    here = {"metadataStoreUrl": "zk:127.0.0.1:2181", "bindAddress": "127.0.0.1", "advertisedAddress": "localhost"}
    assert judged(BY_ID["advertised-address"], Facts({"settings": here}, {})).level == OK


def test_directories_that_no_bookie_has_used_yet_need_no_version_file() -> None:
    new = (Directory("/j", None, has_files=False), Directory("/l", None, has_files=False))
    facts = Facts({**SOUND, "directories": new}, {})
    assert {judged(check, facts).level for check in CHECKS if check.needs == ("directories",)} == {OK}


def test_a_check_without_its_facts_is_skipped_and_says_why() -> None:
    finding = judged(BY_ID["leader"], Facts({}, {"leader_url": "no server answers: http://x"}))
    assert (finding.level, finding.evidence) == (SKIPPED, "no server answers: http://x")


def test_the_documentation_has_the_table_of_checks_as_they_are() -> None:
    """Written by `bin/pulsar doctor --table`."""
    assert checks_table(CHECKS) in (ROOT / "docs" / "doctor.md").read_text()
