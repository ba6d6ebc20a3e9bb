"""Promises of `ReplicatedAdds`: bounds, quorums, replaced bookies, and failures that are told once and in order."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper.ledgers import LedgerClosed, LedgerError, LedgerFenced
from bookkeeper.write import counted_adds, replicated_adds
from bookkeeper.write.replicated_adds import AbsentBookie
from tests.bookkeeper.part_twins import ENTRY, LEDGER, Twin
from tests.bookkeeper.write.test_parts import settled
from tests.simulation import worlds
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun


def on_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    worlds.run(lambda _: scenario())


def adds(sizes: tuple[int, int, int], spares: int = 0, seconds: float = 0.0, *, delays: bool = False) -> Twin:
    return Twin(sizes, spares, seconds, delays=delays, takes_parts=True)


async def answer(twin: Twin, *places: tuple[str, int], code: BookieCode = BookieCode.EOK) -> None:
    """These bookies answer about these entries, one after the other."""
    for place in places:
        twin.answer(place, code)
        await settled()
        twin.adds._tracker.check_invariants()


async def answer_all(twin: Twin) -> None:
    """Every bookie stores what it was asked for, until nothing is asked for any more."""
    while twin.asked:
        await answer(twin, twin.asked[0][0])


def answers(twin: Twin) -> list[object]:
    """First entry and error of each answered append, in the order of the answers."""
    return [each[:2] for each in twin.told if isinstance(each, tuple) and isinstance(each[0], int)]


def first_ids(twin: Twin) -> list[int]:
    return [place[1] for place, _ in twin.asked]


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


def test_what_a_replaced_bookie_has_stored_counts_for_nothing() -> None:
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


# Failures


def ways_to_fail() -> list[tuple[str, type[LedgerError], type[LedgerError]]]:
    """How it fails, with what error, and what later appends get."""
    return [
        ("fenced", LedgerFenced, LedgerFenced),
        ("wrong key", LedgerError, LedgerClosed),
        ("no quorum", LedgerError, LedgerClosed),
        ("metadata", LedgerError, LedgerClosed),
        ("another owner", LedgerFenced, LedgerFenced),
    ]


async def fail(twin: Twin, way: str) -> None:
    match way:
        case "fenced":
            await answer(twin, ("b0", 0), code=BookieCode.EFENCED)
        case "wrong key":
            await answer(twin, ("b0", 0), code=BookieCode.EUA)
        case "no quorum":
            await answer(twin, ("b0", 0), ("b1", 0), code=BookieCode.EIO)
        case _:
            await answer(twin, ("b0", 0), code=BookieCode.EIO)
            twin.stored(LedgerFenced("closed") if way == "another owner" else LedgerError("away"))
            await settled()


@pytest.mark.parametrize(("way", "error", "later"), ways_to_fail())
def test_a_failure_that_nobody_heals_is_told_to_each_append_once_and_in_order(
    way: str, error: type[LedgerError], later: type[LedgerError]
) -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=0 if way == "no quorum" else 1)
        for is_part in (True, True, False, False):
            twin.append(1, is_part=is_part)
        await answer(twin, ("b1", 1), ("b2", 1))
        await fail(twin, way)
        assert answers(twin) == [(entry, error) for entry in range(4)]
        for code in (BookieCode.EOK, BookieCode.EFENCED):
            for place, _ in list(twin.asked)[::2]:
                await answer(twin, place, code=code)
        twin.append(1, is_part=True)
        await settled()
        assert answers(twin)[4:] == [(4, later)]
        assert (twin.adds.last_confirmed, twin.parts) == (-1, 2)
        with pytest.raises(error):
            await twin.adds.finish()

    on_loop(scenario)


def test_what_waits_for_room_fails_with_what_is_under_way_and_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_ENTRIES_MAX", 1)

    async def scenario() -> None:
        twin = adds((1, 1, 1))
        for _ in range(3):
            twin.append(1, is_part=False)
        await answer(twin, ("b0", 0), code=BookieCode.EFENCED)
        assert answers(twin) == [(entry, LedgerFenced) for entry in range(3)]
        assert twin.asked == []

    on_loop(scenario)


def test_an_append_without_a_quorum_fails_after_its_time_and_one_with_a_quorum_does_not() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), seconds=5.0)
        twin.append(1, is_part=True)
        await answer(twin, ("b0", 0), ("b1", 0))
        await asyncio.sleep(4)
        twin.append(1, is_part=True)
        await asyncio.sleep(4.9)
        assert answers(twin) == [(0, type(None))]
        await asyncio.sleep(0.2)
        assert answers(twin) == [(0, type(None)), (1, LedgerError)]
        assert "no ack quorum in 5 s" in str(twin.told[-1])

    on_loop(scenario)


def test_an_answer_that_was_cancelled_is_a_failure_of_its_bookie() -> None:
    async def scenario() -> None:
        twin = adds((1, 1, 1))
        twin.append(1, is_part=False)
        twin.asked.pop()[1].cancel()
        await settled()
        assert answers(twin) == [(0, LedgerError)]

    on_loop(scenario)


def test_a_bookie_that_cannot_be_found_fails_everything_and_is_replaced_like_any_other() -> None:
    async def scenario() -> None:
        absent = AbsentBookie("gone:3181")
        run = EntryRun(LEDGER, 0, ENTRY.buffer, ENTRY.offsets)
        for attempt in (absent.add(run, b""), absent.read(LEDGER, 0, 1, 1), absent.fence(LEDGER, b"")):
            with pytest.raises(BookieError, match="gone:3181 is not available"):
                await attempt
        with pytest.raises(BookieError, match="not available"):
            await absent.last_entry_id(LEDGER)

    on_loop(scenario)


# The end


def test_finishing_waits_for_all_that_is_pending_and_for_the_change_under_way() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=1)
        for is_part in (True, False):
            twin.append(1, is_part=is_part)
        end = asyncio.ensure_future(twin.adds.finish())
        await settled()
        await answer(twin, ("b1", 0), ("b2", 0))
        assert not end.done(), "an entry is not confirmed"
        await answer(twin, ("b0", 1), code=BookieCode.EIO)
        await answer(twin, ("b1", 1), ("b2", 1))
        assert not end.done(), "the metadata is not stored"
        twin.stored(None)
        await end
        assert twin.adds.last_confirmed == 1

    on_loop(scenario)


def test_a_bookie_that_fails_after_the_end_is_not_replaced() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=1)
        twin.append(1, is_part=False)
        await answer(twin, ("b1", 0), ("b2", 0))
        await twin.adds.finish()
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        assert [each for each in twin.told if each[0] in ("failed", "store")] == []  # type: ignore[index]

    on_loop(scenario)
