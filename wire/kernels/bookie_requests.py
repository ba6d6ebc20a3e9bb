"""Adds and reads of the bookie protocol, version 2: frames to runs in a bookie, runs to frames in its client.

A frame is `u32 size | u32 header | body`. An add's body is the master key and the entry as it is stored, a read's is ledger and
entry id. Only what is whole, plain and in order is taken here; the rest goes one at a time through `wire.bookie.version2`.
"""

from array import array
from collections.abc import Mapping

import cython

from wire.bookie.runs import AddMix, AddRun, ReadRun
from wire.run import WIRE_HEADER_BYTES, Buffer, EntryMix, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        finished,
        length_of,
        new_octets,
        octets_of,
        read_u32,
        read_u64,
        writable,
        write_u32,
        write_u64,
    )

RUN_ENTRIES = 4
"""Consecutive entries of one ledger that make a run, which costs less than a mix."""
_COUNT = array("I", [0])


def _same_octets(data: Buffer, one: int, other: int, size: int) -> int:
    """1 when the octets at both places are the same."""
    for index in range(size):
        if data[one + index] != data[other + index]:
            return 0
    return 1


def _read_add(data: Buffer, at: int, end: int, frame_bytes_max: int) -> int:
    """The position after the plain add at `at`; 0 when it is not whole or not plain."""
    if end - at < 60:
        return 0
    total = read_u32(data, at)
    if total < 56 or total + 4 > frame_bytes_max or total > end - at - 4:
        return 0
    # version 2, opcode 1, flags: recovery and high priority at most; ids that are not negative
    if data[at + 4] != 2 or data[at + 5] != 1 or data[at + 6] != 0 or data[at + 7] & 0xF9:
        return 0
    if data[at + 28] > 127 or data[at + 36] > 127:
        return 0
    return at + 4 + total


def take_adds(buffer: Buffer, start: int, end: int, entries_max: int, frame_bytes_max: int) -> AddRun | None:
    """The leading whole, plain adds of consecutive entries of one ledger in buffer[start:end]; None for none.

    Copies the entries, so that the buffer may be reused at once.
    """
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    at = start
    count = 0
    size = 0
    first = 0
    while count < entries_max and size < 0x40000000:
        after = _read_add(data, at, end, frame_bytes_max)
        if after == 0:
            break
        if count:
            # header and key as the first one's, then the ledger, then the next id
            if not _same_octets(data, start + 4, at + 4, 32) or read_u64(data, at + 36) != first + count:
                break
        else:
            first = read_u64(data, at + 36)
        size += after - at - 28
        count += 1
        at = after
    if count == 0:
        return None
    ledger_id = read_u64(data, start + 28)
    header = read_u32(data, start + 4)
    entries, ends = _copied(data, start, count, size)
    run = EntryRun(ledger_id, first, entries, ends, WIRE_HEADER_BYTES)
    return AddRun(header, bytes(memoryview(buffer)[start + 8 : start + 28]), run, at)


def _copied(data: Buffer, start: int, count: int, size: int) -> "tuple[bytes, array[int]]":
    """The entries of `count` adds from `start` on, `size` bytes in all, and their offsets."""
    ends = _COUNT * (count + 1)
    offsets = counts_of(ends)
    entries = new_octets(size)
    room = writable(entries)
    at = start
    place = 0
    for index in range(count):
        after = at + 4 + read_u32(data, at)
        copy_octets(room, place, data, at + 28, after)
        place += after - at - 28
        offsets[index + 1] = place
        at = after
    return finished(entries), ends


def _begins_a_run(data: Buffer, start: int, end: int, frame_bytes_max: int) -> int:
    """1 when what is at `start` are RUN_ENTRIES consecutive entries of one ledger."""
    at = start
    for index in range(RUN_ENTRIES):
        after = _read_add(data, at, end, frame_bytes_max)
        if after == 0:
            return 0
        if (
            read_u64(data, at + 28) != read_u64(data, start + 28)
            or read_u64(data, at + 36) != read_u64(data, start + 36) + index
        ):
            return 0
        at = after
    return 1


def take_mix(
    buffer: Buffer, start: int, end: int, frame_bytes_max: int, writable_ledgers: Mapping[int, bytes]
) -> AddMix | None:
    """The leading whole adds without flags in buffer[start:end], with one key, to ledgers that have this key in
    `writable_ledgers`; None when they begin with a run (`take_adds` is for those), or there is none.

    Copies the entries, so that the buffer may be reused at once.
    """
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    if _begins_a_run(data, start, end, frame_bytes_max):
        return None
    key = bytes(memoryview(buffer)[start + 8 : start + 28])
    at = start
    count = 0
    size = 0
    while size < 0x40000000:
        after = _read_add(data, at, end, frame_bytes_max)
        if after == 0 or data[at + 7] or not _same_octets(data, start + 8, at + 8, 20):
            break
        if writable_ledgers.get(read_u64(data, at + 28)) != key:
            break
        size += after - at - 28
        count += 1
        at = after
    if count == 0:
        return None
    header = read_u32(data, start + 4)
    entries, ends = _copied(data, start, count, size)
    return AddMix(header, key, EntryMix(entries, ends), at)


def take_reads(buffer: Buffer, start: int, end: int, entries_max: int) -> ReadRun | None:
    """The leading whole reads of consecutive entries of one ledger, neither fencing nor of the last entry; None for none."""
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    at = start
    count = 0
    first = 0
    while count < entries_max and end - at >= 24:
        total = read_u32(data, at)
        if total < 20 or total > 64 or total > end - at - 4:
            break
        # version 2, opcode 2, flags: high priority at most; ids that are not negative
        if data[at + 4] != 2 or data[at + 5] != 2 or data[at + 6] != 0 or data[at + 7] & 0xFB:
            break
        if data[at + 8] > 127 or data[at + 16] > 127:
            break
        if count:
            if not _same_octets(data, start + 4, at + 4, 12) or read_u64(data, at + 16) != first + count:
                break
        else:
            first = read_u64(data, at + 16)
        count += 1
        at += 4 + total
    if count == 0:
        return None
    ledger_id = read_u64(data, start + 8)
    return ReadRun(read_u32(data, start + 4), ledger_id, first, count, at)


def add_requests(run: EntryRun | EntryMix, header: int, master_key: bytes) -> bytes:
    """An add for each entry of the run or mix."""
    count = len(run.offsets) - 1
    if len(master_key) != 20 or run.offsets[count] > length_of(run.buffer):
        raise ValueError(f"a master key of {len(master_key)} bytes, entries up to {run.offsets[count]}")
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    key = octets_of(master_key)
    frames = new_octets(run.offsets[count] - run.offsets[0] + count * 28)
    room = writable(frames)
    at = 0
    for index in range(count):
        size = offsets[index + 1] - offsets[index]
        write_u32(room, at, size + 24)
        write_u32(room, at + 4, header)
        copy_octets(room, at + 8, key, 0, 20)
        copy_octets(room, at + 28, data, offsets[index], offsets[index + 1])
        at += 28 + size
    return finished(frames)


def read_requests(header: int, ledger_id: int, first_entry_id: int, count: int) -> bytes:
    """A read of each of `count` entries."""
    frames = new_octets(24 * count)
    room = writable(frames)
    at = 0
    for index in range(count):
        write_u32(room, at, 20)
        write_u32(room, at + 4, header)
        write_u64(room, at + 8, ledger_id)
        write_u64(room, at + 16, first_entry_id + index)
        at += 24
    return finished(frames)
