"""Order of keys: held and waiting entries of each key, and their consumers. The rules: a slot (a hashed key) has one holder at
a time, the consumer with unacknowledged entries of it. Entries go to the slot's owner only while no other consumer holds it,
and never past a waiting entry of that slot. An entry therefore waits for room at its owner (in `_ready`), or for the former
holder to acknowledge (in `_blocked`). Apache's name for the latter is draining (PIP-379); Apache lets newer entries overtake
when a consumer leaves or gives back, here they wait.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

from pyroaring import BitMap

from wire.kernels.keys import deal, place, release
from wire.position import Position

from ..entry_sets import EntrySet, union
from ..reading.readable import Readable, entry_ids
from .selectors import NOBODY, Assignment


class Keys:
    """The state of all keys. `is_ordered` False (allow_out_of_order): nothing is held, entries wait only for room."""

    def __init__(self, assignment: Assignment, *, is_ordered: bool) -> None:
        self.assignment = assignment
        self._is_ordered = is_ordered
        self._slots: dict[int, dict[int, int]] = {}
        """Ledger, entry: its slot; for the entries that are delivered or wait."""
        self._held: dict[int, int] = {}
        self._holders: dict[int, int] = {}
        self._waiting: dict[int, int] = {}
        self._ready: dict[int, EntrySet] = {}
        """Waiting entries by owner; NOBODY for slots without one."""
        self._blocked: dict[int, EntrySet] = {}
        """Waiting entries by slot, for slots whose holder is not the owner."""
        self._waiting_entries = 0

    @property
    def draining_slots(self) -> int:
        return len(self._blocked)

    @property
    def waiting_entries(self) -> int:
        return self._waiting_entries

    def waiting_for_owners(self) -> int:
        """Without those for which no consumer is there."""
        return self._waiting_entries - len(self._ready.get(NOBODY, ()))

    def slot(self, ledger_id: int, entry_id: int) -> int:
        """Slot of an entry that is delivered or waits."""
        return self._slots[ledger_id][entry_id]

    def known_in(self, ledger_id: int) -> BitMap:
        """Entries of a ledger that are delivered or wait."""
        return BitMap(list(self._slots.get(ledger_id, ())))

    def first_ready(self, consumers: Iterable[int]) -> Position | None:
        """The first entry that waits for nothing but one of these consumers."""
        found = [self._ready[consumer].first() for consumer in consumers if consumer in self._ready]
        return min((position for position in found if position is not None), default=None)

    def first_waiting(self) -> Position | None:
        """The first entry that waits for room, or for its owner to come."""
        return self.first_ready(self._ready)

    def has_none_ready(self, consumers: Iterable[int]) -> bool:
        """Whether for one of these consumers nothing waits."""
        return any(consumer not in self._ready for consumer in consumers)

    def next_ready(self, entries_max: Mapping[int, int]) -> EntrySet:
        """Entries that wait only for these consumers; the first few of each consumer."""
        found = EntrySet()
        for consumer, limit in entries_max.items():
            if consumer in self._ready:
                found.update(self._ready[consumer].first_few(limit))
        return found

    def ready_in(self, ledger_id: int, consumers: Iterable[int], start: Position) -> BitMap:
        """Entries of a ledger that wait only for these consumers, but for consumers with an entry waiting before `start`."""
        found = BitMap()
        for consumer in consumers:
            theirs = self._ready.get(consumer)
            if theirs is not None and (theirs.first() or start) >= start:
                found |= theirs.in_ledger(ledger_id)
        return found

    def deal_new(
        self, found: Readable, slots: "array[int]", rooms: dict[int, int], room_together: int
    ) -> "tuple[Mapping[int, array[int]], array[int]]":
        """Deals new entries: returns each consumer's entries, and those without an owner. The others wait from now on."""
        ledger_id = found.run.ledger_id
        known = self._slots.setdefault(ledger_id, {})
        given, kept, unowned = self._deal(found, slots, rooms, room_together, is_replay=False)
        known.update(zip(map(found.run.first_entry_id.__add__, found.indexes), slots, strict=True))
        for index in unowned:
            del known[found.run.first_entry_id + index]
        self._waiting_entries += len(kept)
        self._wait(ledger_id, entry_ids(found.run, kept))
        if not known:
            del self._slots[ledger_id]
        return given, unowned

    def deal_again(self, found: Readable, rooms: dict[int, int], room_together: int) -> "Mapping[int, array[int]]":
        """Deals entries of `ready_in`: returns each consumer's entries."""
        if not found:
            return {}
        ledger_id = found.run.ledger_id
        known = self._slots[ledger_id]
        slots = array("I", map(known.__getitem__, map(found.run.first_entry_id.__add__, found.indexes)))
        given, _, _ = self._deal(found, slots, rooms, room_together, is_replay=True)
        for consumer, indexes in given.items():
            self._waiting_entries -= len(indexes)
            self._ready[consumer].remove(ledger_id, entry_ids(found.run, indexes))
            self._forget_empty(consumer)
        return given

    def given_back(self, entries: EntrySet) -> None:
        """Delivered entries are to be delivered again."""
        drained: list[int] = []
        for ledger_id, ids in entries.ledgers():
            drained += self._release(ledger_id, ids, is_acknowledged=False)
            self._waiting_entries += len(ids)
        self._unblock(drained)
        for ledger_id, ids in entries.ledgers():
            self._wait(ledger_id, ids)

    def gone(self, ledger_id: int, ids: BitMap, had: BitMap) -> None:
        """Entries are acknowledged; those in `had` were delivered, others may wait."""
        known = self._slots.get(ledger_id)
        if known is None:
            return
        drained = self._release(ledger_id, had, is_acknowledged=True)
        if len(had) < len(ids) and self._waiting:
            self._stop_waiting(ledger_id, known, BitMap([entry_id for entry_id in ids - had if entry_id in known]))
        if not known:
            del self._slots[ledger_id]
        self._unblock(drained)

    def waiting(self) -> EntrySet:
        """A copy of the waiting entries."""
        return union((*self._ready.values(), *self._blocked.values()))

    def waiting_between(self, start: Position, end: Position) -> EntrySet:
        """A copy of the waiting entries in [start, end)."""
        return union(entries.between(start, end) for entries in (*self._ready.values(), *self._blocked.values()))

    def assign(self, assignment: Assignment) -> None:
        """Consumers came or went: everything that waits finds its place again."""
        self.assignment = assignment
        waiting = self.waiting()
        self._ready.clear()
        self._blocked.clear()
        for ledger_id, ids in waiting.ledgers():
            self._wait(ledger_id, ids)

    def clear(self) -> None:
        for state in (self._slots, self._held, self._holders, self._waiting, self._ready, self._blocked):
            state.clear()
        self._waiting_entries = 0

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _deal(
        self, found: Readable, slots: "array[int]", rooms: dict[int, int], room_together: int, *, is_replay: bool
    ) -> "tuple[dict[int, array[int]], array[int], array[int]]":
        return deal(
            slots,
            found.indexes,
            found.costs,
            self.assignment.bounds,
            self.assignment.owners,
            rooms,
            room_together,
            self._held,
            self._holders,
            self._waiting,
            self._is_ordered,
            is_replay,
        )

    def _release(self, ledger_id: int, ids: BitMap, *, is_acknowledged: bool) -> list[int]:
        known = self._slots[ledger_id] if ids else {}
        return release(known, ids.to_array(), self._held, self._holders, self._waiting, self._is_ordered, is_acknowledged)

    def _wait(self, ledger_id: int, ids: BitMap) -> None:
        """They are counted in `_waiting`; put them where they wait."""
        if not ids:
            return
        slots, assignment = self._slots[ledger_id], self.assignment
        ready, blocked = place(slots, ids.to_array(), assignment.bounds, assignment.owners, self._holders)
        for consumer, theirs in ready.items():
            self._ready.setdefault(consumer, EntrySet()).add(ledger_id, BitMap(theirs))
        for slot, entry_id in blocked:
            self._blocked.setdefault(slot, EntrySet()).add(ledger_id, BitMap((entry_id,)))

    def _unblock(self, slots: Sequence[int]) -> None:
        """Gives these slots, which no consumer holds any more, to their owners, with the entries that have waited for that."""
        for slot in slots:
            entries = self._blocked.pop(slot, None)
            if entries is not None:
                for ledger_id, ids in entries.ledgers():
                    self._wait(ledger_id, ids)

    def _stop_waiting(self, ledger_id: int, known: dict[int, int], ids: BitMap) -> None:
        self._waiting_entries -= len(ids)
        for consumer in list(self._ready):
            self._ready[consumer].remove(ledger_id, ids)
            self._forget_empty(consumer)
        for entry_id in ids:
            slot = known.pop(entry_id)
            self._waiting[slot] -= 1
            if not self._waiting[slot]:
                del self._waiting[slot]
            blocked = self._blocked.get(slot)
            if blocked is not None:
                blocked.remove(ledger_id, BitMap((entry_id,)))
                if not blocked:
                    del self._blocked[slot]

    def _forget_empty(self, consumer: int) -> None:
        if not self._ready[consumer]:
            del self._ready[consumer]

    def check_invariants(self, pending: Mapping[int, EntrySet]) -> None:
        """Checks against the entries that each consumer has."""
        owner_of = dict(_by_slot(self.assignment, {slot for known in self._slots.values() for slot in known.values()}))
        held: dict[int, int] = {}
        entries = 0
        for consumer, theirs in pending.items():
            for ledger_id, ids in theirs.ledgers():
                entries += len(ids)
                for entry_id in ids if self._is_ordered else ():
                    slot = self._slots[ledger_id][entry_id]
                    held[slot] = held.get(slot, 0) + 1
                    assert self._holders[slot] == consumer, f"slot {slot} is held by two"
        assert held == self._held
        assert held.keys() == self._holders.keys()
        waiting: dict[int, int] = {}
        for place_of, sets in ((True, self._ready), (False, self._blocked)):
            for key, theirs in sets.items():
                assert theirs, "an empty set is kept"
                for ledger_id, ids in theirs.ledgers():
                    entries += len(ids)
                    for entry_id in ids:
                        slot = self._slots[ledger_id][entry_id]
                        waiting[slot] = waiting.get(slot, 0) + 1
                        owner = owner_of[slot]
                        assert key == (owner if place_of else slot), "waits in the wrong place"
                        assert (self._holders.get(slot, owner) == owner) == place_of
        assert waiting == self._waiting
        assert sum(waiting.values()) == self._waiting_entries
        assert entries == sum(map(len, self._slots.values())), "an entry is in two places, or in none"


def _by_slot(assignment: Assignment, slots: Iterable[int]) -> Iterable[tuple[int, int]]:
    for slot in slots:
        yield slot, next(owner for bound, owner in zip(assignment.bounds, assignment.owners, strict=True) if slot <= bound)
