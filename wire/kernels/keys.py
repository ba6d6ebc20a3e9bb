"""Key_Shared's loops over entries: whose each one is, and which keys somebody still holds.

A slot is the hash of a key in 1..65535. `bounds` and `owners` say whose a slot is: `owners[i]` has the slots up to and
including `bounds[i]`, from after the bound before; -1 is nobody. `held` counts the delivered, unacknowledged entries of a slot,
`holders` says who has them: one consumer at a time. `waiting` counts the entries of a slot that go before newer ones.
"""

from array import array
from collections.abc import Sequence

import cython

if not cython.compiled:
    from wire.kernels.octets import counts_of, signed_words_of

SLOTS = 65536


def slots_of(hashes: "array[int]", indexes: Sequence[int]) -> "array[int]":
    """The slots of the entries at these indexes (Apache: StickyKeyConsumerSelectorUtils; 0 is not a slot, 1 stands in)."""
    count = len(indexes)
    slots = array("I", bytes(4 * count))
    found = counts_of(slots)
    source = counts_of(hashes)
    for place in range(count):
        slot = source[indexes[place]] & 65535
        found[place] = slot if slot else 1
    return slots


def _owner(slot: int, bounds: "array[int]", owners: "array[int]", count: int) -> int:
    """Binary search for the first bound at or after the slot."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] < slot:
            low = middle + 1
        else:
            high = middle
    return owners[low] if low < count else -1


def deal(
    slots: "array[int]",
    indexes: Sequence[int],
    costs: Sequence[int] | None,
    bounds: "array[int]",
    owners: "array[int]",
    rooms: dict[int, int],
    room_together: int,
    held: dict[int, int],
    holders: dict[int, int],
    waiting: dict[int, int],
    is_ordered: bool,
    is_replay: bool,
) -> "tuple[dict[int, array[int]], array[int], array[int]]":
    """Give each entry to the owner of its slot, if that one has room and nobody else holds the slot.

    Returns the indexes that each consumer got, those that have to wait, and those that nobody owns. `rooms`, `held`, `holders`
    and `waiting` are brought up to date. In a replay every entry may go to its owner, and was waiting before.
    """
    given: dict[int, array[int]] = {}
    kept = array("I")
    unowned = array("I")
    slot_places = counts_of(slots)
    bound_places = counts_of(bounds)
    owner_places = signed_words_of(owners)
    ranges = len(bounds)
    for place in range(len(slots)):
        slot = slot_places[place]
        owner = _owner(slot, bound_places, owner_places, ranges)
        if owner < 0:
            unowned.append(indexes[place])
            continue
        if is_replay or not is_ordered:
            is_free = True
        else:
            is_free = slot not in waiting and holders.get(slot, owner) == owner
        room = rooms.get(owner, 0) if is_free and room_together > 0 else 0
        if room <= 0:
            kept.append(indexes[place])
            if not is_replay:
                waiting[slot] = waiting.get(slot, 0) + 1
            continue
        cost = 1 if costs is None else costs[place]
        rooms[owner] = room - cost
        room_together -= cost
        if is_ordered:
            held[slot] = held.get(slot, 0) + 1
            holders[slot] = owner
        if is_replay:
            _lower(waiting, slot)
        theirs = given.get(owner)
        if theirs is None:
            theirs = given[owner] = array("I")
        theirs.append(indexes[place])
    return given, kept, unowned


def _lower(counts: dict[int, int], slot: int) -> int:
    """Count down, and forget what is at 0; whether it is."""
    count = counts[slot] - 1
    if count:
        counts[slot] = count
        return 0
    del counts[slot]
    return 1


def release(
    slots: dict[int, int],
    entry_ids: "array[int]",
    held: dict[int, int],
    holders: dict[int, int],
    waiting: dict[int, int],
    is_ordered: bool,
    is_acknowledged: bool,
) -> list[int]:
    """Delivered entries are acknowledged, and forgotten; or they are given back, and wait. The slots that nobody holds now."""
    drained = []
    for entry_id in entry_ids:
        slot = slots.pop(entry_id) if is_acknowledged else slots[entry_id]
        if is_ordered and _lower(held, slot):
            del holders[slot]
            drained.append(slot)
        if not is_acknowledged:
            waiting[slot] = waiting.get(slot, 0) + 1
    return drained


def place(
    slots: dict[int, int], entry_ids: "array[int]", bounds: "array[int]", owners: "array[int]", holders: dict[int, int]
) -> "tuple[dict[int, array[int]], list[tuple[int, int]]]":
    """Places of waiting entries: for their owner (-1: for one to come), or, as (slot, entry), for a former owner to let go."""
    ready: dict[int, array[int]] = {}
    blocked = []
    bound_places = counts_of(bounds)
    owner_places = signed_words_of(owners)
    ranges = len(bounds)
    for entry_id in entry_ids:
        slot = slots[entry_id]
        owner = _owner(slot, bound_places, owner_places, ranges)
        if holders.get(slot, owner) != owner:
            blocked.append((slot, entry_id))
            continue
        theirs = ready.get(owner)
        if theirs is None:
            theirs = ready[owner] = array("I")
        theirs.append(entry_id)
    return ready, blocked
