"""Compacted topics with Apache's Python client, unmodified: what a reader of them gets, and a table view."""

import pulsar
import pytest
from pulsar import InitialPosition

from tests.clients.python_client import TIMEOUT_MS, ask, nothing_comes, until
from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients


def test_f46_a_compaction_that_is_unloaded_midway_keeps_the_last_of_each_key_and_drops_what_is_empty(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
    name = topic.replace("://", "/")
    path = f"{name}/compaction"
    for number in range(3):
        for index in range(200):
            text = f"m{number}" if index % 20 or number < 2 else ""
            producer.send_async(text.encode(), None, partition_key=f"k{index % 20}")
        producer.flush()
        ask(server, path, None, "PUT")
        ask(server, f"{name}/unload", None, "PUT")
    until(lambda: ask(server, path)["status"] != "RUNNING")
    ask(server, path, None, "PUT")
    until(lambda: ask(server, path)["status"] == "SUCCESS")
    options = {"is_read_compacted": True, "initial_position": InitialPosition.Earliest}
    reader = client.subscribe(topic, "r", **options)
    found: dict[str, str] = {}
    for _ in range(19):
        message = reader.receive(timeout_millis=TIMEOUT_MS)
        assert message.partition_key() not in found, "twice"
        found[message.partition_key()] = message.data().decode()
    assert nothing_comes(reader)
    assert found == {f"k{index}": "m2" for index in range(1, 20)}
    view = client.create_table_view(topic)
    producer.send(b"new", partition_key="k0")
    producer.send(b"", partition_key="k1")
    newest = {**found, "k0": "new"}
    del newest["k1"]
    until(lambda: {key: value.decode() for key in found | newest if (value := view.get(key)) is not None} == newest)
    view.close()
    producer.close()
    reader.close()
