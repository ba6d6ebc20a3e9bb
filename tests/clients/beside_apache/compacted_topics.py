"""A topic with keys, filled, compacted and read with Python's client, at a broker of ours or of Apache's."""

from typing import Any

import pulsar

from tests.clients.cluster_admin import Broker, get, put
from tests.clients.python_client import TIMEOUT_MS, until


def _path(topic: str, what: str) -> str:
    return f"/admin/v2/{topic.replace('://', '/')}/{what}"


def compacted_ledger(topic: str, broker: Broker) -> dict[str, Any]:
    """Compacted ledger in the topic's internal stats."""
    return dict(get(broker, _path(topic, "internalStats"))["compactedLedger"])


def fill(client: pulsar.Client, topic: str, newest: dict[str, str], name: str) -> None:
    """Twenty keys in batches and by themselves; three of them are removed at the end."""
    for is_batched in (True, False):
        producer = client.create_producer(
            topic, batching_enabled=is_batched, batching_max_publish_delay_ms=60_000, batching_max_messages=15
        )
        for number in range(60):
            key, value = f"k{number % 20}", f"{name}-{is_batched}-{number}"
            producer.send_async(value.encode(), lambda *_: None, partition_key=key)
            newest[key] = value
        producer.flush()
        producer.close()
    producer = client.create_producer(topic, batching_enabled=False)
    for key in ("k3", "k7", f"k{len(name)}"):
        producer.send(b"", partition_key=key)
        newest.pop(key, None)
    producer.close()


def compact(topic: str, broker: Broker) -> int:
    """The compacted ledger's id."""
    before = compacted_ledger(topic, broker)["ledgerId"]
    put(broker, _path(topic, "compaction"))

    def is_done() -> bool:
        status = get(broker, _path(topic, "compaction"))
        assert status["status"] != "ERROR", status
        return bool(status["status"] == "SUCCESS")

    until(is_done)
    after = compacted_ledger(topic, broker)
    assert after["ledgerId"] != before
    assert after["entries"] > 0
    return int(after["ledgerId"])


def read_compacted(client: pulsar.Client, topic: str) -> dict[str, str]:
    """The newest of each key that a reader of what is compacted gets, each at most once. Without those that have no body:
    Apache's compactor leaves them there when a client does not tell their size, as this one without batches."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    found: dict[str, str] = {}
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=TIMEOUT_MS)
        if message.partition_key():  # what is compacted out of a batch has none
            assert message.partition_key() not in found
            found[message.partition_key()] = message.data().decode()
    reader.close()
    return {key: value for key, value in found.items() if value}


def table_of(client: pulsar.Client, topic: str) -> dict[str, str]:
    view, found = client.create_table_view(topic), dict[str, str]()
    view.for_each(lambda key, value: found.update({key: value.decode()}))
    view.close()
    return found
