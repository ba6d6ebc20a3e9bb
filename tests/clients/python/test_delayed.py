"""Apache's Python client (the C++ client underneath), unmodified: messages that are delivered later."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pulsar import ConsumerType

from tests.clients.python_client import TIMEOUT_MS, ask, quiet_client, until
from tests.clients.server_process import Ready, ServerProcess

pytestmark = pytest.mark.clients
STRICT = "isDelayedDeliveryDeliverAtTimeStrict=true"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ServerProcess]:
    """Server that is not started yet."""
    with ServerProcess(tmp_path, (STRICT,)) as process:
        yield process


def waits(server: Ready, topic: str) -> Any:
    """Stats of the Shared subscription."""
    return ask(server, f"persistent/{topic.removeprefix('persistent://')}/stats")["subscriptions"]["Shared"]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_delayed_messages_come_at_their_time_also_over_kill_9_and_others_do_not_wait_for_them(
    strict: ServerProcess, topic: str
) -> None:
    """F21. Never early; how late a machine under load makes them is measured in benchmarks."""
    server = strict.start()
    client = quiet_client(server.broker_url)
    for kind in (ConsumerType.Shared, ConsumerType.KeyShared):
        client.subscribe(topic, kind.name, consumer_type=kind).close()
    producer = client.create_producer(topic)
    at_ms = now_ms() + 12_000
    producer.send(b"at", deliver_at=at_ms)
    producer.send(b"after", deliver_after=timedelta(milliseconds=at_ms - now_ms()))
    producer.send(b"now")
    shared = client.subscribe(topic, "Shared", consumer_type=ConsumerType.Shared)
    first = shared.receive(timeout_millis=TIMEOUT_MS)
    assert first.data() == b"now"
    shared.acknowledge(first)
    until(lambda: waits(server, topic)["msgDelayed"] == 2)
    told = waits(server, topic)
    assert (told["msgBacklog"] - told["msgBacklogNoDelayed"], told["delayedMessageIndexSizeInBytes"] > 0) == (2, True)
    client.close()
    strict.kill()
    server = strict.start()
    client = quiet_client(server.broker_url)
    for kind in (ConsumerType.Shared, ConsumerType.KeyShared):
        consumer = client.subscribe(topic, kind.name, consumer_type=kind)
        came: set[bytes] = set()
        while not came >= {
            b"after",
            b"at",
        }:  # "now" may come to Shared again: nobody waited until its acknowledgement was stored
            message = consumer.receive(timeout_millis=TIMEOUT_MS)
            assert message.data() == b"now" or now_ms() >= at_ms, "early"
            assert message.data() not in came, "twice"
            came.add(message.data())
            consumer.acknowledge(message)
    client.close()


def test_policies_of_namespace_and_topic_hold_at_once_and_switch_delays_off(strict: ServerProcess, topic: str) -> None:
    server = strict.start()
    client = quiet_client(server.broker_url)
    consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
    producer = client.create_producer(topic)
    path = f"persistent/{topic.removeprefix('persistent://')}/delayedDelivery"
    longest = {"active": True, "tickTime": 100, "maxDeliveryDelayInMillis": 60_000}
    ask(server, path, longest, "POST")
    assert ask(server, path) == longest
    producer.send(b"in a minute", deliver_after=timedelta(seconds=50))
    ask(server, path, None, "DELETE")
    assert ask(server, f"{path}?applied=true") == {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 0}
    namespace = "namespaces/" + "/".join(topic.removeprefix("persistent://").split("/")[:2]) + "/delayedDelivery"
    ask(server, namespace, {"active": False, "tickTime": 1000}, "POST")
    message = consumer.receive(timeout_millis=TIMEOUT_MS)
    assert message.data() == b"in a minute"
    client.close()
