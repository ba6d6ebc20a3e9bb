"""Credentials, certificates, positions and options on Spark: what is right works over TLS, what is wrong is named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker.security.token_maker import token
from tests.certificates import Authority, need_openssl
from tests.clients.python_client import names, publish, published, quiet_client, until
from tests.clients.secured_brokers import pipeline_options, token_file, token_settings
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.spark_process import JobFailed, SparkProcess

pytestmark = [pytest.mark.clients, need_openssl]

JOBS = "tests.pipeline.spark_jobs"
SINK = "tests.pipeline.sink_jobs"
TOPIC = "persistent://public/default/secured"


@dataclass(frozen=True, slots=True)
class Site:
    """Correct options, and certificates of another authority."""

    right: dict[str, str]
    others: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("secured")
    authority, others = Authority(directory / "authority"), Authority(directory / "others")
    credentials = token_file(directory, "admin")
    with ServerProcess(directory / "server", token_settings(authority, "admin")) as server:
        server.start()
        right = {**pipeline_options(server, authority, credentials), "topic": TOPIC}
        yield Site(right, str(others.certificate))


def test_with_the_right_token_over_tls_a_frame_is_written_and_read_and_with_a_wrong_one_neither(
    spark: SparkProcess, site: Site
) -> None:
    wrong = {**site.right, "pulsar.client.authParams": f"token:{token('admin', secret=b'another')}"}
    rows = [("a",), ("b",)]
    with pytest.raises(JobFailed, match="AuthenticationError"):
        spark.run(f"{SINK}:write_rows", options={**wrong, "createTopic": "true"}, rows=rows, schema="value string")
    spark.run(f"{SINK}:write_rows", options={**site.right, "createTopic": "true"}, rows=rows, schema="value string")
    found = spark.run(f"{JOBS}:rows", options=site.right)
    assert [each["value"] for each in found] == [b"a", b"b"]
    with pytest.raises(JobFailed, match="AuthenticationError"):
        spark.run(f"{JOBS}:rows", options=wrong)
    with pytest.raises(JobFailed, match="AuthenticationError"):
        spark.run(f"{JOBS}:rows", options={**wrong, "values": "raw"})
    with pytest.raises(JobFailed, match="AuthenticationError"):
        spark.run(f"{SINK}:write_rows", options=wrong, rows=rows, schema="value string")
    with pytest.raises(JobFailed, match=r"(?i)certificate verify failed"):
        spark.run(f"{JOBS}:rows", options={**site.right, "pulsar.client.tlsTrustCertsFilePath": site.others})
    assert spark.run(f"{JOBS}:count", options=site.right) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"startingOffsets": "999999999:0"}, "{topic}: position 999999999:0 is beyond the end of the topic"),
        ({"startOffsets": "earliest"}, "option startoffsets: not known"),
        ({"topics": "a"}, "only one"),
        ({"failOnDataLoss": "perhaps"}, "option failOnDataLoss=perhaps: expected true or false"),
        ({"columns": "value,price"}, "option columns: price: not there"),
        ({"columns": "value,key,value"}, "option columns: value: there twice"),
        ({"schemaVersion": "7"}, "option schemaVersion=7: .* has no such version"),
        ({"unacknowledgedBy": "nobody"}, "{topic}: there is no subscription nobody"),
        ({"startingOffsets": '{"other": "earliest"}'}, "it has a place of other, which is not read"),
        ({"predefinedSubscription": "s"}, "option predefinedSubscription=s: of a stream"),
    ],
)
def test_a_wrong_option_of_a_batch_read_is_named(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, more: dict[str, str], said: str
) -> None:
    published(standalone, topic, 1)
    with pytest.raises(JobFailed, match=said.format(topic=topic)):
        spark.run(f"{JOBS}:rows", options={**options, "topic": topic, **more})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"startingOffsets": "999999999:0"}, "{topic}: position 999999999:0 is beyond the end of the topic"),
        ({"endingOffsets": "3:4"}, "option endingOffsets=3:4: of a batch, not of a stream"),
    ],
)
def test_a_wrong_option_of_a_stream_is_named_and_the_query_does_not_wait(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, more: dict[str, str], said: str, tmp_path: Path
) -> None:
    published(standalone, topic, 1)
    places = {"to": str(tmp_path / "table"), "checkpoint": str(tmp_path / "checkpoint")}
    with pytest.raises(JobFailed, match=said.format(topic=topic)):
        spark.run(f"{JOBS}:stream_sizes", options={**options, "topic": topic, **more}, **places)


def test_a_stream_goes_on_where_it_was_after_its_broker_was_killed(
    spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory, topic: str
) -> None:
    directory = tmp_path_factory.mktemp("restarted")
    settings = ("brokerDeleteInactiveTopicsEnabled=false", "defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1")
    with ServerProcess(directory / "server", settings) as server:
        ready = server.start()
        client = quiet_client(ready.broker_url)
        try:
            publish(client, topic, 200, batching=True)
            publish(client, topic, 60, first=200)
        finally:
            client.close()
        spark.begin(
            f"{JOBS}:stream_to_parquet",
            options={
                "service.url": ready.broker_url,
                "admin.url": ready.web_url,
                "topic": topic,
                "startingOffsets": "earliest",
                "maxMessagesPerTrigger": "50",
                "pollTimeoutMs": "200000",
            },
            to=str(directory / "table"),
            checkpoint=str(directory / "checkpoint"),
            columns=["cast(value as string) v"],
        )
        until(lambda: begun(directory / "checkpoint"), 400)
        server.kill()
        server.start()
        spark.result()
    found = spark.run(f"{JOBS}:table", path=str(directory / "table"))
    assert sorted(each["v"] for each in found) == sorted(names(0, 260))


def begun(checkpoint: Path) -> bool:
    return any(each.name.isdigit() for each in (checkpoint / "offsets").glob("*"))
