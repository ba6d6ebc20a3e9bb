"""The key table of topic compaction: the newest message of each key, in a few words each.

A table is an array "Q" of three words a slot: a hash of the key (128 bits, SipHash-2-4 over big-endian words: two keys of one
topic never meet in practice) and the mark of its newest message plus two; 0 is a free slot, 1 one whose key was removed. A mark
is `number << 20 | index in the batch`, where `number` grows with each entry. `counts` ("Q") holds the slots in use, the keys,
and the messages that are gone. The caller sees to it that there is room (`broker.compaction.keys`).
"""

from array import array

import cython

from wire.run import Buffer

if not cython.compiled:
    from wire.kernels.octets import (
        octets_of,
        read_u32,
        words_of,
    )


# Named, because a literal beyond 31 bits would be a Python object in the compiled code.
_all_bits = 0xFFFFFFFFFFFFFFFF
_v0 = 0x736F6D6570736575
_v1 = 0x646F72616E646F6D
_v2 = 0x6C7967656E657261
_v3 = 0x7465646279746573
_removed = 1
_WORD = array("Q", [0])


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _all_bits


def _hash(data: Buffer, at: int, end: int, found: "array[int]") -> None:
    """The SipHash-2-4 of data[at:end] into found[0] and found[1]."""
    v0 = _v0
    v1 = _v1 ^ 0xEE
    v2 = _v2
    v3 = _v3
    size = end - at
    block = 0
    shift = 0
    rounds = 0
    done = 0
    while done == 0:
        if end - at >= 8:
            block = read_u32(data, at)
            block = block << 32 | read_u32(data, at + 4)
            at += 8
        else:
            block = size << 56 & _all_bits
            shift = 0
            while at < end:
                value = data[at]
                block |= value << shift
                shift += 8
                at += 1
            done = 1
        v3 ^= block
        for _round in range(2):
            v0 = (v0 + v1) & _all_bits
            v1 = _rotated(v1, 13) ^ v0
            v0 = _rotated(v0, 32)
            v2 = (v2 + v3) & _all_bits
            v3 = _rotated(v3, 16) ^ v2
            v0 = (v0 + v3) & _all_bits
            v3 = _rotated(v3, 21) ^ v0
            v2 = (v2 + v1) & _all_bits
            v1 = _rotated(v1, 17) ^ v2
            v2 = _rotated(v2, 32)
        v0 ^= block
    v2 ^= 0xEE
    for rounds in range(8):
        if rounds == 4:
            found[0] = v0 ^ v1 ^ v2 ^ v3
            v1 ^= 0xDD
        v0 = (v0 + v1) & _all_bits
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = (v2 + v3) & _all_bits
        v3 = _rotated(v3, 16) ^ v2
        v0 = (v0 + v3) & _all_bits
        v3 = _rotated(v3, 21) ^ v0
        v2 = (v2 + v1) & _all_bits
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
    found[1] = v0 ^ v1 ^ v2 ^ v3


def _slot(slots: "array[int]", capacity: int, first: int, second: int) -> int:
    """The place of the slot that has this key, or of the free one where it would be."""
    place = ((first >> 32) * capacity) >> 32
    while slots[3 * place + 2] != 0:
        if slots[3 * place] == first and slots[3 * place + 1] == second:
            return 3 * place
        place += 1
        if place == capacity:
            place = 0
    return 3 * place


def _note(
    slots: "array[int]", capacity: int, counts: "array[int]", data: Buffer, at: int, end: int, mark: int, scratch: "array[int]"
) -> None:
    """The key data[at:end] has its newest message there; mark 0: it has none any more."""
    _hash(data, at, end, scratch)
    place = _slot(slots, capacity, scratch[0], scratch[1])
    before = slots[place + 2]
    if before > _removed:
        counts[2] += 1
    if mark == 0:
        counts[2] += 1
        if before > _removed:
            slots[place + 2] = _removed
            counts[1] -= 1
        return
    if before == 0:
        slots[place] = scratch[0]
        slots[place + 1] = scratch[1]
        counts[0] += 1
    if before <= _removed:
        counts[1] += 1
    slots[place + 2] = mark + 2


def _is_newest(slots: "array[int]", capacity: int, data: Buffer, at: int, end: int, mark: int, scratch: "array[int]") -> int:
    _hash(data, at, end, scratch)
    return slots[_slot(slots, capacity, scratch[0], scratch[1]) + 2] == mark + 2


def rehash(old: "array[int]", new: "array[int]") -> int:
    """Put the keys that are there into the new table, which is all zeros; how many there are."""
    capacity = len(old) // 3
    fresh = len(new) // 3
    source = words_of(old)
    target = words_of(new)
    count = 0
    for index in range(capacity):
        if source[3 * index + 2] > _removed:
            place = _slot(target, fresh, source[3 * index], source[3 * index + 1])
            target[place] = source[3 * index]
            target[place + 1] = source[3 * index + 1]
            target[place + 2] = source[3 * index + 2]
            count += 1
    return count


def newest(table: "array[int]", key: bytes) -> int:
    """The mark of the key's newest message, -1 for none."""
    parsed = _WORD * 2
    scratch = words_of(parsed)
    slots = words_of(table)
    _hash(octets_of(key), 0, len(key), scratch)
    found = slots[_slot(slots, len(table) // 3, scratch[0], scratch[1]) + 2]
    return found - 2 if found > _removed else -1


def note_key(table: "array[int]", counts: "array[int]", key: bytes, mark: int) -> None:
    """Note a message of that key; mark 0: it removes the key."""
    parsed = _WORD * 2
    _note(words_of(table), len(table) // 3, words_of(counts), octets_of(key), 0, len(key), mark, words_of(parsed))
