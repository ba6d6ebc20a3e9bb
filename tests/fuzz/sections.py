"""Payload sections for SEND: messages, batches, chunks, markers, and sections that are none. Pure; all chance is handed in."""

import zlib
from dataclasses import dataclass
from random import Random

from tests.wire.frame_samples import section
from wire.generated import pulsar_api_pb2 as api

from . import odd

NOW_MS = 1_790_000_000_000


@dataclass(frozen=True, slots=True)
class Section:
    """`messages`: the command's number of messages. `is_filtered`: may be stored and yet be delivered to no consumer."""

    data: bytes
    messages: int = 1
    is_filtered: bool = False
    is_chunk: bool = False


def any_section(rng: Random, sequence_id: int, name: str) -> Section:
    """One of all kinds, plain ones most often."""
    metadata = api.MessageMetadata(producer_name=name, sequence_id=sequence_id, publish_time=NOW_MS)
    if odd.is_odd(rng, 4):
        _decorate(rng, metadata)
    kind = rng.choice(("plain", "plain", "plain", "batch", "batch", "compressed", "chunk", "marker", "broken"))
    return _KINDS[kind](rng, metadata)


def _plain(rng: Random, metadata: api.MessageMetadata) -> Section:
    body = rng.choice((b"", b"hello", bytes(1000), bytes(50_000)))
    return _finished(rng, metadata, body)


def _batch(rng: Random, metadata: api.MessageMetadata) -> Section:
    count = rng.choice((1, 2, 5, 64, 65))
    body = b""
    for _ in range(count):
        payload = bytes(rng.randrange(20))
        single = api.SingleMessageMetadata(payload_size=odd.either(rng, len(payload), odd.NUMBERS, 200))
        if odd.is_odd(rng, 20):
            single.sequence_id = rng.choice(odd.WORDS)
        head = single.SerializeToString()
        body += len(head).to_bytes(4) + head + payload
    metadata.num_messages_in_batch = odd.either(rng, count, odd.NUMBERS, 12)
    if odd.is_odd(rng, 3):
        metadata.highest_sequence_id = odd.either(rng, (metadata.sequence_id + count - 1) & odd.WORDS[-1], odd.WORDS)
    finished = _finished(rng, metadata, body)
    return Section(finished.data, odd.either(rng, count, odd.NUMBERS, 12), finished.is_filtered)


def _compressed(rng: Random, metadata: api.MessageMetadata) -> Section:
    body = zlib.compress(bytes(2000))
    metadata.compression = rng.choice((api.LZ4, api.ZLIB, api.ZSTD, api.SNAPPY))
    metadata.uncompressed_size = odd.either(rng, 2000, (0, 1, (1 << 31) - 1, (1 << 32) - 1), 4)
    return _finished(rng, metadata, body if rng.random() < 0.7 else body[:5])


def _chunk(rng: Random, metadata: api.MessageMetadata) -> Section:
    metadata.uuid = rng.choice(("u1", "u2", ""))
    metadata.num_chunks_from_msg = odd.either(rng, 3, odd.NUMBERS, 5)
    metadata.chunk_id = odd.either(rng, rng.randrange(3), odd.NUMBERS, 5)
    metadata.total_chunk_msg_size = odd.either(rng, 3000, odd.NUMBERS, 5)
    finished = _finished(rng, metadata, bytes(1000))
    return Section(finished.data, 1, finished.is_filtered, is_chunk=rng.random() < 0.9)


def _marker(rng: Random, metadata: api.MessageMetadata) -> Section:
    metadata.marker_type = rng.choice((0, 10, 11, 12, 13, 20, 21, 22, 99, -1))
    body = rng.choice((b"", b"\xff\xff", api.ReplicatedSubscriptionsSnapshotRequest(snapshot_id="s").SerializeToString()))
    return Section(_finished(rng, metadata, body).data, 1, is_filtered=True)


def _broken(rng: Random, metadata: api.MessageMetadata) -> Section:
    sound = section(metadata.SerializeToString(), b"hello")
    kinds = (
        sound[:2] + b"\x00\x00\x00\x00" + sound[6:],
        sound[: rng.randrange(len(sound))],
        section(b"\xff\xff\xff", b"hello"),
        section(b"", b"hello"),
        section(api.MessageMetadata(producer_name="p").SerializePartialToString(), b"hello"),
        b"\x0e\x01" + bytes(4) + b"\xff\xff\xff\xff",
        b"\x0e\x02" + bytes(8) + sound,
        b"\xff\xff\xff\xff" + b"hello",
        bytes(rng.randrange(12)),
        rng.randbytes(rng.randrange(100)),
    )
    return Section(rng.choice(kinds), odd.either(rng, 1, odd.NUMBERS), is_filtered=True)


_KINDS = {
    "plain": _plain,
    "batch": _batch,
    "compressed": _compressed,
    "chunk": _chunk,
    "marker": _marker,
    "broken": _broken,
}


def _decorate(rng: Random, metadata: api.MessageMetadata) -> None:
    """Members that may be there, each with values that may not be."""
    for decorate in rng.sample(_DECORATIONS, rng.randrange(1, 4)):
        decorate(rng, metadata)
    for _ in range(rng.choice((0, 0, 1, 50))):
        metadata.properties.add(key=odd.text(rng, "p"), value=odd.text(rng, "v"))


def _deliver_at(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.deliver_at_time = rng.choice((0, -1, 1, NOW_MS, NOW_MS + 86_400_000, *odd.LONGS))


def _key(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.partition_key = odd.text(rng, "k", 2)
    metadata.partition_key_b64_encoded = rng.random() < 0.5


def _ordering_key(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.ordering_key = rng.randbytes(rng.randrange(20))


def _times(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.publish_time, metadata.event_time = rng.choice(odd.WORDS), rng.choice(odd.WORDS)


def _schema_version(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.schema_version = rng.choice((b"", b"\x00", bytes(8), b"\xff" * 8, bytes(64)))


def _encrypt(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.encryption_keys.add(key="k", value=b"v")
    metadata.encryption_algo = "none"


def _replicate(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.replicated_from = odd.text(rng, "elsewhere", 2)


def _transact(rng: Random, metadata: api.MessageMetadata) -> None:
    metadata.txnid_most_bits, metadata.txnid_least_bits = rng.choice(odd.WORDS), rng.choice(odd.WORDS)


_DECORATIONS = (_deliver_at, _deliver_at, _key, _ordering_key, _times, _schema_version, _encrypt, _replicate, _transact)


def _finished(rng: Random, metadata: api.MessageMetadata, body: bytes) -> Section:
    has_checksum = not odd.is_odd(rng, 10)
    return Section(section(metadata.SerializeToString(), body, checksum=has_checksum), is_filtered=_is_filtered(metadata))


def _is_filtered(metadata: api.MessageMetadata) -> bool:
    return metadata.HasField("txnid_most_bits") or metadata.HasField("encryption_algo")
