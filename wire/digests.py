"""All of BookKeeper's entry digests, one entry at a time: for ledgers that somebody else has written or will read.

Our own ledgers have CRC32C, whose loops are in `wire.kernels.entries`; this goes there for it, and does the others slowly.
"""

import hashlib
import hmac
import zlib
from collections.abc import Callable
from enum import IntEnum

from wire.kernels import entries
from wire.run import EntryBatch, EntryRun

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

_Compute = Callable[[memoryview, memoryview], bytes]


def seal(
    batch: EntryBatch,
    ledger_id: int,
    first_entry_id: int,
    last_add_confirmed: int,
    length_before: int,
    digest: DigestType,
    password: bytes = b"",
) -> int:
    """As the kernel's `seal`, with any digest."""
    if digest in (DigestType.CRC32C, DigestType.DUMMY):
        return entries.seal(batch, ledger_id, first_entry_id, last_add_confirmed, length_before)
    _check_room(batch.header_bytes, digest)
    compute = _digest(digest, password)
    view = memoryview(batch.buffer)
    length = length_before
    for index in range(batch.count):
        entry = view[batch.offsets[index] : batch.offsets[index + 1]]
        length += len(entry) - batch.header_bytes
        numbers = (ledger_id, first_entry_id + index, last_add_confirmed, length)
        entry[:PREFIX_BYTES] = b"".join(number.to_bytes(8, signed=True) for number in numbers)
        entry[PREFIX_BYTES : batch.header_bytes] = compute(entry[:PREFIX_BYTES], entry[batch.header_bytes :])
    return length


def first_damaged(run: EntryRun, digest: DigestType, password: bytes = b"") -> int:
    """As the kernel's `first_damaged`, with any digest."""
    if digest in (DigestType.CRC32C, DigestType.DUMMY):
        return entries.first_damaged(run)
    _check_room(run.header_bytes, digest)
    compute = _digest(digest, password)
    view = memoryview(run.buffer)
    for index in range(run.count):
        entry = view[run.offsets[index] : run.offsets[index + 1]]
        place = run.ledger_id.to_bytes(8, signed=True) + (run.first_entry_id + index).to_bytes(8, signed=True)
        if len(entry) != run.offsets[index + 1] - run.offsets[index] or len(entry) < run.header_bytes or entry[:16] != place:
            return index
        stated = entry[PREFIX_BYTES : run.header_bytes]
        if not hmac.compare_digest(compute(entry[:PREFIX_BYTES], entry[run.header_bytes :]), stated):
            return index
    return -1


def lac_record(ledger_id: int, last_add_confirmed: int, digest: DigestType, password: bytes = b"") -> bytes:
    """An explicit last add confirmed as its writer sends it: ledger id, number, digest of the two (DigestManager)."""
    numbers = ledger_id.to_bytes(8) + last_add_confirmed.to_bytes(8, signed=True)
    return numbers + _digest(digest, password)(memoryview(numbers), memoryview(b""))


def lac_in_record(record: bytes, ledger_id: int, digest: DigestType, password: bytes = b"") -> int | None:
    """What the ledger's writer sent as its last add confirmed; None when it is no such record, or damaged."""
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
    key = hashlib.sha1(b"mac" + password, usedforsecurity=False).digest()

    def authenticate(prefix: memoryview, payload: memoryview) -> bytes:
        code = hmac.new(key, prefix, "sha1")
        code.update(payload)
        return code.digest()

    return authenticate
