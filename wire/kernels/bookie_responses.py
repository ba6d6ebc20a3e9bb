"""Responses to adds and reads of the bookie protocol, version 2: runs to frames in a bookie, frames to runs in its client.

A response is `u32 size | u32 header | i32 code | ledger id | entry id`, and for a read the entry as it is stored.
"""

from array import array

import cython

from wire.bookie.runs import AddedRun
from wire.run import WIRE_HEADER_BYTES, Buffer, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        finished,
        length_of,
        new_octets,
        new_room,
        octets_of,
        read_u32,
        read_u64,
        room_in,
        writable,
        write_u32,
        write_u64,
    )

_COUNT = array("I", [0])


def plain_responses(header: int, code: int, ledger_id: int, first_entry_id: int, count: int) -> bytes:
    """Responses without an entry for `count` consecutive requests; `header` has no flags."""
    frames = new_octets(28 * count)
    room = writable(frames)
    at = 0
    for index in range(count):
        write_u32(room, at, 24)
        write_u32(room, at + 4, header)
        write_u32(room, at + 8, code)
        write_u64(room, at + 12, ledger_id)
        write_u64(room, at + 20, first_entry_id + index)
        at += 28
    return finished(frames)


def read_responses(run: EntryRun, header: int) -> bytes:
    """A response with its entry for each entry of the run; `header` has no flags."""
    count = len(run.offsets) - 1
    if run.offsets[count] > length_of(run.buffer):
        raise ValueError("the offsets do not fit the buffer")
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    ledger_id = run.ledger_id
    entry_id = run.first_entry_id
    frames = new_octets(run.offsets[count] - run.offsets[0] + 28 * count)
    room = writable(frames)
    at = 0
    for index in range(count):
        size = offsets[index + 1] - offsets[index]
        write_u32(room, at, size + 24)
        write_u32(room, at + 4, header)
        write_u32(room, at + 8, 0)
        write_u64(room, at + 12, ledger_id)
        write_u64(room, at + 20, entry_id + index)
        copy_octets(room, at + 28, data, offsets[index], offsets[index + 1])
        at += 28 + size
    return finished(frames)


def batched_entries(run: EntryRun) -> bytes:
    """The entries of the run as a batch read's response has them: each with its size before it."""
    count = len(run.offsets) - 1
    if run.offsets[count] > length_of(run.buffer):
        raise ValueError("the offsets do not fit the buffer")
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    body = new_octets(run.offsets[count] - run.offsets[0] + 4 * count)
    room = writable(body)
    at = 0
    for index in range(count):
        size = offsets[index + 1] - offsets[index]
        write_u32(room, at, size)
        copy_octets(room, at + 4, data, offsets[index], offsets[index + 1])
        at += 4 + size
    return finished(body)


def take_added(buffer: Buffer, start: int, end: int) -> AddedRun | None:
    """The leading whole responses of adds to consecutive entries of one ledger with one code; None for none."""
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    at = start
    count = 0
    while end - at >= 28:
        if read_u32(data, at) != 24 or data[at + 4] != 2 or data[at + 5] != 1:
            break
        if count and (
            read_u32(data, at + 8) != read_u32(data, start + 8)
            or read_u64(data, at + 12) != read_u64(data, start + 12)
            or read_u64(data, at + 20) != read_u64(data, start + 20) + count
        ):
            break
        count += 1
        at += 28
    if count == 0:
        return None
    ledger_id = read_u64(data, start + 12)
    entry_id = read_u64(data, start + 20)
    return AddedRun(read_u32(data, start + 8), ledger_id, entry_id, count, at)


def take_read(buffer: Buffer, start: int, end: int, entries_max: int, frame_bytes_max: int) -> tuple[EntryRun, int] | None:
    """The entries of the leading whole, good responses of reads of consecutive entries of one ledger, and where they end.

    Copies them. None for none: what is there then is another response, or not whole.
    """
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    at = start
    count = 0
    size = 0
    while count < entries_max and end - at >= 60 and size < 0x40000000:
        total = read_u32(data, at)
        if total < 56 or total + 4 > frame_bytes_max or total > end - at - 4 or data[at + 4] != 2 or data[at + 5] != 2:
            break
        if read_u32(data, at + 8) != 0 or data[at + 12] > 127 or data[at + 20] > 127:
            break
        if count and (
            read_u64(data, at + 12) != read_u64(data, start + 12)
            or read_u64(data, at + 20) != read_u64(data, start + 20) + count
        ):
            break
        size += total - 24
        count += 1
        at += 4 + total
    if count == 0:
        return None
    ends = _COUNT * (count + 1)
    entries = new_room(size)
    offsets = counts_of(ends)
    room = room_in(entries)
    at = start
    place = 0
    for index in range(count):
        total = read_u32(data, at)
        copy_octets(room, place, data, at + 28, at + 4 + total)
        place += total - 24
        offsets[index + 1] = place
        at += 4 + total
    ledger_id = read_u64(data, start + 12)
    entry_id = read_u64(data, start + 20)
    return EntryRun(ledger_id, entry_id, entries, ends, WIRE_HEADER_BYTES), at
