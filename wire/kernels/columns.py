"""Batches to columns: where the parts of each message are, and the bytes of many places one behind the other.

For whoever makes tables of topics (`pipeline`): columns are memoryviews of words of eight bytes, as numpy's `data` is. Only
what clients write is read here: of anything else `take_messages` says so, and whoever asked reads those batches in another way.
"""

from array import array

import cython

from wire.run import Buffer

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        length_of,
        octets_in_room,
        octets_of,
        read_u32,
        signed_words_in,
        signed_words_of,
        small_words_in,
        varint_end,
        varint_value,
    )

IS_COMPILED = cython.compiled
COLUMNS = 9
"""Columns that `take_messages` fills: batch of the message and its index in that, start and end of the metadata, end of the
payload, start and end of the key (-1 and -1 without one), event time, sequence id."""
IS_NULL, IS_BASE64, IS_COMPACTED_OUT, HAS_SEQUENCE_ID, HAS_PROPERTIES = 1, 2, 4, 8, 16
_ZERO = array("q", [0])


def _read_single(data: Buffer, at: int, end: int, found: "array[int]") -> int:
    """The SingleMessageMetadata [at, end): 1 payload size, 2-3 bounds of the key, 4-5 numbers, 6 flags; 0: not for us."""
    found[2] = -1
    found[3] = -1
    found[4] = 0
    found[5] = 0
    flags = 0
    payload = -1
    while at < end:
        tag = data[at]
        after = varint_end(data, at + 1, end)
        if after == 0:
            return 0
        value = varint_value(data, at + 1, after)
        if value >> 63:
            return 0
        at = after
        if tag == 0x18:
            payload = value
        elif tag == 0x12 or tag == 0x0A or tag == 0x3A:
            if value > end - after:
                return 0
            at = after + value
            if tag == 0x12:
                found[2] = after
                found[3] = at
            elif tag == 0x0A:
                flags |= 16
        elif tag == 0x28:
            found[4] = value
        elif tag == 0x40:
            found[5] = value
            flags |= 8
        elif tag == 0x20:
            flags = flags | 4 if value else flags & ~4
        elif tag == 0x30:
            flags = flags | 2 if value else flags & ~2
        elif tag == 0x48:
            flags = flags | 1 if value else flags & ~1
        elif tag != 0x50:
            return 0
    found[1] = payload
    found[6] = flags
    return 1


def take_messages(
    data: Buffer, starts: memoryview, ends: memoryview, counts: memoryview, columns: memoryview, flags: memoryview
) -> bool:
    """The messages of the batches `data[start:end]`, of which each has `counts`: COLUMNS of all of them, and IS_NULL and so on.

    `columns` has room for COLUMNS times their sum: one column behind the other; `flags` a byte for each message. False where
    something is damaged or not as clients write it; then what was filled does not count.
    """
    batches = len(starts)
    total = len(flags)
    size = length_of(data)
    octets = octets_of(data)
    firsts = signed_words_in(starts)
    lasts = signed_words_in(ends)
    sizes = signed_words_in(counts)
    into = signed_words_in(columns)
    marks = octets_in_room(flags)
    scratch = _ZERO * 8
    found = signed_words_of(scratch)
    row = 0
    for batch in range(batches):
        at = firsts[batch]
        end = lasts[batch]
        if at < 0 or end > size:
            return False
        for index in range(sizes[batch]):
            if row == total or end - at < 4:
                return False
            start = at + 4
            stop = start + read_u32(octets, at)
            if stop > end or _read_single(octets, start, stop, found) == 0 or not 0 <= found[1] <= end - stop:
                return False
            at = stop + found[1]
            into[row] = batch
            into[row + total] = index
            into[row + 2 * total] = start
            into[row + 3 * total] = stop
            into[row + 4 * total] = at
            into[row + 5 * total] = found[2]
            into[row + 6 * total] = found[3]
            into[row + 7 * total] = found[4]
            into[row + 8 * total] = found[5]
            marks[row] = found[6]
            row += 1
    return row == total


def _put(room: memoryview, at: int, size: int, data: Buffer, start: int, end: int) -> int:
    """End of the copy of data[start:end] in the room of that size; -1: it does not fit. In no room nothing is put."""
    if size == 0:
        return 0
    if end - start > size - at:
        return -1
    copy_octets(room, at, data, start, end)
    return at + end - start


def take_columns(
    data: Buffer,
    batches: memoryview,
    keys: memoryview,
    key_ends: memoryview,
    values: memoryview,
    value_ends: memoryview,
    has_key: memoryview,
) -> int:
    """Keys and payloads of the messages of batches, each behind the other, and where each begins (i32, and the end).

    `batches` are three columns one behind the other: start, end, number of messages. A room of no bytes: those are not wanted.
    `has_key` has a byte for each message; how many have none is returned. -1 where something is damaged, not as clients write
    it, not the bytes that are meant (no value, a key in base64, compacted out), or does not fit: then nothing of it counts.
    """
    count = len(batches) // 3
    total = len(has_key)
    size = length_of(data)
    keys_size = length_of(keys)
    values_size = length_of(values)
    octets = octets_of(data)
    places = signed_words_in(batches)
    key_room = octets_in_room(keys)
    value_room = octets_in_room(values)
    key_bounds = small_words_in(key_ends)
    value_bounds = small_words_in(value_ends)
    marks = octets_in_room(has_key)
    scratch = _ZERO * 8
    found = signed_words_of(scratch)
    keys_at = values_at = absent = row = 0
    key_bounds[0] = value_bounds[0] = 0
    for batch in range(count):
        at = places[batch]
        end = places[batch + count]
        if at < 0 or end > size:
            return -1
        for _ in range(places[batch + 2 * count]):
            if row == total or end - at < 4:
                return -1
            start = at + 4
            stop = start + read_u32(octets, at)
            if stop > end or _read_single(octets, start, stop, found) == 0 or not 0 <= found[1] <= end - stop or found[6] & 7:
                return -1
            at = stop + found[1]
            marks[row] = found[2] >= 0
            absent += found[2] < 0
            keys_at = _put(key_room, keys_at, keys_size, octets, found[2], found[3])
            values_at = _put(value_room, values_at, values_size, octets, stop, at)
            if keys_at < 0 or values_at < 0:
                return -1
            row += 1
            key_bounds[row] = keys_at
            value_bounds[row] = values_at
    return absent if row == total else -1


def gather(data: Buffer, starts: memoryview, ends: memoryview, offsets: memoryview, room: memoryview) -> None:
    """The bytes `data[start:end]` of each place, one behind the other, and where each begins (i32, one more than places).

    Nothing of a place whose end is not behind its start. IndexError for one that is not in the data, or does not fit.
    """
    size = length_of(data)
    left = length_of(room)
    octets = octets_of(data)
    firsts = signed_words_in(starts)
    lasts = signed_words_in(ends)
    bounds = small_words_in(offsets)
    into = octets_in_room(room)
    at = 0
    bounds[0] = 0
    for row in range(len(starts)):
        start = firsts[row]
        length = lasts[row] - start
        if length > 0:
            if start < 0 or length > left - at or start + length > size:
                raise IndexError(f"place {row}: {start} to {start + length}")
            copy_octets(into, at, octets, start, start + length)
            at += length
        bounds[row + 1] = at
