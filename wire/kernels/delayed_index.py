"""The loops over stored facts of delayed messages: "this entry may be delivered at that time".

A segment is a protobuf message of Apache's (`SnapshotSegment`, proto/delayed_index.proto): its field 1, repeated, holds time,
ledger and entry. In memory facts are three arrays of one length: times ("q", milliseconds since the epoch), ledger ids ("Q")
and entry ids ("I"). Items are those of `delays`; here the upper half of an item's number says, by tables, which ledger and
which upper half of the entry id are meant.
"""

from array import array

import cython

from wire.run import Buffer

if not cython.compiled:
    from wire.kernels.octets import (
        counts_of,
        field_end,
        finished,
        length_of,
        new_octets,
        octets_of,
        signed_words_of,
        varint_end,
        varint_size,
        varint_value,
        words_of,
        writable,
        write_varint,
    )

_WORD = array("Q", [0])
_SIGNED_WORD = array("q", [0])
_COUNT = array("I", [0])
_SMALLEST_INDEX_BYTES = 8
"""Tag and length, and three fields of two bytes."""
_DIGITS = 1 << 16
# Named, because a literal beyond 31 bits would be a Python object in the compiled code.
_low_half = 0xFFFFFFFF
_signed_max = 0x7FFFFFFFFFFFFFFF


def encode_segment(times: "array[int]", ledger_ids: "array[int]", entry_ids: "array[int]") -> bytes:
    """A SnapshotSegment of these facts, in their order."""
    count = len(times)
    at_times = words_of(times)
    ledgers = words_of(ledger_ids)
    entries = counts_of(entry_ids)
    size = 0
    for index in range(count):
        inner = 3 + varint_size(at_times[index]) + varint_size(ledgers[index]) + varint_size(entries[index])
        size += 1 + varint_size(inner) + inner
    octets = new_octets(size)
    data = writable(octets)
    at = 0
    for index in range(count):
        inner = 3 + varint_size(at_times[index]) + varint_size(ledgers[index]) + varint_size(entries[index])
        data[at] = 10
        at = write_varint(data, at + 1, inner)
        data[at] = 8
        at = write_varint(data, at + 1, at_times[index])
        data[at] = 16
        at = write_varint(data, at + 1, ledgers[index])
        data[at] = 24
        at = write_varint(data, at + 1, entries[index])
    return finished(octets)


def decode_segment(segment: Buffer) -> "tuple[array[int], array[int], array[int]]":
    """The facts of a SnapshotSegment, without cancellations. ValueError when it is none."""
    end = length_of(segment)
    data = octets_of(segment)
    room = end // _SMALLEST_INDEX_BYTES + 1
    times = _SIGNED_WORD * room
    ledger_ids = _WORD * room
    entry_ids = _COUNT * room
    found_times = signed_words_of(times)
    ledgers = words_of(ledger_ids)
    entries = counts_of(entry_ids)
    count = 0
    at = 0
    while at < end:
        tag_after = varint_end(data, at, end)
        if tag_after == 0:
            raise ValueError("a segment of delayed messages is damaged")
        tag = varint_value(data, at, tag_after)
        after = field_end(data, tag_after, end, tag & 7)
        if after == 0:
            raise ValueError("a segment of delayed messages is damaged")
        if tag != 10:
            at = after
            continue
        at = varint_end(data, tag_after, end)
        seen = 0
        is_cancelled = 0
        while at < after:
            field_after = varint_end(data, at, after)
            if field_after == 0:
                raise ValueError("a segment of delayed messages is damaged")
            tag = varint_value(data, at, field_after)
            value_after = field_end(data, field_after, after, tag & 7)
            if value_after == 0:
                raise ValueError("a segment of delayed messages is damaged")
            if tag == 8 or tag == 16 or tag == 24 or tag == 32:
                value = varint_value(data, field_after, value_after)
                if tag == 8:
                    seen |= 1
                    found_times[count] = value & _signed_max
                elif tag == 16:
                    seen |= 2
                    ledgers[count] = value
                elif tag == 24:
                    if value > _low_half:
                        raise ValueError("a segment of delayed messages names an impossible entry")
                    seen |= 4
                    entries[count] = value
                else:
                    is_cancelled = 1 if value else 0
            at = value_after
        if seen != 7:
            raise ValueError("a segment of delayed messages lacks a time or a place")
        if not is_cancelled:
            count += 1
    del times[count:], ledger_ids[count:], entry_ids[count:]
    return times, ledger_ids, entry_ids


def by_ledger(
    times: "array[int]", ledger_ids: "array[int]", entry_ids: "array[int]"
) -> "dict[int, tuple[array[int], array[int]]]":
    """Entry ids and times of each ledger, in the order in which they stand here."""
    count = len(times)
    given_times = signed_words_of(times)
    ledgers = words_of(ledger_ids)
    entries = counts_of(entry_ids)
    places = _COUNT * (count + 1)
    place_of = counts_of(places)
    known: dict[int, int] = {}
    last = 0
    place = 0
    for index in range(count):
        if index == 0 or ledgers[index] != last:
            last = ledgers[index]
            place = known.setdefault(last, len(known))
        place_of[index] = place
    starts = _COUNT * (len(known) + 2)
    start_of = counts_of(starts)
    for index in range(count):
        start_of[place_of[index] + 2] += 1
    for index in range(len(known)):
        start_of[index + 2] += start_of[index + 1]
    sorted_times = _SIGNED_WORD * count
    sorted_entries = _COUNT * count
    out_times = signed_words_of(sorted_times)
    out_entries = counts_of(sorted_entries)
    for index in range(count):
        to = start_of[place_of[index] + 1]
        start_of[place_of[index] + 1] = to + 1
        out_times[to] = given_times[index]
        out_entries[to] = entries[index]
    if len(known) == 1:
        return {last: (sorted_entries, sorted_times)}
    found: dict[int, tuple[array[int], array[int]]] = {}
    for ledger_id, number in known.items():
        found[ledger_id] = (
            sorted_entries[starts[number] : starts[number + 1]],
            sorted_times[starts[number] : starts[number + 1]],
        )
    return found


def items_at(
    times: "array[int]",
    entry_ids: "array[int]",
    numbers: "array[int]",
    first_high: int,
    base_ms: int,
    tick_ms: int,
    tick_max: int,
) -> "array[int]":
    """The items of these entries. `numbers`, by upper half of the entry id from `first_high` on: a number plus 1; or 0."""
    count = len(times)
    items = _WORD * count
    found = words_of(items)
    given_times = signed_words_of(times)
    entries = counts_of(entry_ids)
    number_of = counts_of(numbers)
    highs = len(numbers)
    kept = 0
    for index in range(count):
        high = (entries[index] >> 16) - first_high
        if high < 0 or high >= highs or number_of[high] == 0:
            continue
        time = given_times[index] - base_ms
        tick = 0 if time <= 0 else (time - 1) // tick_ms + 1
        if tick > tick_max:
            tick = tick_max
        found[kept] = tick << 32 | ((number_of[high] - 1) << 16 | entries[index] & 0xFFFF) & _low_half
        kept += 1
    del items[kept:]
    return items


def items_under(items: "array[int]", is_wanted: Buffer) -> "array[int]":
    """Those whose number has a wanted upper half: `is_wanted` has a byte for each of the 65,536."""
    count = len(items)
    values = words_of(items)
    wanted = octets_of(is_wanted)
    kept = 0
    for index in range(count):
        if wanted[values[index] >> 16 & 0xFFFF]:
            kept += 1
    chosen = _WORD * kept
    found = words_of(chosen)
    kept = 0
    for index in range(count):
        if wanted[values[index] >> 16 & 0xFFFF]:
            found[kept] = values[index]
            kept += 1
    return chosen


def sorted_by_tick(items: "array[int]") -> "array[int]":
    """The same items, the earliest first: by the lower digit of the tick, then by the upper one."""
    return _sorted_by(_sorted_by(items, 32), 48)


def _sorted_by(items: "array[int]", shift: int) -> "array[int]":
    """Sort by 16 bits; equal items stay in their order."""
    count = len(items)
    values = words_of(items)
    starts = _COUNT * (_DIGITS + 1)
    start_of = counts_of(starts)
    for index in range(count):
        start_of[(values[index] >> shift & 0xFFFF) + 1] += 1
    for index in range(_DIGITS):
        start_of[index + 1] += start_of[index]
    ordered = _WORD * count
    found = words_of(ordered)
    for index in range(count):
        digit = values[index] >> shift & 0xFFFF
        found[start_of[digit]] = values[index]
        start_of[digit] += 1
    return ordered


def facts_of(
    items: "array[int]", ledger_of: "array[int]", high_of: "array[int]", base_ms: int, tick_ms: int
) -> "tuple[array[int], array[int], array[int]]":
    """Facts in the items; the tables, 65,536 long, are by the upper half of the number. A time is the end of its tick."""
    count = len(items)
    values = words_of(items)
    ledgers = words_of(ledger_of)
    highs = counts_of(high_of)
    times = _SIGNED_WORD * count
    ledger_ids = _WORD * count
    entry_ids = _COUNT * count
    out_times = signed_words_of(times)
    out_ledgers = words_of(ledger_ids)
    out_entries = counts_of(entry_ids)
    for index in range(count):
        number = values[index] >> 16 & 0xFFFF
        tick = values[index] >> 32
        out_times[index] = base_ms + tick * tick_ms
        out_ledgers[index] = ledgers[number]
        out_entries[index] = highs[number] << 16 | values[index] & 0xFFFF
    return times, ledger_ids, entry_ids
