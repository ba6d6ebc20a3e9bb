"""Promises of `ReplicatedAdds`: bounds of what is under way, quorums, and the replacement of bookies."""

import asyncio

import pytest

from bookkeeper.write import counted_adds, replicated_adds
from tests.bookkeeper.part_twins import ENTRY
from tests.bookkeeper.write.adds_twin import adds, answer, answer_all, answers, first_ids, on_loop
from tests.bookkeeper.write.test_parts import settled
from wire.bookie.codes import BookieCode

# Bounds


def test_only_so_many_entries_are_with_the_bookies_and_the_rest_follow_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_ENTRIES_MAX", 4)

    async def scenario() -> None:
        twin = adds((1, 1, 1))
        for _ in range(5):
            twin.append(2, is_part=False)
        assert first_ids(twin) == [0, 2]
        await answer(twin, ("b0", 0))
        assert first_ids(twin) == [2, 4]
        await answer_all(twin)
        assert answers(twin) == [(first, type(None)) for first in range(0, 10, 2)]
        assert (twin.adds._outstanding_entries, twin.adds._outstanding_bytes) == (0, 0)

    on_loop(scenario)


def test_only_so_many_bytes_are_with_the_bookies_but_a_larger_run_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_BYTES_MAX", 2 * len(ENTRY.buffer))

    async def scenario() -> None:
        twin = adds((1, 1, 1))
        twin.append(9, is_part=False)
        twin.append(1, is_part=False)
        twin.append(1, is_part=False)
        assert first_ids(twin) == [0], "it is larger than the bound and would otherwise never go"
        await answer(twin, ("b0", 0))
        assert first_ids(twin) == [9, 10]

    on_loop(scenario)


def test_no_more_runs_wait_than_the_bound_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_ENTRIES_MAX", 1)
    monkeypatch.setattr(replicated_adds, "WAITING_RUNS_MAX", 2)

    async def scenario() -> None:
        twin = adds((1, 1, 1))
        fullness = []
        for _ in range(3):
            twin.append(1, is_part=False)
            fullness.append(twin.adds.is_full)
        assert fullness == [False, False, True]
        await answer(twin, ("b0", 0))
        assert not twin.adds.is_full

    on_loop(scenario)


# Quorums


@pytest.mark.parametrize("is_part", [False, True])
def test_an_append_is_confirmed_by_its_ack_quorum_and_not_by_fewer(is_part: bool) -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2))
        twin.append(2, is_part=is_part)
        assert [place for place, _ in twin.asked] == [("b0", 0), ("b1", 0), ("b2", 0)]
        await answer(twin, ("b2", 0))
        assert (twin.told, twin.adds.last_confirmed) == ([], -1)
        await answer(twin, ("b0", 0))
        assert (answers(twin), twin.adds.last_confirmed) == ([(0, type(None))], 1)
        await answer(twin, ("b1", 0))
        assert len(twin.told) == 1

    on_loop(scenario)


@pytest.mark.parametrize("kinds", [(False, False, False), (True, True, True), (True, False, True), (False, True, False)])
def test_appends_are_confirmed_in_order_however_the_answers_come(kinds: tuple[bool, ...]) -> None:
    async def scenario() -> None:
        twin = adds((2, 2, 2))
        for is_part in kinds:
            twin.append(1, is_part=is_part)
        await answer(twin, *((bookie, entry) for entry in (2, 1) for bookie in ("b0", "b1")), ("b1", 0))
        assert (twin.told, twin.adds.last_confirmed) == ([], -1)
        await answer(twin, ("b0", 0))
        assert answers(twin) == [(entry, type(None)) for entry in range(3)]
        assert twin.adds.last_confirmed == 2

    on_loop(scenario)


@pytest.mark.parametrize("is_part", [False, True])
def test_entries_confirmed_together_end_before_the_first_that_lacks_a_quorum(is_part: bool) -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2))
        for _ in range(4):
            twin.append(1, is_part=is_part)
        await answer(twin, ("b0", 1), ("b1", 1), ("b0", 2), ("b0", 3), ("b1", 3), ("b0", 0), ("b1", 0))
        assert (answers(twin), twin.adds.last_confirmed) == ([(0, type(None)), (1, type(None))], 1)

    on_loop(scenario)


def test_an_entry_of_a_striped_ledger_goes_to_its_write_set_alone() -> None:
    async def scenario() -> None:
        twin = adds((3, 2, 2))
        twin.append(3, is_part=True)
        assert sorted(place for place, _ in twin.asked) == [
            ("b0", 0), ("b0", 2), ("b1", 0), ("b1", 1), ("b2", 1), ("b2", 2),
        ]  # fmt: skip
        await answer(twin, ("b1", 1), ("b2", 1), ("b0", 0), ("b1", 0), ("b2", 2))
        assert (twin.told, twin.adds.last_confirmed) == ([], 1)
        await answer(twin, ("b0", 2))
        assert answers(twin) == [(0, type(None))]

    on_loop(scenario)


# Another bookie takes a place


def test_nothing_is_confirmed_and_nobody_new_is_asked_before_the_metadata_names_the_new_bookie() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=1)
        for _ in range(2):
            twin.append(1, is_part=True)
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        assert twin.told == [("failed", "b0"), ("store", 0, ("spare0", "b1", "b2"))]
        await answer(twin, *((bookie, entry) for bookie in ("b1", "b2") for entry in (0, 1)))
        assert (answers(twin), twin.adds.last_confirmed) == ([], -1)
        assert [place for place, _ in twin.asked] == [("b0", 1)]
        twin.stored(None)
        await settled()
        assert [place for place, _ in twin.asked] == [("b0", 1), ("spare0", 0), ("spare0", 1)]
        assert answers(twin) == [(0, type(None)), (1, type(None))]

    on_loop(scenario)


def test_an_entry_stored_by_a_replaced_bookie_does_not_count() -> None:
    async def scenario() -> None:
        twin = adds((2, 2, 2), spares=1)
        for _ in range(2):
            twin.append(1, is_part=False)
        await answer(twin, ("b1", 0), ("b1", 1), ("b0", 1))
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        twin.stored(None)
        await settled()
        await answer(twin, ("spare0", 0))
        assert (answers(twin), twin.adds.last_confirmed) == ([(0, type(None))], 0)
        await answer(twin, ("spare0", 1))
        assert twin.adds.last_confirmed == 1

    on_loop(scenario)


def test_an_answer_of_a_replaced_bookie_that_comes_late_changes_nothing() -> None:
    async def scenario() -> None:
        twin = adds((2, 2, 2), spares=1)
        for _ in range(3):
            twin.append(1, is_part=False)
        await answer(twin, *(("b1", entry) for entry in range(3)))
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        twin.stored(None)
        await settled()
        await answer(twin, ("spare0", 0), ("b0", 1))
        assert twin.adds.last_confirmed == 0
        await answer(twin, ("b0", 2), code=BookieCode.EFENCED)
        assert twin.adds.failure is None, "it is no bookie of this ledger any more"
        await answer(twin, ("spare0", 1), ("spare0", 2))
        assert twin.adds.last_confirmed == 2

    on_loop(scenario)


def test_a_bookie_that_fails_while_another_is_replaced_is_replaced_after_it() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=2)
        twin.append(1, is_part=False)
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        await answer(twin, ("b1", 0), code=BookieCode.EIO)
        twin.stored(None)
        await settled()
        assert answers(twin) == []
        assert [each for each in twin.told if each[0] == "store"] == [  # type: ignore[index]
            ("store", 0, ("spare0", "b1", "b2")),
            ("store", 0, ("spare0", "spare1", "b2")),
        ]
        await answer(twin, ("b2", 0), ("spare0", 0))
        assert answers(twin) == []
        twin.stored(None)
        await settled()
        assert answers(twin) == [(0, type(None))]

    on_loop(scenario)


def test_a_bookie_that_fails_when_a_change_has_looked_for_the_last_time_is_replaced_too() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=2)
        twin.append(1, is_part=True)
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        change = twin.adds._changing
        assert change is not None
        twin.stored(None)
        await asyncio.sleep(0)
        assert change.done()
        assert twin.adds._changing is change, "its end is not reported yet"
        await answer(twin, ("b1", 0), code=BookieCode.EIO)
        assert twin.told[-1] == ("store", 0, ("spare0", "spare1", "b2"))

    on_loop(scenario)


def test_a_failed_bookie_stays_where_nobody_is_spare_and_the_ack_quorum_can_be_had() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2))
        twin.append(1, is_part=True)
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        assert twin.told == [("failed", "b0")]
        await answer(twin, ("b1", 0), ("b2", 0))
        twin.append(1, is_part=True)
        assert first_ids(twin) == [1, 1, 1]
        await answer_all(twin)
        assert answers(twin) == [(0, type(None)), (1, type(None))]

    on_loop(scenario)


def test_no_part_is_taken_while_a_bookie_is_replaced() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=1)
        twin.append(1, is_part=True)
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        twin.append(1, is_part=True)
        assert twin.parts == 1, "it went as a run"
        twin.stored(None)
        await answer_all(twin)
        twin.append(1, is_part=True)
        assert twin.parts == 2

    on_loop(scenario)
