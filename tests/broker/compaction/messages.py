"""Messages for compaction: entries as clients publish them, what of them a consumer would see, and the naive twin."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wire.compression import compress, decompress
from wire.generated.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from wire.payloads import batch_messages, message_metadata, payload_section, split_section
from wire.position import Position
from wire.run import EntryRun

Single = tuple[str | None, bytes]
"""Key and body; an empty body removes the key."""


@dataclass(frozen=True)
class Seen:
    """A message as a consumer gets it."""

    position: Position
    index: int
    key: str | None
    body: bytes


def single(key: str | None, body: bytes, **fields: object) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **fields)  # type: ignore[arg-type]
    if key is not None:
        metadata.partition_key = key
    return payload_section(metadata, body)


def batched(messages: Sequence[Single], compression: int = 0, **fields: object) -> bytes:
    body = b""
    for key, text in messages:
        one = SingleMessageMetadata(payload_size=len(text))
        if key is not None:
            one.partition_key = key
        encoded = one.SerializeToString()
        body += len(encoded).to_bytes(4) + encoded + text
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **fields)  # type: ignore[arg-type]
    metadata.num_messages_in_batch = len(messages)
    metadata.compression, metadata.uncompressed_size = compression, len(body)  # type: ignore[assignment]
    return payload_section(metadata, compress(compression, body))


def run_of(ledger_id: int, first: int, sections: Sequence[bytes], header_bytes: int = 36) -> EntryRun:
    buffer, offsets = bytearray(), array("I", [0])
    for section in sections:
        buffer += bytes(header_bytes) + section
        offsets.append(len(buffer))
    return EntryRun(ledger_id, first, buffer, offsets, header_bytes)


def seen_in(position: Position, section: bytes | memoryview) -> list[Seen]:
    """Messages that a consumer gets of one entry: none of markers, nor those that are compacted out."""
    parts = split_section(section)
    metadata = message_metadata(parts)
    if metadata.HasField("marker_type"):
        return []
    payload = decompress(metadata.compression, parts.payload, metadata.uncompressed_size)
    if not metadata.HasField("num_messages_in_batch"):
        return [Seen(position, -1, metadata.partition_key if metadata.HasField("partition_key") else None, bytes(payload))]
    return [
        Seen(position, index, one.partition_key if one.HasField("partition_key") else None, bytes(body))
        for index, (one, body) in enumerate(batch_messages(payload, metadata.num_messages_in_batch))
        if not one.compacted_out
    ]


def compacted_by_hand(entries: Mapping[Position, bytes], *, retains_null_key: bool = False) -> list[Seen]:
    """The naive twin: of each key the last message if it has a body, and where they are."""
    messages = [each for position, section in sorted(entries.items()) for each in seen_in(position, section)]
    last = {each.key: each for each in messages if each.key is not None}
    return [each for each in messages if (retains_null_key if each.key is None else last[each.key] is each and bool(each.body))]
