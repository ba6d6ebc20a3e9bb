"""Failures that `ReplicatedAdds` cannot heal are told once and in order; and the end of a ledger's adds."""

import asyncio

import pytest

from bookkeeper.ledgers import LedgerClosed, LedgerError, LedgerFenced
from bookkeeper.write import counted_adds
from bookkeeper.write.replicated_adds import AbsentBookie
from tests.bookkeeper.part_twins import ENTRY, LEDGER, Twin
from tests.bookkeeper.write.adds_twin import adds, answer, answers, on_loop
from tests.bookkeeper.write.test_parts import settled
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun


def ways_to_fail() -> list[tuple[str, type[LedgerError], type[LedgerError]]]:
    """Ways to fail, the error of each, and the error of later appends."""
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


def test_adds_that_wait_for_room_fail_with_those_in_flight_and_are_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("is_part", [False, True])
@pytest.mark.parametrize("entry_id", [0, 2])
def test_an_append_whose_ids_do_not_follow_the_last_ones_is_never_sent(is_part: bool, entry_id: int) -> None:
    async def scenario() -> None:
        twin = adds((2, 2, 2))
        twin.append(1, is_part=is_part)
        twin.next_entry_id = entry_id
        with pytest.raises(AssertionError, match=f"entry {entry_id} of .*is out of turn"):
            twin.append(1, is_part=is_part)
        assert len(twin.asked) == 2

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


def test_finishing_waits_for_a_change_though_nothing_is_pending() -> None:
    async def scenario() -> None:
        twin = adds((3, 3, 2), spares=1)
        twin.append(1, is_part=False)
        await answer(twin, ("b1", 0), ("b2", 0))
        await answer(twin, ("b0", 0), code=BookieCode.EIO)
        end = asyncio.ensure_future(twin.adds.finish())
        await settled()
        assert not end.done(), "the metadata may name another bookie soon"
        twin.stored(None)
        await end

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
