"""Ledger metadata and its bytes in the metadata store (BookKeeper's version 3). Pure.

`BookieMetadataFormatVersion`, a tab, the version and a newline; then the size of the message as a varint, and the message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from google.protobuf.message import DecodeError

from wire.digests import DigestType
from wire.generated.ledger_metadata_pb2 import LedgerMetadataFormat

_PREFIX = b"BookieMetadataFormatVersion\t3\n"


class MalformedLedgerMetadata(Exception):
    """The bytes of a ledger's node are not what this software reads."""


class LedgerState(IntEnum):
    """Numbers of LedgerMetadataFormat.State."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True)
class Segment:
    """The bookies of the entries from `first_entry_id` up to the next segment."""

    first_entry_id: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """What the store knows of a ledger. `last_entry_id` and `length_bytes` count once it is CLOSED.

    `unknown_fields` are of a later version than this software, and are written back as they came.
    """

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    segments: tuple[Segment, ...]
    state: LedgerState = LedgerState.OPEN
    last_entry_id: int = -1
    length_bytes: int = 0
    digest_type: DigestType = DigestType.CRC32C
    password: bytes = b""
    custom_metadata: Mapping[str, bytes] = field(default_factory=dict)
    created_ms: int | None = None
    creation_token: int | None = None
    unknown_fields: bytes = b""

    def in_recovery(self) -> "LedgerMetadata":
        return replace(self, state=LedgerState.IN_RECOVERY)

    def closed(self, last_entry_id: int, length_bytes: int) -> "LedgerMetadata":
        return replace(self, state=LedgerState.CLOSED, last_entry_id=last_entry_id, length_bytes=length_bytes)


def encode_ledger_metadata(metadata: LedgerMetadata) -> bytes:
    message = LedgerMetadataFormat(
        quorumSize=metadata.write_quorum,
        ensembleSize=metadata.ensemble_size,
        length=metadata.length_bytes,
        lastEntryId=metadata.last_entry_id,
        state=metadata.state.name,
        digestType=metadata.digest_type.name,
        password=metadata.password,
        ackQuorumSize=metadata.ack_quorum,
        ctime=metadata.created_ms,
        cToken=metadata.creation_token,
    )
    for segment in metadata.segments:
        message.segment.add(ensembleMember=segment.bookies, firstEntryId=segment.first_entry_id)
    for key, value in metadata.custom_metadata.items():
        message.customMetadata.add(key=key, value=value)
    body = message.SerializeToString() + metadata.unknown_fields
    return _PREFIX + _varint(len(body)) + body


def decode_ledger_metadata(data: bytes) -> LedgerMetadata:
    if not data.startswith(_PREFIX):
        raise MalformedLedgerMetadata(f"unknown version: {data[:32]!r}")
    start = len(_PREFIX)
    while data[start : start + 1] >= b"\x80":
        start += 1
    body = data[start + 1 :]
    if data[len(_PREFIX) : start + 1] != _varint(len(body)):
        raise MalformedLedgerMetadata(f"the size written is not that of the {len(body)} bytes after it")
    try:
        message = LedgerMetadataFormat.FromString(body)
    except DecodeError as error:
        raise MalformedLedgerMetadata(str(error)) from error
    return LedgerMetadata(
        ensemble_size=message.ensembleSize,
        write_quorum=message.quorumSize,
        ack_quorum=message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize,
        segments=tuple(Segment(segment.firstEntryId, tuple(segment.ensembleMember)) for segment in message.segment),
        state=LedgerState(message.state),
        last_entry_id=message.lastEntryId if message.HasField("lastEntryId") else -1,
        length_bytes=message.length,
        digest_type=DigestType(message.digestType) if message.HasField("digestType") else DigestType.HMAC,
        password=message.password,
        custom_metadata={entry.key: entry.value for entry in message.customMetadata},
        created_ms=message.ctime if message.HasField("ctime") else None,
        creation_token=message.cToken if message.HasField("cToken") else None,
        unknown_fields=_unknown_fields(message),
    )


def _unknown_fields(message: LedgerMetadataFormat) -> bytes:
    rest = LedgerMetadataFormat()
    rest.CopyFrom(message)
    for field_descriptor in rest.DESCRIPTOR.fields:
        rest.ClearField(field_descriptor.name)
    return rest.SerializePartialToString()


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
