"""Topics of a real standalone come from the files of the bookie inside it: in mid-read, beside another one, on Spark."""

import json
import os
import random
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pulsar
import pytest

from pipeline.pyspark_pulsar.client import split_rows
from pipeline.pyspark_pulsar.client.admin import ledgers_of
from pipeline.pyspark_pulsar.client.bookies import bookie_reader, bookies_inside
from pipeline.pyspark_pulsar.client.split_rows import rows_of_split
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.options import parse_options
from pipeline.pyspark_pulsar.plan import splits_of
from pipeline.pyspark_pulsar.positions import EARLIEST, end_of, ranges_between
from tests.broker.security.token_maker import SECRET, in_setting, token
from tests.clients.python_client import names, publish, published, quiet_client, until
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.random_topics.messages import Author, Kind, Sent
from tests.pipeline.random_topics.peer import Peer
from tests.pipeline.spark_process import SparkProcess
from tests.started_process import ROOT, StartedProcess, free_port
from wire.generated.pulsar_api_pb2 import REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST
from wire.payloads import payload_section

pytestmark = pytest.mark.clients

JOBS = "tests.pipeline.spark_jobs"
COUNT = 300
TOPIC = "persistent://public/default/filed"
KEPT = ("brokerDeleteInactiveTopicsEnabled=false", "defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1")
GUARDED = (
    "authenticationEnabled=true",
    "authorizationEnabled=true",
    "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    f"tokenSecretKey={in_setting(SECRET)}",
    "superUserRoles=admin",
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets all answers about bookies inside."""
    monkeypatch.setattr(bookies_inside, "_remembered", {})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With COUNT messages, each an entry, in TOPIC: in a ledger that is closed, and in files."""
    with ServerProcess(tmp_path_factory.mktemp("standalone"), KEPT) as process:
        yield filled(process)


def filled(process: ServerProcess, first: int = 0) -> ServerProcess:
    """A stop closes ledgers, and what is in memory goes into files."""
    published(process.start(), TOPIC, COUNT, first=first)
    assert process.stop() == 0
    process.start()
    return process


def where(server: ServerProcess, **more: str) -> dict[str, str]:
    ready = server.ready
    assert ready is not None
    return {"service.url": ready.broker_url, "admin.url": ready.web_url, "topic": TOPIC, "pollTimeoutMs": "60000", **more}


def values(given: dict[str, str]) -> Iterator[str]:
    """Values, read as the tasks of a query read a topic."""
    options = parse_options(given, is_stream=False)
    [topic] = options.topics
    ledgers = ledgers_of(topic, options.access, options.reads_bookies)
    for split in splits_of(topic, ranges_between(ledgers, EARLIEST, end_of(ledgers)), options.split_bytes):
        for rows in rows_of_split(split, options):
            yield from (each["value"].decode() for each in batch_of(rows, topic, ["value"]).to_pylist())


def told_entries(server: ServerProcess) -> int:
    """Number of entries whose places in files the bookie has told."""
    assert server.ready is not None
    with urllib.request.urlopen(f"{server.ready.web_url}/metrics", timeout=60) as answer:
        [found] = re.findall(r"^bookie_local_read_entries\{.*\} (\d+)$", answer.read().decode(), re.MULTILINE) or ["0"]
    return int(found)


def local_reads(url: str, role: str = "") -> int:
    """The status with which the route answers."""
    headers = {"Authorization": f"Bearer {token(role)}"} if role else {}
    try:
        request = urllib.request.Request(f"{url}/admin/v2/bookies/local-reads", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_rows_come_from_the_files_and_not_through_the_broker(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the broker was asked for entries")

    monkeypatch.setattr(split_rows, "SplitReader", never)
    before = told_entries(server)
    assert list(values(where(server))) == names(0, COUNT)
    assert told_entries(server) - before == COUNT


@pytest.mark.parametrize("way", ["auto", "broker"])
def test_a_marker_at_the_end_keeps_nobody_waiting(server: ServerProcess, way: str) -> None:
    """A broker without transactions has markers of replicated subscriptions, which no consumer is given."""
    assert server.ready is not None
    topic = f"persistent://public/default/marked-{way}"
    author = Author("p")
    about = author.metadata(random.Random(1))
    about.marker_type = REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST
    marker = Sent(payload_section(about, b"of the cluster"), about.sequence_id, kind=Kind.NOTHING)
    published(server.ready, topic, 2)
    with Peer(server.ready.broker_url, topic) as peer:
        peer.send([("p", marker)])
    assert list(values(where(server, topic=topic, readFrom=way, pollTimeoutMs="5000"))) == names(0, 2)


def test_spark_reads_the_files_and_with_readfrom_broker_it_does_not(spark: SparkProcess, server: ServerProcess) -> None:
    before = told_entries(server)
    found = spark.run(f"{JOBS}:rows", options=where(server))
    assert [each["value"].decode() for each in found] == names(0, COUNT)
    assert told_entries(server) - before == COUNT
    found = spark.run(f"{JOBS}:rows", options=where(server, readFrom="broker"))
    assert [each["value"].decode() for each in found] == names(0, COUNT)
    assert told_entries(server) - before == COUNT


def test_a_ledger_that_is_written_to_is_read_from_files_as_far_as_it_is_in_them(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, (*KEPT, "flushInterval=50")) as process:
        ready = process.start()
        with closing(quiet_client(ready.broker_url)) as client:
            publish(client, TOPIC, COUNT)
            until(lambda: list(values(where(process))) == names(0, COUNT) and told_entries(process) >= COUNT)
            publish(client, TOPIC, 20, first=COUNT)
        assert list(values(where(process))) == names(0, COUNT + 20)


def test_a_super_user_reads_from_files_and_others_through_the_broker(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, (*KEPT, *GUARDED)) as process:
        process.start()
        for_admin, for_reader = (
            {"pulsar.client.authParams": f"token:{token(role)}", "topic": TOPIC} for role in ("admin", "reader")
        )
        ready = process.ready
        assert ready is not None
        grant(ready, "reader")
        client = pulsar.Client(ready.broker_url, authentication=pulsar.AuthenticationToken(token("admin")))
        with closing(client):
            publish(client, TOPIC, COUNT)
        assert process.stop() == 0
        url = process.start().web_url
        assert [local_reads(url, role) for role in ("", "reader", "admin")] == [401, 401, 200]
        assert list(values({**where(process), **for_reader})) == names(0, COUNT)
        assert told_entries(process) == 0
        assert list(values({**where(process), **for_admin})) == names(0, COUNT)
        assert told_entries(process) == COUNT


def grant(ready: Ready, role: str) -> None:
    """Permits the role to consume in public/default."""
    request = urllib.request.Request(
        f"{ready.web_url}/admin/v2/namespaces/public/default/permissions/{role}",
        b'["consume"]',
        {"Authorization": f"Bearer {token('admin')}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 204


def test_without_local_reads_all_comes_through_the_broker(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, (*KEPT, "allowLocalReads=false")) as process:
        filled(process)
        assert list(values(where(process))) == names(0, COUNT)
        assert told_entries(process) == 0
        ready = process.ready
        assert ready is not None
        with urllib.request.urlopen(f"{ready.web_url}/admin/v2/bookies/local-reads", timeout=60) as answer:
            assert json.load(answer) == {}


def test_through_a_proxy_on_the_same_machine_the_files_are_found_too(server: ServerProcess, tmp_path: Path) -> None:
    ready, before = server.ready, told_entries(server)
    assert ready is not None
    told = (
        *(f"brokerServiceURL={ready.broker_url}", f"brokerWebServiceURL={ready.web_url}", "bindAddress=127.0.0.1"),
        *(f"brokerProxyAllowedTargetPorts={server.ports[0]}", "brokerProxyAllowedHostNames=127.0.0.*"),
        *(f"servicePort={free_port()}", f"webServicePort={free_port()}"),
    )
    with StartedProcess(tmp_path) as proxy:
        sets = [word for each in told for word in ("--set", each)]
        proxy.launch_command([str(ROOT / "bin" / "pulsar"), "proxy", "--json-ready", str(proxy.ready_file), *sets])
        found = proxy.until_ready_file()
        urls = {"service.url": found["serviceUrl"], "admin.url": found["webServiceUrl"]}
        assert list(values({**where(server), **urls})) == names(0, COUNT)
    assert told_entries(server) - before == COUNT


def test_each_of_two_standalones_is_read_from_its_own_files(server: ServerProcess, tmp_path: Path) -> None:
    """Both call their bookie 127.0.0.1:3181, and number their ledgers alike."""
    with ServerProcess(tmp_path, KEPT) as process:
        other, before = filled(process, first=1000), told_entries(server)
        assert list(values(where(other))) == names(1000, COUNT)
        assert list(values(where(server))) == names(0, COUNT)
        assert told_entries(other) == told_entries(server) - before == COUNT
        mixed = {**where(server), "admin.url": where(other)["admin.url"]}
        assert list(values(mixed)) == names(0, COUNT)  # what the files of the other one have was compared, and left


def test_a_standalone_that_is_killed_and_started_again_loses_nothing_and_gives_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_reader, "_WINDOW_ENTRIES_MAX", 20)
    with ServerProcess(tmp_path, KEPT) as process:
        filled(process)
        found = values(where(process))
        some = [next(found) for _ in range(50)]
        assert told_entries(process) > 0
        process.kill()
        process.start()
        assert some + list(found) == names(0, COUNT)
        assert told_entries(process) == 0  # the files went with the process
        assert list(values(where(process))) == names(0, COUNT)  # and whoever comes next has those of the new one
        assert told_entries(process) == COUNT


def test_spark_goes_on_with_the_files_of_a_standalone_that_was_killed_after_the_plan(
    spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ExitStack() as running:
        directory = tmp_path_factory.mktemp("killed")
        process = filled(running.enter_context(ServerProcess(directory / "server", KEPT)))
        planned, go_on = directory / "planned", directory / "go-on"
        for each in (planned, go_on):
            os.mkfifo(each)
        spark.begin(f"{JOBS}:planned_then", options=where(process), planned=str(planned), go_on=str(go_on))
        planned.read_text()
        process.kill()
        process.start()
        go_on.write_text("")
        assert [each["value"].decode() for each in spark.result()] == names(0, COUNT)
        assert told_entries(process) == COUNT
