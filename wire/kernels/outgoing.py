"""Columns to batches: rows of a table as the messages of a batch, one behind the other, as clients write them.

For whoever publishes tables (`pipeline`); the other way round than `columns`. Texts and bytes are as Arrow has them: a buffer,
and where each begins in it (i32, one more than rows).
"""

import cython

from wire.run import Buffer

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        length_of,
        octets_in_room,
        octets_of,
        signed_words_in,
        small_words_in,
        write_u32,
        write_varint,
    )

IS_COMPILED = cython.compiled
IS_NULL, IS_BASE64, HAS_KEY = 1, 2, 32
"""Marks of a row: the value is null, the key is in base 64, there is a key."""
MESSAGE_BYTES_MAX = 42
"""Bytes of a message, beside its value, its key and its properties."""


def put_messages(
    values: Buffer,
    value_bounds: memoryview,
    keys: Buffer,
    key_bounds: memoryview,
    properties: Buffer,
    property_bounds: memoryview,
    event_times: memoryview,
    sequence_ids: memoryview,
    marks: memoryview,
    ends: memoryview,
    room: memoryview,
) -> int:
    """`u32 size | SingleMessageMetadata | value` of each row, fields in the order of their numbers; `ends`: where each ends.

    As many rows as `marks`. Keys, encoded properties and event times (0: none) may be empty altogether. Returns how much was
    written to `room`; IndexError for bounds that do not fit their buffers, or a room that is too small.
    """
    count = len(marks)
    has_keys, has_properties, has_times = len(key_bounds) > 0, len(property_bounds) > 0, len(event_times) > 0
    value_size = length_of(values)
    key_size = length_of(keys)
    property_size = length_of(properties)
    size = length_of(room)
    value_octets = octets_of(values)
    key_octets = octets_of(keys)
    property_octets = octets_of(properties)
    value_at = small_words_in(value_bounds)
    key_at = small_words_in(key_bounds)
    property_at = small_words_in(property_bounds)
    times = signed_words_in(event_times)
    ids = signed_words_in(sequence_ids)
    flags = octets_in_room(marks)
    stops = signed_words_in(ends)
    into = octets_in_room(room)
    at = 0
    for row in range(count):
        mark = flags[row]
        start = value_at[row]
        end = start if mark & 1 else value_at[row + 1]
        key_start = key_at[row] if has_keys and mark & 32 else 0
        key_end = key_at[row + 1] if has_keys and mark & 32 else 0
        first = property_at[row] if has_properties else 0
        last = property_at[row + 1] if has_properties else 0
        if not (_fits(start, end, value_size) and _fits(key_start, key_end, key_size) and _fits(first, last, property_size)):
            raise IndexError(f"row {row}: its value, its key or its properties are beyond their buffer")
        if end - start + key_end - key_start + last - first + 42 > size - at:
            raise IndexError(f"row {row}: no room")
        head = at
        at += 4
        copy_octets(into, at, property_octets, first, last)
        at += last - first
        if mark & 32:
            at = _put_key(into, at, key_octets, key_start, key_end)
        at = _put_numbers(into, at, end - start, times[row] if has_times else 0, ids[row], mark)
        write_u32(into, head, at - head - 4)
        copy_octets(into, at, value_octets, start, end)
        at += end - start
        stops[row] = at
    return at


def _fits(start: int, end: int, size: int) -> bool:
    return 0 <= start <= end <= size


def _put_key(into: memoryview, at: int, keys: Buffer, start: int, end: int) -> int:
    into[at] = 0x12
    at = write_varint(into, at + 1, end - start)
    copy_octets(into, at, keys, start, end)
    return at + end - start


def _put_numbers(into: memoryview, at: int, payload_size: int, event_time: int, sequence_id: int, mark: int) -> int:
    into[at] = 0x18
    at = write_varint(into, at + 1, payload_size)
    if event_time:
        into[at] = 0x28
        at = write_varint(into, at + 1, event_time)
    if mark & 2:
        into[at] = 0x30
        into[at + 1] = 1
        at += 2
    into[at] = 0x40
    at = write_varint(into, at + 1, sequence_id)
    if mark & 1:
        into[at] = 0x48
        into[at + 1] = 1
        at += 2
    return at
