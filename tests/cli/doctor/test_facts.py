"""The facts that the doctor finds: in answers of servers, in directories, in certificates and tokens, on this machine."""

import json
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import jwt
import pytest

from cli.admin.http import Answer, Refused, Unreachable
from cli.admin.request import Request
from cli.client_configuration import ClientConfiguration
from cli.doctor.__main__ import main
from cli.doctor.check import FAIL, OK, Facts, judged
from cli.doctor.checks.bookies import Bookies
from cli.doctor.checks.subscriptions import Trouble, trouble_of
from cli.doctor.examination import CHECKS
from cli.doctor.facts.cluster import bookie_facts, broker_states, server_facts, unreachable
from cli.doctor.facts.credentials import certificate_facts, token_facts
from cli.doctor.facts.local import kind_of_settings, machine_facts, settings_facts
from cli.doctor.facts.metadata import Quorums, cookie_problem, metadata_facts, quorums_of, servers_in
from cli.doctor.facts.network_probe import NO_ADDRESS, addresses_in, deaths_at, port_taken, problem_at
from cli.doctor.facts.storage import storage_facts
from cli.doctor.facts.topics import Topics, slow_transactions
from tests.certificates import Authority, need_openssl
from tests.started_process import free_port

NOW = 1_800_000_000.0
BY_ID = {check.id: check for check in CHECKS}
COOKIE = 'bookieHost: "a:3181"\ninstanceId: "x"\n'
FOREIGN = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
SECRET = bytes(range(32))


class Server:
    """An admin REST, or a bookie's HTTP, with these answers."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = answers

    def ask(self, request: Request) -> Answer:
        if request.path not in self.answers:
            raise Refused(404, "not found")
        return Answer(200, {"date": "Sat, 21 Nov 2026 12:00:00 GMT"}, self.answers[request.path])


class Nobody:
    """Refuses the connection."""

    def ask(self, request: Request) -> Answer:
        raise Unreachable("http://x: refused") from ConnectionRefusedError(111, "Connection refused")


SUBSCRIPTION = {
    "type": "Shared",
    "msgBacklog": 9,
    "unackedMessages": 2,
    "consumers": [{"consumerName": "c", "address": "/1.2.3.4:5", "availablePermits": 5}],
    "nonContiguousDeletedMessagesRanges": 3,
    "lastConsumedTimestamp": (NOW - 300) * 1000,
    "lastAckedTimestamp": (NOW - 5) * 1000,
}
STATS = {
    "subscriptions": {"s": SUBSCRIPTION, "__compaction": {"msgBacklog": 4}},
    "compaction": {"lastCompactionFailedTimestamp": 2, "lastCompactionSucceedTimestamp": 1},
    "backlogSize": 90,
    "backlogQuotaLimitSize": 100,
}
ANSWERS = {
    "/admin/v2/clusters": b'["c"]',
    "/admin/v2/clusters/c": b'{"serviceUrl":"http://a:8080,b:8080"}',
    "/admin/v2/brokers/c": b'["a:8080","b:8080"]',
    "/admin/v2/brokers/health": b"ok",
    "/admin/v2/brokers/leaderBroker": b'{"serviceUrlTls":"https://a:8443"}',
    "/admin/v2/brokers/configuration/runtime": json.dumps({"loadManagerClassName": FOREIGN}).encode(),
    "/admin/v2/bookies/all": b'{"bookies":[{"bookieId":"a:3181"}]}',
    "/admin/v2/tenants": b'["t"]',
    "/admin/v2/namespaces/t": b'["t/n"]',
    "/admin/v2/namespaces/t/n": json.dumps(
        {"retention_policies": {"retentionSizeInMB": -1, "retentionTimeInMinutes": -1}, "bundles": {"numBundles": 4}}
    ).encode(),
    "/admin/v2/persistent/t/n": b'["persistent://t/n/a","persistent://t/n/gone"]',
    "/admin/v2/persistent/t/n/a/stats": json.dumps(STATS).encode(),
    "/admin/v2/persistent/t/n/a/backlogQuotaMap?applied=true": b'{"destination_storage":{"policy":"producer_exception"}}',
    "/admin/v3/transactions/slowTransactions/1": json.dumps(
        {"(0,7)": {"openTimestamp": (NOW - 700) * 1000}, "(0,8)": {"openTimestamp": NOW * 1000}}
    ).encode(),
}


def topics(patience_seconds: float = 120.0) -> Topics:
    found = Topics(Server(ANSWERS), NOW, 500, patience_seconds, 1000)
    found.read()
    return found


def test_topic_stats_become_subscription_quota_and_retention_facts() -> None:
    facts = topics().facts()
    (state,) = facts["subscriptions"]
    assert (state.backlog, state.unacked, state.holes, str(state.consumers[0])) == (9, 2, 3, "consumer c at /1.2.3.4:5")
    assert (state.is_silent, state.is_ackless, trouble_of(state)) == (True, False, Trouble.STUCK)
    assert facts["unbounded"] == ("t/n",)
    assert [(each.used, each.limit, each.policy) for each in facts["quotas"]] == [(90, 100, "producer_exception")]
    assert judged(BY_ID["compaction"], Facts(facts, {})).evidence.startswith("the last compaction failed")
    assert (facts["rate_limited"], facts["refused_topics"]) == ((), ())


def test_a_subscription_that_stands_still_for_less_than_the_patience_is_not_stuck() -> None:
    (state,) = topics(patience_seconds=1000.0).facts()["subscriptions"]
    assert trouble_of(state) is None


def test_a_topic_that_gives_no_answer_in_time_is_named_and_three_of_them_end_it() -> None:
    class Silent(Server):
        def ask(self, request: Request) -> Answer:
            if request.path.endswith("/stats"):
                raise Unreachable("http://a: timed out") from TimeoutError()
            return super().ask(request)

    def read(names: list[str]) -> Topics:
        listed = {"/admin/v2/persistent/t/n": json.dumps([f"persistent://t/n/{name}" for name in names]).encode()}
        found = Topics(Silent({**ANSWERS, **listed}), NOW, 500, 1.0, 1000)
        found.read()
        return found

    refused = read(["a"]).facts()["refused_topics"]
    assert judged(BY_ID["topics-answer"], Facts({"refused_topics": refused}, {})).level == FAIL
    with pytest.raises(Unreachable):
        read(["a", "b", "c", "d"])


def test_a_transaction_is_slow_by_how_long_it_has_been_open() -> None:
    assert slow_transactions(Server(ANSWERS), NOW, 600.0) == ("(0,7)",)


def test_a_broker_tells_of_itself_and_a_leader_behind_tls_alone_is_somebody() -> None:
    facts = server_facts(Server(ANSWERS), "http://a:8080", lambda broker: Server(ANSWERS))
    assert facts.found["leader_url"] == "https://a:8443"
    assert facts.found["ids"] == ("a:8080", "b:8080")
    assert facts.found["cluster_urls"] == ("a:8080", "b:8080")
    assert judged(BY_ID["server-answers"], facts).level == OK
    without = server_facts(Server({"/admin/v2/clusters": b"[]"}), "http://a:8080", lambda broker: Nobody())
    assert judged(BY_ID["leader"], Facts({**without.found, "leader_url": "", "brokers": ()}, {})).level == "warn"


def test_a_server_that_is_not_there_is_a_failure_that_says_how_to_start_it() -> None:
    finding = judged(BY_ID["server-answers"], server_facts(Nobody(), "http://a:8080", lambda _: Nobody()))
    assert finding.level == FAIL
    assert "start the broker" in finding.remedy


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (TimeoutError(), "stands still"),
        (ConnectionResetError(104, "reset"), "webServicePort"),
        (ConnectionRefusedError(111, "refused"), "start the broker"),
    ],
)
def test_each_way_not_to_answer_has_its_remedy(cause: Exception, says: str) -> None:
    error = Unreachable("http://x")
    error.__cause__ = cause
    assert says in unreachable("http://x", error).remedy


def test_credentials_that_are_refused_are_named_as_that() -> None:
    class Strict:
        def ask(self, request: Request) -> Answer:
            raise Refused(401, "Authentication required")

    assert "authParams" in judged(BY_ID["server-answers"], server_facts(Strict(), "http://a", lambda _: Strict())).remedy


def test_a_registered_broker_that_listens_nowhere_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        here, gone = f"127.0.0.1:{listening.getsockname()[1]}", f"127.0.0.1:{free_port()}"
        server = Facts({"ids": (here, gone), "answering": unreachable("x", Unreachable("x"))._replace(problem="")}, {})
        states = broker_states(server, {here: {"pulsarServiceUrl": f"pulsar://{gone}"}}, (), lambda _: Server({}))
    assert [(each.name, bool(each.problem)) for each in states] == [(here, True), (gone, True)]


def test_a_bookie_tells_of_replication_and_of_bookies_that_take_no_writes() -> None:
    lists = {
        "/api/v1/bookie/list_bookies?type=rw": b'{"a":null,"b":null}',
        "/api/v1/bookie/list_bookies?type=ro": b'{"c":null}',
    }
    lacking = {
        "/api/v1/autorecovery/list_under_replicated_ledger/?printmissingreplica=true": b'{"1":["d"],"2":["d"]}',
        "/api/v1/autorecovery/who_is_auditor": b"Auditor: a",
        "/api/v1/autorecovery/status": b'{"enabled":false}',
    }
    found = bookie_facts(Server(lists | lacking), Quorums(3, 2)).found
    assert found["bookies"].read_only == ("c",)
    replication = found["replication"]
    assert (replication.lacking, replication.missing, replication.is_enabled, replication.auditor) == (
        (1, 2),
        ("d",),
        False,
        "a",
    )
    assert bookie_facts(Server(lists), Quorums(3, 2)).found["replication"].lacking == ()
    assert "bookies" in bookie_facts(Nobody(), Quorums(1, 1)).missing


def test_metadata_servers_and_quorums_are_found_in_a_configuration() -> None:
    assert servers_in({"metadataStoreUrl": "zk:a:2181,b:2181/x"}) == "a:2181,b:2181/x"
    assert servers_in({"metadataServiceUri": "zk+hierarchical://a:2181;b:2181/ledgers"}) == "a:2181,b:2181"
    assert servers_in({"metadataStoreUrl": "rocksdb://x"}) == servers_in({}) == ""
    assert quorums_of({"managedLedgerDefaultEnsembleSize": "3"}) == Quorums(3, 2)
    assert quorums_of({"bookkeeperClientEnforceMinNumRacksPerWriteQuorum": "true"}).racks_min == 2
    assert Bookies(("a", "b"), unreachable={"a": "refuses"}).serving == ("b",)


def test_a_cookie_with_other_directories_is_told() -> None:
    cookie = '5\nbookieHost: "a:3181"\njournalDir: "/j"\nledgerDirs: "2\\t/l\\t/m"\ninstanceId: "x"\n'
    assert cookie_problem("a:3181", cookie, {"journalDirectories": "/j", "ledgerDirectories": "/l,/m"}) == ""
    assert "ledgerDirectories=/l,/m" in cookie_problem("a:3181", cookie, {"ledgerDirectories": "/l"})


# ---- Directories


def test_directories_of_a_stopped_bookie_of_apaches_are_found_with_their_cookies(tmp_path: Path) -> None:
    for name in ("journal", "ledgers"):
        (tmp_path / name / "current").mkdir(parents=True)
        (tmp_path / name / "current" / "VERSION").write_text(COOKIE)
    (tmp_path / "ledgers" / "current" / "VERSION").write_text(COOKIE.replace("a:3181", "b:3181"))
    facts = storage_facts(tmp_path, {})
    assert judged(BY_ID["cookies-present"], facts).level == OK
    assert judged(BY_ID["cookies-agree"], facts).level == FAIL
    assert "damages" in facts.missing


def test_directories_of_our_own_bookie_are_found_too(tmp_path: Path) -> None:
    for name, instance in (("journal", "x"), ("ledgers", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "VERSION").write_text(f"version=1\ninstance={instance}\nsecret=00\n")
    (tmp_path / "journal" / "0000000000000001.journal").touch()
    facts = storage_facts(tmp_path, {})
    assert (len(facts.found["directories"]), facts.found["journal_files"]) == (2, 1)
    assert judged(BY_ID["cookies-agree"], facts).level == FAIL


def test_a_directory_without_its_version_file_is_seen_in_a_standalone_and_by_its_files(tmp_path: Path) -> None:
    for name in ("journal", "ledgers"):
        (tmp_path / "bookkeeper" / name).mkdir(parents=True)
    (tmp_path / "bookkeeper" / "journal" / "0000000000000001.journal").touch()
    facts = storage_facts(tmp_path, {})
    assert judged(BY_ID["cookies-present"], facts).level == FAIL
    alone = tmp_path / "bookkeeper"
    assert judged(BY_ID["cookies-present"], storage_facts(alone, {})).level == FAIL


def test_a_directory_that_the_settings_name_and_that_is_not_there_is_seen(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    settings = {"journalDirectories": str(tmp_path / "journal"), "ledgerDirectories": str(tmp_path / "ledgers")}
    assert judged(BY_ID["directories-present"], storage_facts(tmp_path, settings)).level == FAIL


def test_a_metadata_file_that_is_no_database_is_seen(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "metadata.sqlite").write_bytes(b"no database at all" * 100)
    assert judged(BY_ID["metadata-file"], storage_facts(tmp_path, {})).level == FAIL


# ---- Certificates and tokens


@need_openssl
def test_certificates_are_judged_by_their_keys_hosts_and_authorities(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    own, other = authority.sign("own"), authority.sign("other")
    settings = {
        "tlsCertificateFilePath": str(own.certificate),
        "tlsKeyFilePath": str(own.key),
        "tlsTrustCertsFilePath": str(authority.certificate),
        "advertisedAddress": "localhost",
    }

    def failing(**changed: str) -> set[str]:
        facts = Facts({"certificates": certificate_facts(settings | changed, ClientConfiguration(), ())}, {})
        wrong = {check.id for check in CHECKS if check.needs == ("certificates",) and judged(check, facts).level != OK}
        return wrong - {"certificate-time"}  # they are made for two days

    assert failing() == set()
    assert failing(tlsKeyFilePath=str(other.key)) == {"certificate-key"}
    assert failing(advertisedAddress="elsewhere.example") == {"certificate-host"}
    assert failing(tlsTrustCertsFilePath=str(stranger.certificate)) == {"certificate-trust"}
    assert failing(tlsKeyFilePath=str(tmp_path / "none")) == {"tls-files"}
    (tmp_path / "text").write_text("no certificate")
    assert failing(tlsCertificateFilePath=str(tmp_path / "text")) == {"tls-files"}


def test_tokens_are_judged_by_their_time_and_their_key(tmp_path: Path) -> None:
    key = tmp_path / "secret.key"
    key.write_bytes(SECRET)

    def failing(claims: Mapping[str, object], secret: bytes = SECRET) -> set[str]:
        client = ClientConfiguration(auth_plugin="token", auth_params="token:" + jwt.encode(dict(claims), secret, "HS256"))
        facts = Facts({"tokens": token_facts({"tokenSecretKey": f"file://{key}"}, client)}, {})
        return {check.id for check in CHECKS if check.needs == ("tokens",) and judged(check, facts).level == FAIL}

    assert failing({"sub": "admin"}) == failing({"sub": "admin", "exp": time.time() + 10**7}) == set()
    assert failing({"sub": "admin", "exp": time.time() - 60}) == {"token-time"}
    assert failing({"sub": "admin"}, bytes(32)) == {"token-signature"}
    missing = ClientConfiguration(auth_plugin="token", auth_params=f"file://{tmp_path}/none")
    assert judged(BY_ID["token-readable"], Facts({"tokens": token_facts({}, missing)}, {})).level == FAIL


# ---- This machine, and the command


def test_facts_of_this_machine_can_be_found(tmp_path: Path) -> None:
    facts = machine_facts(tmp_path / "not" / "there")
    assert facts.found["writable"]
    assert facts.found["fsync_ms"] > 0
    assert set(facts.found) >= {"files", "processes", "year", "compiled", "memory"}
    assert storage_facts(tmp_path / "not" / "there", {}).found["disks"]


def test_an_address_is_tried_with_a_connection() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        assert (problem_at(f"127.0.0.1:{port}"), port_taken(port)) == ("", True)
    assert "nothing listens" in problem_at(f"127.0.0.1:{free_port()}")
    assert problem_at("nonsense") == "is no host:port"
    assert addresses_in("http://a:8080,b") == ["a:8080", "b:80"]


def test_a_name_that_has_no_address_here_is_no_dead_bookie_and_no_dead_zookeeper_of_the_brokers() -> None:
    elsewhere = "bookie.invalid:3181"
    assert problem_at(elsewhere) == NO_ADDRESS
    assert deaths_at([elsewhere, f"127.0.0.1:{free_port()}"]).keys().isdisjoint({elsewhere})
    told = {"metadataStoreUrl": "zk:zookeeper.invalid:2181"}
    assert "metadata" in metadata_facts({}, told, Quorums(1, 1)).missing
    assert judged(BY_ID["metadata-answers"], metadata_facts(told, {}, Quorums(1, 1))).level == FAIL


def test_ports_of_the_settings_are_tried(tmp_path: Path) -> None:
    file = tmp_path / "standalone.conf"
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        settings = {"webServicePort": str(listening.getsockname()[1]), "brokerServicePort": str(free_port())}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        stopped = settings_facts(settings, file, "standalone", server_runs=False)
        running = settings_facts(settings, file, "standalone", server_runs=True)
    assert stopped.found["taken_ports"] == (f"webServicePort={settings['webServicePort']}",)
    assert running.found["silent_ports"] == (f"brokerServicePort={settings['brokerServicePort']}",)


def test_a_file_is_of_the_process_that_its_name_or_its_keys_say() -> None:
    assert kind_of_settings({}, Path("my.conf")) == "standalone"
    assert kind_of_settings({"metadataStoreUrl": "zk:a:2181"}, Path("my.conf")) == "broker"
    assert kind_of_settings({"metadataServiceUri": "zk://a/ledgers"}, Path("my.conf")) == "bookie"


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


def test_a_server_that_does_not_answer_ends_with_1_unless_nobody_is_to_be_asked(tmp_path: Path) -> None:
    words = ["--admin-url", f"http://127.0.0.1:{free_port()}", "--data-dir", str(tmp_path), "--only", "server-answers"]
    assert main(words) == 1
    assert main([*words, "--offline"]) == 0


def test_a_check_that_is_not_there_and_a_file_that_is_not_there_are_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", "nothing"]) == 2
    assert main(["--config", str(tmp_path / "none")]) == 2
    assert "nothing" in capsys.readouterr().err
