"""Entries of a compacted ledger: `size | MessageIdData | size | payload section` (Apache: RawMessageImpl.serialize)."""

from array import array

import cython

from wire.run import Buffer, EntryBatch, EntryRun

if not cython.compiled:
    from wire.kernels.compaction import _next_single
    from wire.kernels.octets import (
        bytes_of,
        clear_octets,
        copy_octets,
        counts_of,
        field_end,
        length_of,
        new_room,
        octets_of,
        read_u32,
        room_in,
        varint_end,
        varint_size,
        varint_value,
        words_of,
        write_u32,
        write_varint,
    )

_FIELDS = 4
_FIELDS_OF_SINGLE = 16
_keep = 1
_rewrite = 2
_COUNT = array("I", [0])
_WORD = array("Q", [0])


def _read_id(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """Read the entry [at, end): 0-1 bounds of its payload section, 2 ledger id, 3 entry id; 0: not readable."""
    fields[2] = 0
    fields[3] = 0
    seen = 0
    if end - at < 8:
        return 0
    size = read_u32(data, at)
    at += 4
    if size > end - at - 4:
        return 0
    stop = at + size
    while at < stop:
        after = varint_end(data, at, stop)
        if after == 0:
            return 0
        key = varint_value(data, at, after)
        at = field_end(data, after, stop, key & 7)
        if at == 0 or key < 8:
            return 0
        if key == 0x08:
            fields[2] = varint_value(data, after, at)
            seen |= 1
        elif key == 0x10:
            fields[3] = varint_value(data, after, at)
            seen |= 2
    size = read_u32(data, stop)
    if seen != 3 or size > end - stop - 4:
        return 0
    fields[0] = stop + 4
    fields[1] = stop + 4 + size
    return 1


def message_id(run: EntryRun, index: int) -> tuple[int, int]:
    """Ledger and entry id that the entry of a compacted ledger is a copy of. ValueError when it is none."""
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    offsets = counts_of(run.offsets)
    if not _read_id(octets_of(run.buffer), offsets[index] + run.header_bytes, offsets[index + 1], fields):
        raise ValueError(f"entry {run.first_entry_id + index} of ledger {run.ledger_id} is no compacted message")
    return fields[2], fields[3]


def pack(run: EntryRun, verdicts: "array[int]", rewritten: dict[int, bytes], partition: int, header_bytes: int) -> EntryBatch:
    """The entries that are KEEP, and by index those that are `rewritten`, in the format of a compacted ledger.

    `size | MessageIdData | size | payload section` (RawMessageImpl.serialize), after `header_bytes` of room.
    """
    data = octets_of(run.buffer)
    offsets = counts_of(run.offsets)
    before = run.header_bytes
    count = len(run.offsets) - 1
    chosen = bytes_of(verdicts)
    ledger_id = run.ledger_id
    first = run.first_entry_id
    negative = partition + (1 << 64) if partition < 0 else partition
    fixed = 3 + varint_size(ledger_id) + varint_size(negative)
    total = 0
    entries = 0
    for index in range(count):
        if chosen[index] == _keep:
            size = offsets[index + 1] - offsets[index] - before
        elif chosen[index] == _rewrite:
            size = len(rewritten[index])
        else:
            continue
        entries += 1
        total += header_bytes + 8 + fixed + varint_size(first + index) + size
    buffer = new_room(total)
    room = room_in(buffer)
    places = _COUNT * (entries + 1)
    starts = counts_of(places)
    at = 0
    entries = 0
    for index in range(count):
        if chosen[index] != _keep and chosen[index] != _rewrite:
            continue
        starts[entries] = at
        entries += 1
        clear_octets(room, at, at + header_bytes)
        at += header_bytes
        write_u32(room, at, fixed + varint_size(first + index))
        at += 4
        room[at] = 0x08
        at = write_varint(room, at + 1, ledger_id)
        room[at] = 0x10
        at = write_varint(room, at + 1, first + index)
        room[at] = 0x18
        at = write_varint(room, at + 1, negative)
        if chosen[index] == _keep:
            size = offsets[index + 1] - offsets[index] - before
            write_u32(room, at, size)
            copy_octets(room, at + 4, data, offsets[index] + before, offsets[index + 1])
        else:
            section = rewritten[index]
            size = len(section)
            write_u32(room, at, size)
            copy_octets(room, at + 4, octets_of(section), 0, size)
        at += 4 + size
    starts[entries] = at
    return EntryBatch(buffer, places, header_bytes, entries)


def unpack(run: EntryRun, start: int, span_max: int) -> "tuple[EntryRun, array[int], int]":
    """The entries of a compacted ledger from index `start` on as entries of the ledger that they are copies of.

    A run without header bytes, whose ids go on without a gap: entries that were compacted away are empty. It ends before an
    entry of another ledger, or beyond `span_max` ids. Also the ids that are there ("I"), and the index after the last taken.
    ValueError when an entry is no compacted message, or its id does not follow.
    """
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    header_bytes = run.header_bytes
    count = len(run.offsets) - 1
    ledger_id = 0
    first = 0
    last = 0
    total = 0
    stop = start
    for index in range(start, count):
        if not _read_id(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            raise ValueError(f"entry {run.first_entry_id + index} of ledger {run.ledger_id} is no compacted message")
        if index == start:
            ledger_id = fields[2]
            first = fields[3]
        elif fields[2] != ledger_id or fields[3] <= last or fields[3] - first >= span_max:
            break
        last = fields[3]
        total += fields[1] - fields[0]
        stop = index + 1
    present = _COUNT * (stop - start)
    ids = counts_of(present)
    places = _COUNT * (last - first + 2)
    starts = counts_of(places)
    buffer = new_room(total)
    room = room_in(buffer)
    at = 0
    expected = first
    for index in range(start, stop):
        _read_id(data, offsets[index] + header_bytes, offsets[index + 1], fields)
        while expected < fields[3]:
            starts[expected - first] = at
            expected += 1
        starts[expected - first] = at
        expected += 1
        ids[index - start] = fields[3]
        copy_octets(room, at, data, fields[0], fields[1])
        at += fields[1] - fields[0]
    starts[expected - first] = at
    return EntryRun(ledger_id, first, buffer, places, 0), present, stop


def last_index(payload: Buffer, count: int) -> int:
    """The index of the last message of a decompressed batch that is not compacted out; -1: there is none, or not readable."""
    parsed = _WORD * _FIELDS_OF_SINGLE
    fields = words_of(parsed)
    data = octets_of(payload)
    size = length_of(payload)
    at = 0
    found = -1
    for index in range(count):
        at = _next_single(data, at, size, fields)
        if at == 0:
            return -1
        if not fields[11]:
            found = index
    return found
