"""Messages of the topics of snapshots: the key names the subject, the payload is the record, no payload deletes. Pure. Apache's
TransactionBufferSnapshotBaseSystemTopicClient writes them likewise: one by one, neither compressed nor encrypted.
"""

from dataclasses import dataclass

from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import message_metadata, payload_section, split_section
from wire.run import Buffer

UNREADABLE = b"\xff"
"""A record of no kind."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """`record` None: the key's record is deleted."""

    key: str
    record: bytes | None


def section_of(keyed: Keyed, producer: str, now_ms: int) -> bytes:
    """A payload section."""
    metadata = MessageMetadata(producer_name=producer, sequence_id=0, publish_time=now_ms, partition_key=keyed.key)
    if keyed.record is None:
        metadata.null_value = True
        return payload_section(metadata, b"")
    metadata.uncompressed_size = len(keyed.record)
    return payload_section(metadata, keyed.record)


def keyed_of(section: Buffer) -> Keyed | None:
    """None: a marker, or a message without a key. One that was not written in this way has a record that cannot be read."""
    try:
        parts = split_section(section)
        metadata = message_metadata(parts)
    except MalformedPayload:
        return None  # it names no key: it has no subject
    if metadata.HasField("marker_type") or not metadata.partition_key:
        return None
    if metadata.HasField("num_messages_in_batch") or metadata.compression or metadata.encryption_keys:
        return Keyed(metadata.partition_key, UNREADABLE)
    is_deleted = metadata.null_value or not parts.payload
    return Keyed(metadata.partition_key, None if is_deleted else bytes(parts.payload))
