"""Shared parts of the suites of Apache's Python client: short words for publish and receive."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pulsar
from pulsar import MessageId

from tests.clients.server_process import Ready

TIMEOUT_MS = 60_000
_LOOK_SECONDS = 0.002


def quiet_client(url: str) -> pulsar.Client:
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), operation_timeout_seconds=20)


def publish(
    client: pulsar.Client, topic: str, count: int, batching: bool = False, first: int = 0, **options: Any
) -> list[MessageId]:
    """`m<first>`... in order; batches are flushed whole, however slowly they fill."""
    whole = {"batching_enabled": batching, "batching_max_publish_delay_ms": 60_000, "block_if_queue_full": True}
    producer = client.create_producer(topic, **whole, **options)
    ids: list[MessageId] = []
    for index in range(first, first + count):
        if batching:
            producer.send_async(f"m{index}".encode(), lambda result, message_id: ids.append(message_id))
        else:
            ids.append(producer.send(f"m{index}".encode()))
    producer.flush()
    producer.close()
    assert len(ids) == count
    return ids


def published(server: Ready, topic: str, count: int, batching: bool = False, first: int = 0, **options: Any) -> list[MessageId]:
    """`publish`, by a client of its own."""
    with closing(quiet_client(server.broker_url)) as client:
        return publish(client, topic, count, batching, first, **options)


def receive(consumer: Any, count: int, ack: bool = True) -> list[str]:
    texts = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=TIMEOUT_MS)
        texts.append(message.data().decode())
        if ack:
            consumer.acknowledge(message)
    return texts


def next_of(consumer: Any, within_ms: int) -> Any | None:
    """The message that comes; None says only that none came yet."""
    try:
        return consumer.receive(timeout_millis=within_ms)
    except pulsar.Timeout:
        return None


def nothing_comes(consumer: Any, within_ms: int = 300) -> bool:
    """Whether no message comes in that time: a slow machine may hide one, and never makes one up."""
    return next_of(consumer, within_ms) is None


def until(is_so: Callable[[], bool], seconds_max: float = 60) -> None:
    """Waits for the other side, which acts in its own time: a slow machine takes longer."""
    deadline = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(_LOOK_SECONDS)  # whoever looks without a pause takes a core from what is awaited


def names(first: int, count: int) -> list[str]:
    return [f"m{index}" for index in range(first, first + count)]


def put_json(server: Ready, path: str, body: object) -> None:
    request = urllib.request.Request(
        server.web_url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status in (200, 204)


def nothing_comes_into(consumer: Any, got: set[str], within_ms: int) -> bool:
    message = next_of(consumer, within_ms)
    if message is None:
        return True
    consumer.acknowledge(message)
    got.add(message.data().decode())
    return False


def ask(server: Ready, path: str, body: object = None, method: str = "GET") -> Any:
    """The answer of the admin REST, or None."""
    data = None if method == "GET" else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.web_url}/admin/v2/{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
        return json.loads(text) if text else None
