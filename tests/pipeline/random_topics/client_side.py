"""Apache's client for Python: messages sent by it, and messages that it reads."""

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pulsar

from tests.clients.python_client import TIMEOUT_MS

from .messages import Kind, Message, Row, Sent
from .model import Stored
from .peer import Place
from .recipe import SendByClient

_CODECS = {
    "NONE": pulsar.CompressionType.NONE,
    "LZ4": pulsar.CompressionType.LZ4,
    "ZLib": pulsar.CompressionType.ZLib,
    "ZSTD": pulsar.CompressionType.ZSTD,
    "SNAPPY": pulsar.CompressionType.SNAPPY,
}
COLUMNS = ("message_id", "key", "value", "properties", "event_time", "publish_time", "producer")


def silent_client(url: str) -> pulsar.Client:
    """Client without logs: it logs a line for each chunk that does not fit."""
    return pulsar.Client(url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull), operation_timeout_seconds=20)


def send(client: pulsar.Client, topic: str, step: SendByClient, keys: pulsar.CryptoKeyReader | None) -> list[Stored]:
    options: dict[str, Any] = {**step.options, "compression_type": _CODECS[step.options["compression_type"]]}
    if options.pop("batching_type", ""):
        options["batching_type"] = pulsar.BatchingType.KeyBased
    is_encrypted = step.is_encrypted and keys is not None
    if is_encrypted:
        options |= {"crypto_key_reader": keys, "encryption_key": "key"}
    producer = client.create_producer(topic, producer_name=step.name, block_if_queue_full=True, **options)
    ids: dict[int, pulsar.MessageId] = {}
    failures: list[Any] = []
    for number, message in enumerate(step.messages):

        def told(result: Any, message_id: pulsar.MessageId, number: int = number) -> None:
            if result != pulsar.Result.Ok:
                failures.append(result)
            ids[number] = message_id

        producer.send_async(
            message.payload,
            told,
            properties=dict(message.properties),
            partition_key=message.key or None,
            ordering_key=None if message.ordering_key is None else message.ordering_key.decode(),
            event_timestamp=message.event_time or None,
        )
    producer.flush()
    producer.close()
    assert not failures, failures
    assert len(ids) == len(step.messages)
    found = [(ids[number], message) for number, message in enumerate(step.messages)]
    return (
        _encrypted(found, step.name) if is_encrypted else _stored(found, step.name, step.options["compression_type"] != "NONE")
    )


def _by_place(found: Sequence[tuple[pulsar.MessageId, Message]]) -> dict[Place, list[tuple[int, Message]]]:
    places: dict[Place, list[tuple[int, Message]]] = {}
    for each, message in found:
        places.setdefault((each.ledger_id(), each.entry_id()), []).append((each.batch_index(), message))
    return {place: sorted(places[place], key=lambda each: each[0]) for place in sorted(places)}


def _stored(found: Sequence[tuple[pulsar.MessageId, Message]], producer: str, is_compressed: bool) -> list[Stored]:
    entries = []
    for place, messages in _by_place(found).items():
        rows = tuple(_row(message, index, producer) for index, message in messages)
        is_odd = is_compressed and rows[0]["batch_index"] < 0 and not rows[0]["value"]
        entries.append(Stored(place, Sent(b"", 0, rows, count=len(rows), is_odd_to_clients=is_odd)))
    return entries


def _encrypted(found: Sequence[tuple[pulsar.MessageId, Message]], producer: str) -> list[Stored]:
    """An entry is a row with an error; what is in it who has the key reads."""
    entries = []
    for place, messages in _by_place(found).items():
        row = {"batch_index": -1, "producer": producer}
        entries.append(Stored(place, Sent(b"", 0, (row,), Kind.ERROR, len(messages))))
    return entries


def _row(message: Message, index: int, producer: str) -> Row:
    return {
        "key": message.key.encode() if message.key else None,
        "text_key": message.key or "",
        "value": message.payload,
        "properties": dict(message.properties),
        "told_properties": tuple(dict(message.properties).items()),
        "batch_index": index,
        "event_time": message.event_time if 0 < message.event_time < 253_402_300_800_000 else None,
        "told_event_time": message.event_time,
        "producer": producer,
    }


def consumed(client: pulsar.Client, topic: str, last: Place) -> list[Row]:
    """All from the first message to the one at `last`, as a reader gets them."""
    with closing(client.create_reader(topic, pulsar.MessageId.earliest)) as reader:
        found: list[Row] = []
        while not found or found[-1]["message_id"][:2] < last:
            found.append(_read(reader.read_next(timeout_millis=TIMEOUT_MS)))
    return found


def _read(message: Any) -> Row:
    found = message.message_id()
    return {
        "message_id": (found.ledger_id(), found.entry_id(), found.batch_index()),
        "key": message.partition_key(),
        "value": message.data(),
        "properties": message.properties(),
        "event_time": message.event_timestamp(),
        "publish_time": message.publish_timestamp(),
        "producer": message.producer_name(),
    }


def as_client_tells(row: Row) -> Row:
    """Our row as the Python client shows it: the client tells neither a null from nothing, nor a key's bytes from its text.

    For a property that is there twice it shows the first value; Java's client and ours show the last.
    """
    found = {name: row[name] for name in COLUMNS if name in row}
    properties = dict(reversed(row["told_properties"]))
    return found | {
        "properties": properties,
        "key": row["text_key"],
        "value": row["value"] or b"",
        "event_time": row["told_event_time"],
    }
