"""The loops over entries that wait for their time. An item is one 64-bit word: the tick in its upper half, in the lower one the
entry's number.

Items are kept in buckets of a wheel with four levels: those of level 0 are a tick wide, and of each level 256 times as wide as
of the one below. An item belongs to the lowest level of which the bucket above is the one that `now_tick` is in too; it moves
down as time goes on. A bucket's key is `level << 32 | tick >> 8 * level`.
"""

from array import array

import cython

if not cython.compiled:
    from wire.kernels.octets import counts_of, signed_words_of, words_of

LEVELS = 4

_WORD = array("Q", [0])
_COUNT = array("I", [0])
# Named, because a literal beyond 31 bits would be a Python object in the compiled code.
_low_half = 0xFFFFFFFF
_level_1 = 1 << 32
_level_2 = 2 << 32
_level_3 = 3 << 32


def later_than(times: "array[int]", cutoff_ms: int) -> "array[int]":
    """The indexes of the times after the cutoff."""
    found = array("I")
    values = signed_words_of(times)
    for index in range(len(times)):
        if values[index] > cutoff_ms:
            found.append(index)
    return found


def items_of(
    times: "array[int]", indexes: "array[int]", first_number: int, base_ms: int, tick_ms: int, tick_max: int
) -> "array[int]":
    """The items of the entries at these indexes of a run, whose first entry has that number.

    A tick is the first one at or after the time, at most `tick_max`.
    """
    items = _WORD * len(indexes)
    found = words_of(items)
    values = signed_words_of(times)
    places = counts_of(indexes)
    for place in range(len(indexes)):
        time = values[places[place]] - base_ms
        tick = 0 if time <= 0 else (time - 1) // tick_ms + 1
        if tick > tick_max:
            tick = tick_max
        found[place] = tick << 32 | (first_number + places[place]) & _low_half
    return items


def in_buckets(items: "array[int]", now_tick: int) -> "dict[int, array[int]]":
    """The items by the key of the bucket that each belongs in; what is due is in level 0."""
    buckets: dict[int, array[int]] = {}
    values = words_of(items)
    count = len(items)
    start = 0
    key = 0
    for index in range(count):
        tick = values[index] >> 32
        distance = tick ^ now_tick
        if tick <= now_tick or distance < 0x100:
            wanted = tick
        elif distance < 0x10000:
            wanted = _level_1 | tick >> 8
        elif distance < 0x1000000:
            wanted = _level_2 | tick >> 16
        else:
            wanted = _level_3 | tick >> 24
        if index == 0:
            key = wanted
        elif wanted != key:
            _put(buckets, key, items[start:index])
            key = wanted
            start = index
    if count:
        _put(buckets, key, items[start:count])
    return buckets


def _put(buckets: "dict[int, array[int]]", key: int, items: "array[int]") -> None:
    known = buckets.get(key)
    if known is None:
        buckets[key] = items
    else:
        known.extend(items)


def numbers_of(items: "array[int]") -> "array[int]":
    """Numbers of the entries alone."""
    count = len(items)
    numbers = _COUNT * count
    found = counts_of(numbers)
    values = words_of(items)
    for index in range(count):
        found[index] = values[index] & _low_half
    return numbers
