"""Payload sections: what follows the command of SEND and MESSAGE, and what an entry stores. Pure; one at a time.

`[0x0e02 | u32 size | BrokerEntryMetadata] [0x0e01 | u32 crc32c] u32 metadata size | MessageMetadata | payload`, big-endian.
The checksum covers everything after itself. Runs of entries are for `wire.kernels.metadata`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from wire.errors import ChecksumMismatch, MalformedPayload
from wire.generated.pulsar_api_pb2 import BrokerEntryMetadata, MessageMetadata, SingleMessageMetadata
from wire.kernels.entries import checksum
from wire.run import Buffer

MAGIC_CHECKSUM = b"\x0e\x01"
MAGIC_BROKER_ENTRY_METADATA = b"\x0e\x02"


@dataclass(frozen=True, slots=True)
class PayloadSection:
    """The parts of a payload section; views of the buffer that was split."""

    broker_entry_metadata: memoryview | None
    checksum: int | None
    checked: memoryview
    """Bytes that the checksum covers: the metadata's size, the metadata and the payload."""
    metadata: memoryview
    payload: memoryview


def split_section(section: Buffer) -> PayloadSection:
    """The parts of a section; MalformedPayload when a size does not fit. Verifies no checksum."""
    rest = memoryview(section)
    broker_entry_metadata = None
    if rest[:2] == MAGIC_BROKER_ENTRY_METADATA:
        broker_entry_metadata, rest = _sized(rest[2:], "broker entry metadata")
    stated = None
    if rest[:2] == MAGIC_CHECKSUM:
        if len(rest) < 6:
            raise MalformedPayload(f"checksum cut off after {len(rest) - 2} bytes")
        stated = int.from_bytes(rest[2:6])
        rest = rest[6:]
    metadata, payload = _sized(rest, "message metadata")
    return PayloadSection(broker_entry_metadata, stated, rest, metadata, payload)


def _sized(data: memoryview, name: str) -> tuple[memoryview, memoryview]:
    if len(data) < 4:
        raise MalformedPayload(f"{len(data)} bytes where the size of the {name} should be")
    size = int.from_bytes(data[:4])
    if size > len(data) - 4:
        raise MalformedPayload(f"{name} of {size} bytes, but only {len(data) - 4} follow")
    return data[4 : 4 + size], data[4 + size :]


def verify(section: PayloadSection) -> None:
    """ChecksumMismatch when the section has a checksum and it is wrong."""
    if section.checksum is not None:
        found = checksum(section.checked)
        if found != section.checksum:
            raise ChecksumMismatch(f"CRC32C of the payload is {found:08x}, stated is {section.checksum:08x}")


def message_metadata(section: PayloadSection) -> MessageMetadata:
    """MalformedPayload when it is unreadable or lacks a required field."""
    try:
        found = MessageMetadata.FromString(bytes(section.metadata))
    except DecodeError as error:
        raise MalformedPayload(f"unreadable message metadata of {len(section.metadata)} bytes") from error
    if not found.IsInitialized():
        raise MalformedPayload("message metadata without a required field")
    return found


def broker_entry_metadata(section: PayloadSection) -> BrokerEntryMetadata | None:
    """None when there is none; MalformedPayload when it is unreadable."""
    if section.broker_entry_metadata is None:
        return None
    try:
        return BrokerEntryMetadata.FromString(bytes(section.broker_entry_metadata))
    except DecodeError as error:
        raise MalformedPayload("unreadable broker entry metadata") from error


def stored_broker_entry_metadata(section: Buffer) -> BrokerEntryMetadata | None:
    """Broker entry metadata of a stored section whose other parts may be anything."""
    data = memoryview(section)
    if data[:2] != MAGIC_BROKER_ENTRY_METADATA:
        return None
    found, rest = _sized(data[2:], "broker entry metadata")
    return broker_entry_metadata(PayloadSection(found, None, rest, rest, rest))


def message_index(section: Buffer) -> int:
    """The index of the last message of an entry, as the broker stored it; -1 when it has none, or cannot be read."""
    try:
        found = stored_broker_entry_metadata(section)
    except MalformedPayload:
        return -1
    return found.index if found is not None and found.HasField("index") else -1


def payload_section(metadata: MessageMetadata, payload: Buffer) -> bytes:
    """A section with its checksum, as clients send it; for messages of the broker's own."""
    encoded = metadata.SerializeToString()
    checked = b"".join((len(encoded).to_bytes(4), encoded, payload))
    return b"".join((MAGIC_CHECKSUM, checksum(checked).to_bytes(4), checked))


def batch_messages(payload: Buffer, count: int) -> Iterator[tuple[SingleMessageMetadata, memoryview]]:
    """The messages of a decompressed batch; MalformedPayload at the first one that is not there or not readable."""
    rest = memoryview(payload)
    for index in range(count):
        encoded, rest = _sized(rest, f"metadata of message {index} in the batch")
        try:
            single = SingleMessageMetadata.FromString(bytes(encoded))
        except DecodeError as error:
            raise MalformedPayload(f"unreadable metadata of message {index} in the batch") from error
        if not single.HasField("payload_size") or not 0 <= single.payload_size <= len(rest):
            raise MalformedPayload(f"message {index} in the batch has a size that does not fit")
        yield single, rest[: single.payload_size]
        rest = rest[single.payload_size :]
