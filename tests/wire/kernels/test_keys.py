"""wire.kernels.keys, compiled and not, against the same done entry by entry in the plainest way."""

import importlib
import importlib.util
import pathlib
from array import array
from random import Random
from types import ModuleType

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "wire" / "kernels" / "keys.py"


def plain() -> ModuleType:
    """The module run from its source, whether or not a compiled one lies beside it."""
    spec = importlib.util.spec_from_file_location("plain_keys", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BOTH = pytest.mark.parametrize("keys", [plain(), importlib.import_module("wire.kernels.keys")], ids=["plain", "installed"])

BOUNDS = array("I", [9, 29, 29_999, 65_535])
OWNERS = array("q", [1, 2, -1, 3])


def owner(slot: int) -> int:
    return 1 if slot <= 9 else 2 if slot <= 29 else -1 if slot <= 29_999 else 3


@BOTH
def test_slots_are_the_hash_modulo_65536_and_never_0(keys: ModuleType) -> None:
    hashes = array("I", [0, 1, 65_536, 65_537, (1 << 31) - 1, 131_071])
    assert keys.slots_of(hashes, range(6)) == array("I", [1, 1, 1, 1, 65_535, 65_535])
    assert keys.slots_of(hashes, array("I", [3, 5])) == array("I", [1, 65_535])


@BOTH
@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("is_replay", [True, False])
def test_deal_does_what_its_rules_say_entry_by_entry(keys: ModuleType, is_ordered: bool, is_replay: bool) -> None:
    for seed in range(200):
        rng = Random(seed)
        slots = array("I", [rng.choice((1, 5, 9, 10, 29, 30, 40_000, 65_535)) for _ in range(rng.randint(0, 20))])
        indexes = array("I", sorted(rng.sample(range(100), len(slots))))
        costs = rng.choice((None, [rng.randint(1, 3) for _ in slots]))
        rooms = {consumer: rng.randint(1, 6) for consumer in (1, 2, 3) if rng.random() < 0.8}
        room_together = rng.choice((3, 1000))
        holders = {1: 1, 5: 2, 40_000: 3} if is_ordered and not is_replay else {}
        held = dict.fromkeys(holders, 2)
        waiting = {9: 1}
        if is_replay:
            waiting = {slot: list(slots).count(slot) for slot in slots}
        expected = naive_deal(
            slots, indexes, costs, dict(rooms), room_together, dict(held), dict(holders), dict(waiting), is_ordered, is_replay
        )
        given, kept, unowned = keys.deal(
            slots, indexes, costs, BOUNDS, OWNERS, rooms, room_together, held, holders, waiting, is_ordered, is_replay
        )
        found = ({consumer: list(each) for consumer, each in given.items()}, list(kept), list(unowned), held, holders, waiting)
        assert found == expected, f"seed {seed}"


def naive_deal(
    slots: "array[int]",
    indexes: "array[int]",
    costs: list[int] | None,
    rooms: dict[int, int],
    together: int,
    held: dict[int, int],
    holders: dict[int, int],
    waiting: dict[int, int],
    is_ordered: bool,
    is_replay: bool,
) -> tuple[object, ...]:
    given: dict[int, list[int]] = {}
    kept: list[int] = []
    unowned: list[int] = []
    for place, slot in enumerate(slots):
        who = owner(slot)
        if who == -1:
            unowned.append(indexes[place])
            continue
        is_barred = is_ordered and not is_replay and (slot in waiting or holders.get(slot, who) != who)
        if is_barred or rooms.get(who, 0) < 1 or together < 1:
            kept.append(indexes[place])
            if not is_replay:
                waiting[slot] = waiting.get(slot, 0) + 1
            continue
        cost = costs[place] if costs else 1
        rooms[who] -= cost
        together -= cost
        given.setdefault(who, []).append(indexes[place])
        if is_ordered:
            held[slot] = held.get(slot, 0) + 1
            holders[slot] = who
        if is_replay:
            waiting[slot] -= 1
            if not waiting[slot]:
                del waiting[slot]
    return given, kept, unowned, held, holders, waiting


@BOTH
def test_release_counts_down_and_names_the_slots_that_nobody_holds_any_more(keys: ModuleType) -> None:
    slots, held, holders = {1: 7, 2: 7, 3: 8}, {7: 2, 8: 1}, {7: 1, 8: 2}
    waiting: dict[int, int] = {}
    assert keys.release(slots, array("I", [1]), held, holders, waiting, True, True) == []
    assert (slots, held, holders, waiting) == ({2: 7, 3: 8}, {7: 1, 8: 1}, {7: 1, 8: 2}, {})
    assert keys.release(slots, array("I", [2, 3]), held, holders, waiting, True, False) == [7, 8]
    assert (slots, held, holders, waiting) == ({2: 7, 3: 8}, {}, {}, {7: 1, 8: 1})
    assert keys.release(slots, array("I", [2]), held, holders, waiting, False, True) == []
    assert slots == {3: 8}


@BOTH
def test_place_keeps_apart_what_waits_for_its_owner_and_what_waits_for_the_former_one(keys: ModuleType) -> None:
    slots = {1: 5, 2: 10, 3: 5, 4: 100, 5: 65_535}
    ready, blocked = keys.place(slots, array("I", [1, 2, 3, 4, 5]), BOUNDS, OWNERS, {5: 1, 10: 3})
    assert {who: list(each) for who, each in ready.items()} == {1: [1, 3], -1: [4], 3: [5]}
    assert blocked == [(10, 2)]
