"""Parts of a ledger end as runs do: the same ones are confirmed, at the same time, in the same order, with the same error."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookkeeper.ledgers import LedgerError
from bookkeeper.write import counted_adds
from tests.bookkeeper.part_twins import Twin
from tests.simulation.worlds import World, run
from wire.bookie.codes import BookieCode

QUORUMS = st.sampled_from([(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 3, 1), (3, 2, 2)])
CODES = st.sampled_from([BookieCode.EOK] * 12 + [BookieCode.EREADONLY, BookieCode.ETOOMANYREQUESTS, BookieCode.EFENCED])
STEPS = st.one_of(
    st.tuples(st.just("part"), st.integers(1, 3)),
    st.tuples(st.just("part"), st.integers(1, 3)),
    st.tuples(st.just("run"), st.integers(1, 3)),
    st.tuples(st.integers(0, 100), CODES),
    st.tuples(st.integers(0, 5), CODES),
    st.tuples(st.just("metadata"), st.sampled_from([True, True, True, False])),
    st.tuples(st.just("time"), st.sampled_from([0.5, 2.0])),
)


async def settled() -> None:
    """Runs all that follows from the last step, in as many turns as it may take."""
    for _ in range(12):
        await asyncio.sleep(0)


class Pair:
    def __init__(self, twins: tuple[Twin, Twin]) -> None:
        self.twins = twins

    async def step(self, step: tuple[object, object]) -> None:
        match step:
            case ("part" | "run" as kind, int(count)):
                for twin in self.twins:
                    twin.append(count, is_part=kind == "part")
            case (int(number), BookieCode() as code):
                waiting = self.twins[0].waits_for()
                if waiting:
                    for twin in self.twins:
                        twin.answer(waiting[number % len(waiting)], code)
            case ("metadata", bool(is_stored)):
                for twin in self.twins:
                    twin.stored(None if is_stored else LedgerError("the metadata is away"))
            case ("time", float(seconds)):
                await asyncio.sleep(seconds)
        await self.check()

    async def check(self) -> None:
        await settled()
        one, other = self.twins
        assert one.state() == other.state()
        assert one.waits_for() == other.waits_for()
        for twin in self.twins:
            twin.adds.check_invariants()

    async def end(self) -> None:
        """Everybody answers: all is confirmed or refused, and `finish` says so."""
        for _ in range(20):
            for place in self.twins[0].waits_for():
                for twin in self.twins:
                    twin.answer(place, BookieCode.EOK)
                await self.check()
            for twin in self.twins:
                twin.stored(None)
            await self.check()
        ends = [await asyncio.gather(twin.adds.finish(), return_exceptions=True) for twin in self.twins]
        assert str(ends[0]) == str(ends[1])
        assert self.twins[1].adds._pending is None


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=QUORUMS,
    spares=st.integers(0, 2),
    seconds=st.sampled_from([0.0, 1.5]),
    delays=st.booleans(),
    steps=st.lists(STEPS, max_size=40),
)
def test_parts_end_as_runs_do(
    sizes: tuple[int, int, int], spares: int, seconds: float, delays: bool, steps: list[tuple[object, object]]
) -> None:
    async def schedule(world: World) -> None:
        def twin(takes_parts: bool) -> Twin:
            return Twin(sizes, spares, seconds, delays=delays, takes_parts=takes_parts)

        pair = Pair((twin(takes_parts=False), twin(takes_parts=True)))
        for step in steps:
            await pair.step(step)
        await pair.end()

    run(schedule)


@pytest.mark.parametrize("spares", [0, 1])
def test_a_bookie_that_fails_a_run_late_takes_nothing_back_that_was_counted_since(spares: int) -> None:
    """Entries confirmed since could not be read any more, and a new segment of the metadata began before them."""

    async def scenario(world: World) -> None:
        twins = [Twin((3, 3, 2), spares, 0.0, delays=False, takes_parts=takes) for takes in (False, True)]
        pair = Pair((twins[0], twins[1]))
        await pair.step(("run", 1))
        for entry in (0, 1):
            for _ in range(2):
                await pair.step((twins[0].waits_for().index(place_of(twins[0], entry)), BookieCode.EOK))
            await pair.step(("part", 1))
        assert twins[1].adds.last_confirmed == 1
        await pair.step((twins[0].waits_for().index(place_of(twins[0], 0)), BookieCode.EREADONLY))
        assert twins[1].adds.last_confirmed == 1
        await pair.end()

    run(scenario)


def place_of(twin: Twin, entry_id: int) -> tuple[str, int]:
    """The first bookie that has not answered about this entry."""
    return next(place for place in twin.waits_for() if place[1] == entry_id)


def test_parts_are_counted_until_a_run_comes_and_again_when_all_is_confirmed() -> None:
    async def scenario(world: World) -> None:
        twin = Twin((3, 3, 2), 0, 0.0, delays=True, takes_parts=True)
        twin.append(2, is_part=True)
        assert twin.adds._tracker.pending_count == 0
        twin.append(1, is_part=False)
        assert twin.adds._tracker.pending_count == 2
        twin.append(1, is_part=True)
        assert twin.adds._tracker.pending_count == 3
        for place in twin.waits_for():
            twin.answer(place, BookieCode.EOK)
        await settled()
        assert (twin.adds.last_confirmed, twin.parts) == (3, 2)
        twin.append(1, is_part=True)
        assert twin.adds._tracker.pending_count == 0

    run(scenario)


def test_no_more_parts_are_taken_than_a_ledger_may_have_under_way() -> None:
    async def scenario(world: World) -> None:
        twin = Twin((1, 1, 1), 0, 0.0, delays=True, takes_parts=True)
        for _ in range(counted_adds.OUTSTANDING_ENTRIES_MAX // 1000):
            twin.append(1000, is_part=True)
        assert twin.parts == counted_adds.OUTSTANDING_ENTRIES_MAX // 1000
        before = twin.parts
        twin.append(1, is_part=True)
        twin.append(1, is_part=True)
        assert twin.parts == before, "they wait as runs, and so does what comes after them"
        for place in twin.waits_for():
            twin.answer(place, BookieCode.EOK)
        await settled()
        for place in twin.waits_for():
            twin.answer(place, BookieCode.EOK)
        await settled()
        assert twin.adds.last_confirmed == counted_adds.OUTSTANDING_ENTRIES_MAX + 1

    run(scenario)
