"""A stream's subscription on a started standalone: it stands where it was put, and what is before it is no backlog."""

from pulsar import ConsumerType

from pipeline.pyspark_pulsar.client.admin import ledgers_of, unacknowledged_of
from pipeline.pyspark_pulsar.client.mirror import Mirror
from pipeline.pyspark_pulsar.client.split_rows import rows_of_split
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.options import parse_options
from pipeline.pyspark_pulsar.plan import Split
from pipeline.pyspark_pulsar.positions import Place
from tests.clients.python_client import ask, publish, published, quiet_client, until
from tests.clients.server_process import Ready


def test_a_mirror_subscription_is_created_at_its_position_and_moves_on(
    standalone: Ready, options: dict[str, str], topic: str
) -> None:
    published(standalone, topic, 10)
    access = parse_options({**options, "topic": topic}, is_stream=True).access
    [ledger] = ledgers_of(topic, access)
    path = topic.replace("://", "/")

    def backlog() -> int:
        return int(ask(standalone, f"{path}/stats")["subscriptions"]["mirror"]["msgBacklog"])

    mirror = Mirror("mirror", access)
    mirror.follow({topic: Place(ledger.ledger_id, 0)})
    assert backlog() == 10
    mirror.follow({topic: Place(ledger.ledger_id, 4)})
    assert backlog() == 6
    Mirror("mirror", access).follow({topic: Place(ledger.ledger_id, 10)})
    assert backlog() == 0


def test_exactly_what_a_shared_subscription_has_not_acknowledged_is_read(
    standalone: Ready, options: dict[str, str], topic: str
) -> None:
    asked = parse_options({**options, "topic": topic}, is_stream=False)
    client = quiet_client(standalone.broker_url)
    try:
        consumer = client.subscribe(topic, "work", ConsumerType.Shared)
        publish(client, topic, 12)
        for number in range(12):
            message = consumer.receive(timeout_millis=60_000)
            if number not in (3, 7, 8, 11):
                consumer.acknowledge(message)
    finally:
        client.close()
    until(lambda: sum(each.count for each in unacknowledged_of(topic, "work", asked.access, True).ranges) == 4)
    left = unacknowledged_of(topic, "work", asked.access, True).ranges
    found = [
        each
        for rows in rows_of_split(Split(topic, tuple(left)), asked)
        for each in batch_of(rows, topic, ["value"]).to_pylist()
    ]
    assert [each["value"] for each in found] == [b"m3", b"m7", b"m8", b"m11"]
