"""Entries by chance as clients may send them, each with the rows that are to come of it. Pure: all chance is handed in."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from random import Random
from typing import Any, TypeAlias

import cramjam

from wire.generated.pulsar_api_pb2 import (
    LZ4,
    NONE,
    SNAPPY,
    ZLIB,
    ZSTD,
    CompressionType,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)
from wire.payloads import payload_section

Row: TypeAlias = dict[str, Any]
"""Values by column; a column that is not there is not known. Times are in milliseconds."""

CHECKSUM_BYTES = 6
_EARLIEST_MS, _SPAN_MS = 1_600_000_000_000, 150_000_000_000
_COMPRESSED: dict[CompressionType, Callable[[bytes], bytes]] = {
    NONE: bytes,
    LZ4: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    ZLIB: lambda data: bytes(cramjam.zlib.compress(data)),
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}
_BATCH_BYTES_MAX = 2_000_000
_TEXTS = ("", "k", "k", "k1", "k2", "a key", "ключ", "鍵🔑", "\x00", "z" * 130, "w" * 300)
_LONG = "y" * 20_000


class Kind(Enum):
    """Kinds of entries, to readers."""

    MESSAGES = auto()
    ERROR = auto()
    NOTHING = auto()
    CHUNK = auto()


@dataclass(frozen=True, slots=True)
class Chunk:
    uuid: str
    number: int
    count: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """One entry. `count`: messages as the broker is told; `rows` have no place yet; `txn`: the number of a transaction."""

    section: bytes
    sequence_id: int
    rows: tuple[Row, ...] = ()
    kind: Kind = Kind.MESSAGES
    count: int = 1
    chunk: Chunk | None = None
    txn: int | None = None
    is_repeat: bool = False
    """Deduplication is to drop it."""
    is_odd_to_clients: bool = False
    """The C++ client makes something else of it, or nothing: chunks that do not fit, nothing at all that is compressed."""
    harms_clients: bool = False
    """The C++ client does not check what the entry says of itself, and reads what is not there."""


@dataclass(frozen=True, slots=True)
class Message:
    payload: bytes
    key: str | None
    key_bytes: bytes | None
    """Bytes that `key` stands for."""
    ordering_key: bytes | None
    properties: tuple[tuple[str, str], ...]
    event_time: int
    is_null: bool
    is_compacted_out: bool = False


@dataclass(frozen=True, slots=True)
class Taste:
    """Properties of one topic's messages."""

    sizes: tuple[int, ...]
    batches: tuple[int, ...]
    compressions: tuple[CompressionType, ...]
    has_keys: bool
    has_properties: bool
    has_odd_entries: bool
    """Markers, damage, entries without a checksum."""
    has_harm: bool
    """Damage that the C++ client does not survive."""


def any_taste(rng: Random) -> Taste:
    return Taste(
        sizes=rng.choice(((0, 1, 7), (10, 100), (0, 30, 3000), (100,), (0, 5, 20_000), (1, 90_000))),
        batches=rng.choice(((0,), (0, 1, 2), (1,), (0, 3, 20), (100,), (2, 1500), (5, 40))),
        compressions=tuple(rng.sample(sorted(_COMPRESSED), rng.randint(1, 3))),
        has_keys=rng.random() < 0.7,
        has_properties=rng.random() < 0.5,
        has_odd_entries=rng.random() < 0.5,
        has_harm=rng.random() < 0.15,
    )


def any_message(rng: Random, taste: Taste, mark: str) -> Message:
    size = rng.choice(taste.sizes)
    size = rng.randint(size // 2, size)
    payload = mark.encode()[:size].ljust(size, b"\0.xyz"[rng.randrange(5) :][:1])
    key, key_bytes = _any_key(rng) if taste.has_keys else (None, None)
    pairs: tuple[tuple[str, str], ...] = ()
    if taste.has_properties and rng.random() < 0.7:
        pairs = tuple((rng.choice(_TEXTS[:9]), _any_text(rng)) for _ in range(rng.choice((1, 1, 2, 3, 9))))
    event_time = rng.choice((0, 0, 1, 1_700_000_000_123, 253_402_300_799_999, 253_402_300_800_000, (1 << 63) - 1))
    is_null = rng.random() < 0.1
    return Message(
        b"" if is_null else payload, key, key_bytes, b"o" if rng.random() < 0.2 else None, pairs, event_time, is_null
    )


def _any_key(rng: Random) -> tuple[str | None, bytes | None]:
    if rng.random() < 0.3:
        return None, None
    if rng.random() < 0.2:
        found = rng.randbytes(rng.choice((0, 1, 16)))
        return base64.b64encode(found).decode(), found
    text = _any_text(rng)
    return text, text.encode()


def _any_text(rng: Random) -> str:
    return rng.choice(_TEXTS) if rng.random() < 0.995 else _LONG


@dataclass(slots=True)
class Author:
    """One producer, and what it sends next. `replicates`: whether some is of another cluster, which is not deduplicated."""

    name: str
    next_sequence_id: int = 0
    replicates: bool = True

    def metadata(self, rng: Random, count: int = 1) -> MessageMetadata:
        about = MessageMetadata(
            producer_name=self.name,
            sequence_id=self.next_sequence_id,
            publish_time=rng.choice((1, _EARLIEST_MS, _EARLIEST_MS + rng.randrange(_SPAN_MS))),
        )
        if self.replicates and rng.random() < 0.1:
            about.replicated_from = "elsewhere"
        if rng.random() < 0.1:
            about.deliver_at_time = 1_900_000_000_000
        if rng.random() < 0.2:
            about.schema_version = rng.choice((bytes(8), bytes(7) + b"\5", b"\xff" * 8, b"odd"))
        self.next_sequence_id += count
        return about


def any_entry(rng: Random, author: Author, taste: Taste, mark: str) -> Sent:
    if taste.has_odd_entries and rng.random() < 0.12:
        return _odd_entry(rng, author, taste, mark)
    size = rng.choice(taste.batches) if rng.random() < 0.3 else min(taste.batches)
    size = min(size, _BATCH_BYTES_MAX // max(taste.sizes))
    return (
        single(rng, author, taste, mark) if size == 0 else batch(rng, author, taste, mark, max(1, rng.randint(size // 2, size)))
    )


def single(rng: Random, author: Author, taste: Taste, mark: str) -> Sent:
    message = any_message(rng, taste, mark)
    about = author.metadata(rng)
    _tell(about, message)
    row = _row(about, message, -1, about.sequence_id)
    section = _section(rng, about, message.payload, taste)
    is_odd = about.compression != NONE and not message.payload
    return Sent(section, about.sequence_id, (row,), is_odd_to_clients=is_odd)


def batch(rng: Random, author: Author, taste: Taste, mark: str, count: int, stated: int | None = None) -> Sent:
    about = author.metadata(rng, count)
    about.num_messages_in_batch = count if stated is None else stated
    about.highest_sequence_id = about.sequence_id + count - 1
    if rng.random() < 0.3:
        about.partition_key = "of the first"
        about.properties.add(key="nobody's", value="x")
    tells_ids = rng.random() < 0.5
    rows, parts = [], []
    for index in range(count):
        message = any_message(rng, taste, f"{mark}/{index}")
        one = SingleMessageMetadata(payload_size=len(message.payload))
        _tell(one, message)
        if rng.random() < 0.03:
            one.compacted_out = True
        if tells_ids:
            one.sequence_id = about.sequence_id + index
        encoded = one.SerializeToString()
        parts += [len(encoded).to_bytes(4), encoded, message.payload]
        if not one.compacted_out:
            rows.append(_row(about, message, index, about.sequence_id + index))
    return Sent(_section(rng, about, b"".join(parts), taste), about.sequence_id, tuple(rows), count=count)


def chunks(rng: Random, author: Author, taste: Taste, mark: str, count: int) -> list[Sent]:
    """Chunks of one message. The last chunk has its rows."""
    message = any_message(rng, taste, mark)
    about = author.metadata(rng)
    _tell(about, message)
    about.null_value = False
    body = mark.encode() + rng.randbytes(rng.choice((count, 100, 5000)))
    row = _row(about, message, -1, about.sequence_id) | {"value": body}
    compression = rng.choice(taste.compressions)
    payload = _COMPRESSED[compression](body)
    if compression:
        about.compression, about.uncompressed_size = compression, len(body)
    about.uuid, about.num_chunks_from_msg = f"{author.name}-{about.sequence_id}", count
    about.total_chunk_msg_size = len(payload)
    size = -(-len(payload) // count)
    found = []
    for number in range(count):
        about.chunk_id = number
        part = payload[number * size : (number + 1) * size]
        found.append(
            Sent(
                payload_section(about, part),
                about.sequence_id,
                (row,),
                Kind.CHUNK,
                chunk=Chunk(about.uuid, number, count, part),
            )
        )
    return found


def _odd_entry(rng: Random, author: Author, taste: Taste, mark: str) -> Sent:
    which = rng.choice(("marker", "marker", "size", "garbage", "kind", "encrypted", "fewer", "more", "cut"))
    if which == "fewer":  # whoever reads the batch reads as many as it says
        count = rng.randint(2, 5)
        found = batch(rng, author, taste, mark, count, 1)
        rows = tuple(row for row in found.rows if row["batch_index"] == 0)
        return Sent(found.section, found.sequence_id, rows, count=1)
    if which in ("more", "cut"):
        return _harmful(rng, author, taste, mark) if taste.has_harm else single(rng, author, taste, mark)
    message = any_message(rng, taste, mark)
    about = author.metadata(rng, 3)
    _tell(about, message)
    about.null_value = False
    if which == "marker":
        about.marker_type = rng.choice((10, 11, 12, 13))
        return Sent(payload_section(about, b"of the cluster"), about.sequence_id, kind=Kind.NOTHING)
    payload = message.payload + b"0123456789"
    if which == "encrypted":
        about.encryption_keys.add(key="k", value=b"secret")
        about.encryption_algo, about.encryption_param = "AES", bytes(12)
        if rng.random() < 0.5:
            about.num_messages_in_batch = 3
    elif which == "kind":
        about.compression, about.uncompressed_size = ZSTD, 10
    else:
        about.compression = rng.choice([each for each in _COMPRESSED if each])
        payload = _COMPRESSED[about.compression](payload)
        about.uncompressed_size = len(message.payload) + 10 + (3 if which == "size" else 0)
        payload = payload if which == "size" else payload[: len(payload) // 2]
    row = _row(about, message, -1, about.sequence_id) | {"value": payload}
    count = about.num_messages_in_batch
    return Sent(payload_section(about, payload), about.sequence_id, (row,), Kind.ERROR, count)


def _harmful(rng: Random, author: Author, taste: Taste, mark: str) -> Sent:
    """A batch that has fewer messages than it says."""
    about = author.metadata(rng, 4)
    about.num_messages_in_batch = 4
    message = any_message(rng, taste, mark)
    one = SingleMessageMetadata(payload_size=len(message.payload))
    encoded = one.SerializeToString()
    payload = (len(encoded).to_bytes(4) + encoded + message.payload) * rng.randint(1, 3)
    row = _row(about, message, -1, about.sequence_id)
    row |= {"key": None, "properties": {}, "event_time": None, "value": payload}
    return Sent(payload_section(about, payload), about.sequence_id, (row,), Kind.ERROR, 4, harms_clients=True)


def _tell(about: MessageMetadata | SingleMessageMetadata, message: Message) -> None:
    if message.key is not None:
        about.partition_key = message.key
        about.partition_key_b64_encoded = message.key_bytes != message.key.encode()
    if message.ordering_key is not None:
        about.ordering_key = message.ordering_key
    about.properties.extend(KeyValue(key=key, value=value) for key, value in message.properties)
    if message.event_time:
        about.event_time = message.event_time
    if message.is_null:
        about.null_value = True


def _row(about: MessageMetadata, message: Message, batch_index: int, sequence_id: int) -> Row:
    version = about.schema_version if len(about.schema_version) == 8 and about.schema_version < b"\x80" else None
    return {
        "key": message.key_bytes,
        "text_key": message.key or "",
        "value": None if message.is_null else message.payload,
        "properties": dict(message.properties),
        "told_properties": message.properties,
        "batch_index": batch_index,
        "publish_time": about.publish_time,
        "event_time": message.event_time if 0 < message.event_time < 253_402_300_800_000 else None,
        "told_event_time": message.event_time,
        "producer": about.producer_name,
        "sequence_id": sequence_id,
        "schema_version": None if version is None else int.from_bytes(version),
    }


def _section(rng: Random, about: MessageMetadata, payload: bytes, taste: Taste) -> bytes:
    compression = rng.choice(taste.compressions)
    if compression:
        about.compression, about.uncompressed_size = compression, len(payload)
        payload = _COMPRESSED[compression](payload)
    section = payload_section(about, payload)
    return section[CHECKSUM_BYTES:] if taste.has_odd_entries and rng.random() < 0.05 else section


def in_transaction(sent: Sequence[Sent], txn: int) -> list[Sent]:
    """The same entries, sent in it."""
    found = []
    for each in sent:
        at = CHECKSUM_BYTES if each.section[:2] == b"\x0e\x01" else 0
        end = at + 4 + int.from_bytes(each.section[at : at + 4])
        about = MessageMetadata.FromString(each.section[at + 4 : end])
        about.txnid_most_bits, about.txnid_least_bits = 0, txn
        section = payload_section(about, each.section[end:])
        found.append(replace(each, section=section, txn=txn))
    return found
