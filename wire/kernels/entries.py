"""The entry header of BookKeeper and its digest: sealing a batch in place, checking a run.

A sealed entry is `ledger id | entry id | last add confirmed | ledger length | digest | payload`; the length counts the payload
bytes of the ledger up to and including this entry, and the digest covers everything but itself. CRC32C (36 header bytes) and
the empty digest (32) are done here; the others are in `wire.bookie.digests`.
"""

from array import array

import cython

from wire.run import Buffer, EntryBatch, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        counts_of,
        crc32c_of,
        length_of,
        octets_of,
        read_u32,
        read_u64,
        room_in,
        write_u32,
        write_u64,
    )


def _first_bad_offset(offsets: "array[int]", count: int, header_bytes: int, size: int) -> int:
    """The index of the first entry that does not lie, with its header, inside the buffer; -1 when all do."""
    for index in range(count):
        if offsets[index] + header_bytes > offsets[index + 1] or offsets[index + 1] > size:
            return index
    return -1


def seal(batch: EntryBatch, ledger_id: int, first_entry_id: int, last_add_confirmed: int, length_before: int) -> int:
    """Write the header and digest of each entry into the room that the batch left; the length of the ledger after it."""
    header_bytes = batch.header_bytes
    count = len(batch.offsets) - 1
    offsets = counts_of(batch.offsets)
    if header_bytes != 36 and header_bytes != 32:
        raise ValueError(f"no kernel seals with {header_bytes} header bytes")
    if _first_bad_offset(offsets, count, header_bytes, length_of(batch.buffer)) >= 0:
        raise ValueError("the offsets do not fit the buffer")
    room = room_in(batch.buffer)
    data = octets_of(batch.buffer)
    length = length_before
    for index in range(count):
        at = offsets[index]
        after = offsets[index + 1]
        length += after - at - header_bytes
        write_u64(room, at, ledger_id)
        write_u64(room, at + 8, first_entry_id + index)
        write_u64(room, at + 16, last_add_confirmed)
        write_u64(room, at + 24, length)
        if header_bytes == 36:
            write_u32(room, at + 32, crc32c_of(data, at + 36, after, crc32c_of(data, at, at + 32, 0)))
    return length


def first_damaged(run: EntryRun) -> int:
    """The index of the first entry whose header names another place, or whose digest does not match; -1 when all are sound."""
    header_bytes = run.header_bytes
    count = len(run.offsets) - 1
    offsets = counts_of(run.offsets)
    if header_bytes != 36 and header_bytes != 32:
        raise ValueError(f"no kernel checks {header_bytes} header bytes")
    bad = _first_bad_offset(offsets, count, header_bytes, length_of(run.buffer))
    if bad >= 0:
        count = bad
    ledger_id = run.ledger_id
    entry_id = run.first_entry_id
    data = octets_of(run.buffer)
    for index in range(count):
        at = offsets[index]
        if read_u64(data, at) != ledger_id or read_u64(data, at + 8) != entry_id:
            return index
        digest = crc32c_of(data, at + 36, offsets[index + 1], crc32c_of(data, at, at + 32, 0)) if header_bytes == 36 else 0
        if header_bytes == 36 and read_u32(data, at + 32) != digest:
            return index
        entry_id += 1
    return bad


def checksum(buffer: Buffer, seed: int = 0) -> int:
    """CRC32C of a buffer; `seed` is the CRC32C of what stands before it."""
    return crc32c_of(octets_of(buffer), 0, length_of(buffer), seed)
