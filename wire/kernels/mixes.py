"""Adds that alternate among ledgers (`bookie_requests.take_mix`): answered together, put in order when that is wanted.

Runs are short when a thousand ledgers are written at a time, and a run costs Python whatever its length. Here what is done for
an entry is done in C.
"""

from array import array
from collections.abc import Sequence

import cython

from wire.bookie.runs import WIRE_HEADER_BYTES
from wire.run import EntryMix, EntryRun

if not cython.compiled:
    from wire.kernels.octets import (
        copy_octets,
        counts_of,
        finished,
        length_of,
        new_octets,
        octets_of,
        read_u64,
        signed_words_of,
        writable,
        write_u32,
    )

_COUNT = array("I", [0])
_WORD = array("q", [0])


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
    buffer = mixes[0].buffer if len(mixes) == 1 else b"".join([mix.buffer for mix in mixes])
    ends = mixes[0].offsets if len(mixes) == 1 else _joined_offsets(mixes)
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
            runs.append(EntryRun(ledger_id, first, finished(entries), run_ends, WIRE_HEADER_BYTES))
    return runs


def _joined_offsets(mixes: Sequence[EntryMix]) -> "array[int]":
    """Those of the mixes' buffers one after the other."""
    total = 0
    for mix in mixes:
        total += len(mix.offsets) - 1
    ends = _COUNT * (total + 1)
    offsets = counts_of(ends)
    base = 0
    place = 0
    for mix in mixes:
        part = counts_of(mix.offsets)
        count = len(mix.offsets) - 1
        for index in range(1, count + 1):
            offsets[place + index] = base + part[index]
        place += count
        base += part[count]
    return ends
