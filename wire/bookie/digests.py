"""All of BookKeeper's entry digests, one entry at a time: for ledgers that other clients have written or will read.

Our own ledgers have CRC32C, whose loops are in `wire.kernels.entries`; this module calls those, and does the others slowly.
"""

import hashlib
import hmac
import itertools
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

from wire.kernels import entries
from wire.run import Buffer, EntryBatch, EntryRun

PREFIX_BYTES = 32
"""Ledger id, entry id, last add confirmed, ledger length."""


class DigestType(IntEnum):
    """Numbers of LedgerMetadataFormat.DigestType."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


HEADER_BYTES = {DigestType.CRC32: 40, DigestType.HMAC: 52, DigestType.CRC32C: 36, DigestType.DUMMY: 32}
"""Header and digest together: the room before each payload."""

_PREFIX = struct.Struct(">qqqq")
_PLACE = struct.Struct(">qq")
_SHA1_BLOCK_BYTES = 64
_Compute = Callable[[Buffer, Buffer], bytes]


def seal(
    batch: EntryBatch,
    ledger_id: int,
    first_entry_id: int,
    last_add_confirmed: int,
    length_before: int,
    digest: DigestType,
    password: bytes = b"",
) -> int:
    """Seal as the kernel's `seal`, with any digest."""
    if digest in (DigestType.CRC32C, DigestType.DUMMY):
        return entries.seal(batch, ledger_id, first_entry_id, last_add_confirmed, length_before)
    _check_room(batch.header_bytes, digest)
    compute = _digest(digest, password)
    view, offsets, header_bytes = memoryview(batch.buffer), batch.offsets, batch.header_bytes
    length = length_before
    for entry_id, at, end in zip(itertools.count(first_entry_id), offsets, offsets[1:], strict=False):
        payload_at = at + header_bytes
        length += end - payload_at
        prefix = _PREFIX.pack(ledger_id, entry_id, last_add_confirmed, length)
        view[at:payload_at] = prefix + compute(prefix, view[payload_at:end])
    return length


def first_damaged(run: EntryRun, digest: DigestType, password: bytes = b"") -> int:
    """First damaged entry as the kernel's `first_damaged`, with any digest."""
    if digest in (DigestType.CRC32C, DigestType.DUMMY):
        return entries.first_damaged(run)
    _check_room(run.header_bytes, digest)
    compute = _digest(digest, password)
    view, offsets, header_bytes = memoryview(run.buffer), run.offsets, run.header_bytes
    for index, (at, end) in enumerate(itertools.pairwise(offsets)):
        place = _PLACE.pack(run.ledger_id, run.first_entry_id + index)
        if end > len(view) or end - at < header_bytes or view[at : at + 16] != place:
            return index
        computed = compute(view[at : at + PREFIX_BYTES], view[at + header_bytes : end])
        if not hmac.compare_digest(computed, view[at + PREFIX_BYTES : at + header_bytes]):
            return index
    return -1


def lac_record(ledger_id: int, last_add_confirmed: int, digest: DigestType, password: bytes = b"") -> bytes:
    """An explicit last add confirmed as its writer sends it: ledger id, number, digest of the two (DigestManager)."""
    numbers = ledger_id.to_bytes(8) + last_add_confirmed.to_bytes(8, signed=True)
    return numbers + _digest(digest, password)(memoryview(numbers), memoryview(b""))


def lac_in_record(record: bytes, ledger_id: int, digest: DigestType, password: bytes = b"") -> int | None:
    """Last add confirmed that the ledger's writer sent; None when it is no such record, or damaged."""
    number = int.from_bytes(record[8:16], signed=True)
    expected = lac_record(ledger_id, number, digest, password)
    return number if hmac.compare_digest(record, expected) else None


def _check_room(header_bytes: int, digest: DigestType) -> None:
    if header_bytes != HEADER_BYTES[digest]:
        raise ValueError(f"{digest.name} needs {HEADER_BYTES[digest]} header bytes, not {header_bytes}")


def _digest(digest: DigestType, password: bytes) -> _Compute:
    if digest is DigestType.DUMMY:
        return lambda prefix, payload: b""
    if digest is DigestType.CRC32C:
        return lambda prefix, payload: entries.checksum(payload, entries.checksum(prefix)).to_bytes(4)
    if digest is DigestType.CRC32:
        return lambda prefix, payload: zlib.crc32(payload, zlib.crc32(prefix)).to_bytes(8)
    key = hashlib.sha1(b"mac" + password, usedforsecurity=False).digest().ljust(_SHA1_BLOCK_BYTES, b"\0")
    # As hmac.new, but with its two hashes of the key made once: that is most of the work for a small entry.
    inner = hashlib.sha1(bytes(octet ^ 0x36 for octet in key), usedforsecurity=False)
    outer = hashlib.sha1(bytes(octet ^ 0x5C for octet in key), usedforsecurity=False)

    def authenticate(prefix: Buffer, payload: Buffer) -> bytes:
        within, code = inner.copy(), outer.copy()
        within.update(prefix)
        within.update(payload)
        code.update(within.digest())
        return code.digest()

    return authenticate
