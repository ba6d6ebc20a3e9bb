"""Ledger metadata and its bytes in the metadata store. Pure.

`BookieMetadataFormatVersion`, a tab, the version and a newline; then, in version 3, the size of the message as a varint and the
message. Versions 1 and 2 are text (`metadata_text_formats`). A ledger keeps the version that it was made with, as in Apache.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from google.protobuf.message import DecodeError

from bookkeeper.ledger_metadata.text_formats import (
    MalformedText,
    decode_version_1,
    decode_version_2,
    encode_version_1,
    encode_version_2,
)
from wire.bookie.digests import DigestType
from wire.generated.ledger_metadata_pb2 import LedgerMetadataFormat

_PREFIX = b"BookieMetadataFormatVersion\t"
CURRENT_VERSION = 3
MASTER_KEY_BYTES = 20


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
    """Metadata of a ledger as the store has it. `last_entry_id` and `length_bytes` count once it is CLOSED.

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
    format_version: int = CURRENT_VERSION

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
    return b"%s%d\n%s" % (_PREFIX, metadata.format_version, _encoded(message, metadata))


def _encoded(message: LedgerMetadataFormat, metadata: LedgerMetadata) -> bytes:
    match metadata.format_version:
        case 1:
            return encode_version_1(message)
        case 2:
            return encode_version_2(message)
    body = message.SerializeToString() + metadata.unknown_fields
    return _varint(len(body)) + body


def decode_ledger_metadata(data: bytes) -> LedgerMetadata:
    first_line, _, rest = data.partition(b"\n")
    decode = _DECODERS.get(first_line.removeprefix(_PREFIX)) if first_line.startswith(_PREFIX) else None
    if decode is None:
        raise MalformedLedgerMetadata(f"unknown version: {data[:32]!r}")
    try:
        message = decode(rest)
    except (DecodeError, MalformedText) as error:
        raise MalformedLedgerMetadata(str(error)) from error
    return replace(_metadata(message), format_version=int(first_line.removeprefix(_PREFIX)))


def _decode_version_3(rest: bytes) -> LedgerMetadataFormat:
    size_bytes = 1
    while rest[size_bytes - 1 : size_bytes] >= b"\x80":
        size_bytes += 1
    body = rest[size_bytes:]
    if rest[:size_bytes] != _varint(len(body)):
        raise MalformedText(f"the size written is not that of the {len(body)} bytes after it")
    return LedgerMetadataFormat.FromString(body)


_DECODERS = {b"1": decode_version_1, b"2": decode_version_2, b"3": _decode_version_3}


def _metadata(message: LedgerMetadataFormat) -> LedgerMetadata:
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


def master_key(password: bytes) -> bytes:
    """BookKeeper's: SHA-1 over "ledger" and the password, whatever the digest type, also for the empty one."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()
