"""Every metric says in a sentence what it counts: scrapes of real processes, read by the strict rules of the text form."""

import datetime
import urllib.request
from pathlib import Path

import pulsar
import pytest

from bookie.web.metrics import counters_text
from bookkeeper.repair.counters import RepairCounters
from broker.proxy.counts import Counts
from ports.metrics.metric_help import FILE, head, help_of
from tests.cli.bookkeeper_shell.shell_cluster import Cluster
from tests.clients.python_client import publish, quiet_client, receive
from tests.clients.server_process import ServerProcess
from tests.prometheus_text import Family, NotPrometheus, families

TOPIC = "persistent://public/default/measured"
ASKED_FOR = (
    "transactionCoordinatorEnabled=true",
    "exposeProducerLevelMetricsInPrometheus=true",
    "exposeConsumerLevelMetricsInPrometheus=true",
    "exposeManagedCursorMetricsInPrometheus=true",
    "exposeSubscriptionBacklogSizeInPrometheus=true",
)


def scraped(url: str) -> dict[str, Family]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        return families(answer.read().decode())


def used(broker_url: str, web_url: str) -> None:
    """Something of each kind has happened: publishing, schemas, delays, acknowledgements, a compaction."""
    client = quiet_client(broker_url)
    consumer = client.subscribe(TOPIC, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(f"{TOPIC}-2", schema=pulsar.schema.StringSchema())
    producer.send("later", partition_key="k", deliver_after=datetime.timedelta(hours=1))
    publish(client, TOPIC, 20)
    assert len(receive(consumer, 20)) == 20
    path = TOPIC.replace("://", "/")
    request = urllib.request.Request(f"{web_url}/admin/v2/{path}/compaction", method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 204
    client.close()


def test_every_metric_of_a_standalone_has_a_sentence(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, ASKED_FOR) as server:
        ready = server.start()
        used(ready.broker_url, ready.web_url)
        found = scraped(ready.web_url)
        assert server.stop() == 0
    assert len(found) > 150
    assert found["pulsar_in_messages_total"].help == "Messages that were published to a topic."


def test_every_metric_of_a_bookie_has_a_sentence(cluster: Cluster) -> None:
    found = scraped(f"http://127.0.0.1:{cluster.metrics_port}")
    assert len(found) > 60
    assert found["bookkeeper_server_ADD_ENTRY_REQUEST"].help == "Time of requests of the kind ADD_ENTRY, in milliseconds."


def test_every_metric_of_a_proxy_and_of_autorecovery_has_a_sentence() -> None:
    assert len(families(Counts().text(1, 2))) > 20
    assert len(families(counters_text(RepairCounters().values()))) > 15


def test_each_line_of_the_table_is_a_name_and_a_sentence() -> None:
    rows = [row.split(" ", 1) for row in FILE.read_text().splitlines() if row and not row.startswith("#")]
    assert [row for row in rows if len(row) != 2 or not row[1].endswith(".") or "\\" in row[1]] == []
    assert len({name for name, _ in rows}) == len(rows)


def test_a_metric_that_nobody_explained_is_told_with_its_type_alone() -> None:
    assert head("unheard_of", "gauge") == "# TYPE unheard_of gauge\n"
    assert help_of("pulsar_entry_size_le_1_kb").startswith("Entries of a topic of up to 1_kb ")


@pytest.mark.parametrize(
    "text",
    [
        "# TYPE a gauge\na 1\n",
        "# HELP a It counts.\n# TYPE a gauge\nb 1\n",
        "# HELP a It counts.\n# TYPE a gauge\na 1\na 2\n",
        '# HELP a It counts.\n# TYPE a gauge\na 1\n# HELP b It counts.\n# TYPE b gauge\nb 1\na{x="y"} 1\n',
        '# HELP a It counts.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\n',
    ],
)
def test_the_reader_of_these_tests_refuses_what_breaks_a_rule(text: str) -> None:
    with pytest.raises(NotPrometheus):
        families(text)
