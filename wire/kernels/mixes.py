"""Adds that alternate among ledgers: sealed together by the client of bookies, answered together by a bookie
(`bookie_requests.take_mix`), put in order when that is wanted.

Runs are short when a thousand ledgers are written at a time, and a run costs Python whatever its length. Here what is done for
an entry is done in C.
"""

from array import array
from collections.abc import Sequence
from typing import Any, Protocol

import cython

from wire.run import HEADER_BYTES_CRC32C, Buffer, EntryBatch, EntryMix, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        crc32c_of,
        finished,
        length_of,
        new_octets,
        new_room,
        octets_of,
        read_u64,
        room_in,
        signed_words_of,
        writable,
        write_u32,
        write_u64,
    )

_COUNT = array("I", [0])
_WORD = array("q", [0])


class LedgerPart(Protocol):
    """The `count` entries of `mix` from the index `start` on, and what their headers say. `mix` is like an `EntryBatch`."""

    mix: Any
    start: int
    count: int
    ledger_id: int
    first_entry_id: int
    last_add_confirmed: int
    length_before: int


def _part_size(part: LedgerPart) -> int:
    """The bytes of a part's entries. ValueError unless they lie in the buffer, each with room for a header and a CRC32C."""
    mix = part.mix
    start = part.start
    after = start + part.count
    if mix.header_bytes != 36 or start < 0 or after <= start or after >= len(mix.offsets):
        raise ValueError(f"entries {start} to {after} of {len(mix.offsets) - 1} with {mix.header_bytes} header bytes")
    offsets = counts_of(mix.offsets)
    for index in range(start, after):
        if offsets[index] + 36 > offsets[index + 1]:
            raise ValueError(f"entry {index} has no room for its header")
    if offsets[after] > length_of(mix.buffer):
        raise ValueError("the offsets do not fit the buffer")
    return offsets[after] - offsets[start]


def seal_parts(parts: Sequence[LedgerPart]) -> EntryMix:
    """Write header and CRC32C of each entry: in place where the parts are, in their order, all that one buffer holds. Otherwise
    into a copy of them, which is the parts' buffer from then on.
    """
    mix = parts[0].mix
    total = 0
    size = 0
    is_whole = isinstance(mix.buffer, bytearray)
    for part in parts:
        if part.mix is not mix or part.start != total:
            is_whole = False
        size += _part_size(part)
        total += part.count
    if not is_whole or total != len(mix.offsets) - 1 or size != length_of(mix.buffer):
        mix = _moved(parts, total, size)
    ends = mix.offsets
    offsets = counts_of(ends)
    room = room_in(mix.buffer)
    data = octets_of(mix.buffer)
    index = 0
    for part in parts:
        ledger_id = part.ledger_id
        entry_id = part.first_entry_id
        confirmed = part.last_add_confirmed
        length = part.length_before
        count = part.count
        while count:
            at = offsets[index]
            index += 1
            after = offsets[index]
            length += after - at - 36
            write_u64(room, at, ledger_id)
            write_u64(room, at + 8, entry_id)
            write_u64(room, at + 16, confirmed)
            write_u64(room, at + 24, length)
            write_u32(room, at + 32, crc32c_of(data, at + 36, after, crc32c_of(data, at, at + 32, 0)))
            entry_id += 1
            count -= 1
    return EntryMix(mix.buffer, ends, HEADER_BYTES_CRC32C)


def _moved(parts: Sequence[LedgerPart], total: int, size: int) -> EntryBatch:
    """The entries of the parts, one after the other in a buffer of their own, which the parts have from now on."""
    ends = _COUNT * (total + 1)
    buffer = new_room(size)
    _copy_parts(parts, room_in(buffer), ends)
    batch = EntryBatch(buffer, ends, HEADER_BYTES_CRC32C, total)
    place = 0
    for part in parts:
        part.mix = batch
        part.start = place
        place += part.count
    return batch


def mix_of(parts: Sequence[LedgerPart]) -> EntryMix:
    """A copy of the entries of the parts, which are sealed."""
    total = 0
    size = 0
    for part in parts:
        size += _part_size(part)
        total += part.count
    ends = _COUNT * (total + 1)
    entries = new_octets(size)
    _copy_parts(parts, writable(entries), ends)
    return EntryMix(finished(entries), ends, HEADER_BYTES_CRC32C)


def _copy_parts(parts: Sequence[LedgerPart], room: bytearray, ends: "array[int]") -> None:
    places = counts_of(ends)
    place = 0
    index = 0
    for part in parts:
        offsets = counts_of(part.mix.offsets)
        data = octets_of(part.mix.buffer)
        start = part.start
        after = start + part.count
        copy_octets(room, place, data, offsets[start], offsets[after])
        for entry in range(start, after):
            place += offsets[entry + 1] - offsets[entry]
            index += 1
            places[index] = place


def _check(mix: EntryMix) -> None:
    """ValueError unless the offsets are those of whole entries that fill the buffer."""
    ends = mix.offsets
    count = len(ends) - 1
    offsets = counts_of(ends)
    if count < 1 or offsets[0] != 0 or offsets[count] != length_of(mix.buffer):
        raise ValueError("the offsets do not fit the buffer")
    for index in range(count):
        if offsets[index + 1] < offsets[index] + 32:
            raise ValueError(f"entry {index} of the mix has no room for its header")


def mix_responses(mix: EntryMix, header: int, code: int) -> bytes:
    """Responses without an entry, in the order of the mix; `header` has no flags."""
    _check(mix)
    count = len(mix.offsets) - 1
    offsets = counts_of(mix.offsets)
    data = octets_of(mix.buffer)
    frames = new_octets(28 * count)
    room = writable(frames)
    at = 0
    for index in range(count):
        write_u32(room, at, 24)
        write_u32(room, at + 4, header)
        write_u32(room, at + 8, code)
        copy_octets(room, at + 12, data, offsets[index], offsets[index] + 16)
        at += 28
    return finished(frames)


def ledgers_of(mix: EntryMix) -> dict[int, None]:
    """The ledgers of a mix, each once, in the order in which they come first."""
    _check(mix)
    offsets = counts_of(mix.offsets)
    data = octets_of(mix.buffer)
    found: dict[int, None] = {}
    for index in range(len(mix.offsets) - 1):
        found[read_u64(data, offsets[index])] = None
    return found


def runs_of(mixes: Sequence[EntryMix]) -> list[EntryRun]:
    """The entries by ledger, those of one ledger in the order in which they came; copied, what is consecutive into one run.

    Ledgers are in the order in which they come first.
    """
    for mix in mixes:
        _check(mix)
    mix = mixes[0] if len(mixes) == 1 else joined(mixes)
    ends = mix.offsets
    buffer = mix.buffer
    total = len(ends) - 1
    offsets = counts_of(ends)
    data = octets_of(buffer)
    following = _WORD * total
    firsts = _WORD * total
    lasts = _WORD * total
    nexts = signed_words_of(following)  # the next entry of the same ledger; -1: there is none
    heads = signed_words_of(firsts)  # the first entry of each ledger
    tails = signed_words_of(lasts)
    places: dict[int, int] = {}
    ledgers = 0
    for index in range(total):
        nexts[index] = -1
        ledger_id = read_u64(data, offsets[index])
        place = places.get(ledger_id, -1)
        if place < 0:
            place = ledgers
            places[ledger_id] = place
            heads[place] = index
            ledgers += 1
        else:
            nexts[tails[place]] = index
        tails[place] = index
    runs: list[EntryRun] = []
    for place in range(ledgers):
        index = heads[place]
        ledger_id = read_u64(data, offsets[index])
        while index >= 0:
            first = read_u64(data, offsets[index] + 8)
            count = 0
            size = 0
            after = index
            while after >= 0 and read_u64(data, offsets[after] + 8) == first + count:
                size += offsets[after + 1] - offsets[after]
                count += 1
                after = nexts[after]
            run_ends = _COUNT * (count + 1)
            run_offsets = counts_of(run_ends)
            entries = new_octets(size)
            room = writable(entries)
            at = 0
            count = 0
            while index != after:
                copy_octets(room, at, data, offsets[index], offsets[index + 1])
                at += offsets[index + 1] - offsets[index]
                count += 1
                run_offsets[count] = at
                index = nexts[index]
            runs.append(EntryRun(ledger_id, first, finished(entries), run_ends, mix.header_bytes))
    return runs


def joined(parts: Sequence[EntryMix | EntryRun]) -> EntryMix:
    """A copy of all entries in their order; they must be sealed, of any ledgers."""
    total = 0
    for part in parts:
        total += len(part.offsets) - 1
    ends = _COUNT * (total + 1)
    offsets = counts_of(ends)
    buffers: list[Buffer] = []
    header_bytes = HEADER_BYTES_CRC32C
    base = 0
    place = 0
    for part in parts:
        header_bytes = min(header_bytes, part.header_bytes)
        own_ends = part.offsets
        buffer = part.buffer
        own = counts_of(own_ends)
        count = len(own_ends) - 1
        length = length_of(buffer)
        start = own[0]
        if count < 1 or own[count] > length:
            raise ValueError("the offsets do not fit the buffer")
        for index in range(1, count + 1):
            if own[index] < own[index - 1] + 32:
                raise ValueError(f"entry {index - 1} of the mix has no room for its header")
            offsets[place + index] = base + own[index] - start
        place += count
        base += own[count] - start
        buffers.append(buffer if start == 0 and own[count] == length else memoryview(buffer)[start : own[count]])
    return EntryMix(b"".join(buffers), ends, header_bytes)
