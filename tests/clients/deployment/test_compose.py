"""docker-compose.yml, run as processes: clients go through its proxy while brokers die, its boards show what is there."""

import json
import os
import re
import shutil
import urllib.request
import uuid
from collections.abc import Iterator

import pulsar
import pytest
import yaml

from tests.clients.deployment import dashboards
from tests.clients.deployment.compose_cluster import ComposeCluster, compose_cluster
from tests.clients.python_client import names, publish, quiet_client, receive
from tests.prometheus_text import families
from tests.started_process import ROOT
from tests.toolchain import run_tool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeCluster]:
    with compose_cluster(tmp_path_factory.mktemp("compose")) as running:
        yield running
        codes = running.stop()
        assert set(codes.values()) == {0}, codes


@pytest.fixture
def client(cluster: ComposeCluster) -> Iterator[pulsar.Client]:
    connected = quiet_client(cluster.proxy_url)
    yield connected
    connected.close()


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/t-{uuid.uuid4().hex[:12]}"


def test_every_health_check_of_the_file_says_healthy(cluster: ComposeCluster) -> None:
    checked = [name for name, service in cluster.services.items() if name != "metadata" and service.is_healthy()]
    assert checked == [name for name in cluster.services if name != "metadata"]


def test_messages_published_through_the_proxy_are_received_through_it(client: pulsar.Client, topic: str) -> None:
    for partition in range(6):
        consumer = client.subscribe(f"{topic}-{partition}", "s")
        publish(client, f"{topic}-{partition}", 10)
        assert receive(consumer, 10) == names(0, 10)


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: bytes = answer.read()
        return found


def test_the_admin_rest_answers_through_the_proxy_wherever_the_topic_is(
    cluster: ComposeCluster, client: pulsar.Client, topic: str
) -> None:
    brokers = json.loads(get(f"{cluster.proxy_web_url}/admin/v2/brokers/interpulse"))
    assert set(brokers) == {f"{cluster.places.addresses[f'broker-{number}']}:8080" for number in (1, 2, 3)}
    publish(client, topic, 3)
    for _ in range(3):  # another broker is asked each time, and most of them redirect
        stats = json.loads(get(f"{cluster.proxy_web_url}/admin/v2/{topic.replace('://', '/')}/stats"))
        assert stats["msgInCounter"] == 3


def read_from_bookies(cluster: ComposeCluster, client: pulsar.Client, topic: str) -> None:
    """Reads messages that are not in a broker's cache."""
    client.subscribe(topic, "keeps it all").close()
    publish(client, topic, 20)
    path = f"{cluster.proxy_web_url}/admin/v2/{topic.replace('://', '/')}/unload"
    with urllib.request.urlopen(urllib.request.Request(path, method="PUT"), timeout=60) as answer:
        assert answer.status == 204
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert len([reader.read_next(timeout_millis=60_000) for _ in range(20)]) == 20
    reader.close()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
@pytest.mark.timeout(1200)
def test_every_query_of_the_stock_dashboards_and_of_our_boards_has_data(
    cluster: ComposeCluster, client: pulsar.Client, topic: str
) -> None:
    placed = {target: cluster.places.placed(target) for target in dashboards.targets()}
    binary = dashboards.built()
    consumer = client.subscribe(topic, "s")
    scrapes = []
    for turn in range(2):  # or nothing has a rate
        publish(client, topic, 20, first=20 * turn)
        receive(consumer, 20)
        read_from_bookies(cluster, client, f"{topic}-{turn}")
        scrapes += dashboards.scrape(placed, turn)
    assert dashboards.without_data(binary, scrapes, dashboards.stock_queries()) == []
    assert dashboards.without_data(binary, scrapes, dashboards.board_queries()) == []


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
@pytest.mark.timeout(1200)
def test_alert_rules_are_sound_and_ask_for_what_is_told(cluster: ComposeCluster, client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "s").close()  # or nothing is told of subscriptions
    publish(client, topic, 1)
    placed = {target: cluster.places.placed(target) for target in dashboards.targets()}
    scrapes, rules = dashboards.scrape(placed), dashboards.DEPLOY / "alerts.yml"
    assert all(families(scrape.text.removesuffix("up 1\n")) for scrape in scrapes)
    groups = yaml.safe_load(rules.read_text())["groups"]
    names = sorted({name for group in groups for rule in group["rules"] for name in dashboards.metric_names(rule["expr"])})
    binary = dashboards.built()
    assert dashboards.asked(binary, [], [], [rules])["rule_errors"] == []
    told = {name for one in scrapes for name in re.findall(r"^([A-Za-z_]\w*)", one.text, re.MULTILINE)}
    assert sorted(set(names) - told - {"success", "quantile"}) == []
    assert len(names) > 10


def owner_of(cluster: ComposeCluster, topic: str) -> str:
    """The name of the broker that serves it."""
    found = json.loads(get(f"{cluster.proxy_web_url}/lookup/v2/topic/{topic.replace('://', '/')}"))["brokerUrl"]
    return next(name for name, address in cluster.places.addresses.items() if found == f"pulsar://{address}:6650")


def test_a_broker_is_killed_behind_the_proxy_and_the_client_goes_on(
    cluster: ComposeCluster, client: pulsar.Client, topic: str
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, block_if_queue_full=True, send_timeout_millis=0, batching_enabled=False)
    confirmed: list[str] = []

    def on_sent(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        if result == pulsar.Result.Ok:
            confirmed.append(str(message_id))

    owner = cluster.services[owner_of(cluster, topic)]
    for index in range(200):
        producer.send_async(f"m{index}".encode(), on_sent)
        if index == 100:
            owner.kill()
    producer.flush()
    assert len(confirmed) == 200
    got: dict[str, None] = {}
    while f"m{199}" not in got:
        got.update(dict.fromkeys(receive(consumer, 1)))
    assert list(got) == names(0, 200)
    owner.start().wait_until_healthy()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
def test_a_go_client_goes_on_too(cluster: ComposeCluster, topic: str) -> None:
    quiet = quiet_client(cluster.proxy_url)
    quiet.create_producer(topic)  # so that somebody owns it
    quiet.close()
    owner = cluster.services[owner_of(cluster, topic)]
    environment = {
        **os.environ,
        "PULSAR_TEST_URL": cluster.proxy_url,
        "PULSAR_TEST_TOPIC": topic,
        "PULSAR_TEST_OWNER": str(owner.pid),
    }
    command = ["go", "test", "-count=1", "-tags", "cluster", "-run", "TestAKilledBroker", "."]
    run_tool(command, ROOT / "tests" / "clients" / "go", 150, environment)
    owner.kill()  # it has been, by the test
    owner.start().wait_until_healthy()
