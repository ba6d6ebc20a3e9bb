"""Works begin at a bounded pace, in turns of the parties, and in the order in which each party asked."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ports.loop.starts import Starts, StartsFull


async def _begun(starts: Starts, asked: list[tuple[int, str]]) -> list[str]:
    """The names of works in the order in which they begin, when all of these parties ask at once and one more later."""
    begun: list[str] = []

    async def work(party: int, name: str) -> None:
        if not starts.take(party):
            await starts.turn(party)
        begun.append(name)

    async with asyncio.TaskGroup() as group:
        for party, name in asked:
            group.create_task(work(party, name))
        await asyncio.sleep(0)
        group.create_task(work(1, "late"))
    return begun


def test_later_work_of_a_party_does_not_begin_before_its_earlier_work() -> None:
    asked = [(1, f"one-{number}") for number in range(20)]
    assert asyncio.run(_begun(Starts(per_turn=3), asked)) == [*[name for _, name in asked], "late"]


def test_a_party_with_one_work_does_not_wait_for_all_of_another() -> None:
    asked = [*((1, f"one-{number}") for number in range(30)), (2, "two")]
    assert asyncio.run(_begun(Starts(per_turn=2), asked)).index("two") <= 6


def test_no_more_work_begins_in_a_turn_than_the_bound_allows() -> None:
    async def scenario() -> None:
        starts = Starts(per_turn=4)
        assert [starts.take(1) for _ in range(6)] == [True] * 4 + [False] * 2
        await asyncio.sleep(0)
        assert [starts.take(1) for _ in range(5)] == [True] * 4 + [False]

    asyncio.run(scenario())


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_party_at_its_bound_waits_until_one_work_has_ended_and_others_go_on() -> None:
    async def scenario() -> None:
        starts = Starts(per_turn=100, under_way_max=2)
        assert [starts.take(1) for _ in range(3)] == [True, True, False]
        waiting = [asyncio.create_task(starts.turn(1)) for _ in range(3)]
        await _turns(10)
        assert [task.done() for task in waiting] == [False] * 3
        assert starts.take(2), "another party has room"
        starts.ended(1)
        await _turns(10)
        assert [task.done() for task in waiting] == [True, False, False]
        assert starts.under_way(1) == 2
        starts.ended(1)
        starts.ended(1)
        await _turns(10)
        assert all(task.done() for task in waiting)

    asyncio.run(scenario())


def test_a_work_that_comes_does_not_begin_before_those_of_its_party_that_wait_for_room() -> None:
    async def scenario() -> None:
        starts = Starts(per_turn=100, under_way_max=1)
        assert starts.take(1)
        waiting = asyncio.create_task(starts.turn(1))
        await _turns(3)
        starts.ended(1)
        assert not starts.take(1)
        await waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("under_way_max", [1, 100])
def test_beyond_the_bound_of_those_that_wait_a_work_is_refused(under_way_max: int) -> None:
    async def scenario() -> None:
        starts = Starts(per_turn=1, under_way_max=under_way_max, waiting_max=3)
        assert starts.take(1)
        waiting = [asyncio.create_task(starts.turn(1)) for _ in range(4)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert isinstance(waiting[-1].exception(), StartsFull)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(scenario())


class Parties:
    """Three of them that ask for works, end them and give up waiting; looked at after each step."""

    def __init__(self) -> None:
        self.starts = Starts(per_turn=2, under_way_max=2)
        self.begun = Counter[int]()
        self.waiting: list[tuple[int, asyncio.Task[None]]] = []

    def ask(self, party: int) -> None:
        if self.starts.take(party):
            self.begun[party] += 1
        else:
            self.waiting.append((party, asyncio.create_task(self.starts.turn(party))))

    def end(self, party: int) -> None:
        if self.begun[party]:
            self.begun[party] -= 1
            self.starts.ended(party)

    def give_up(self, party: int) -> None:
        next((task for each, task in self.waiting if each == party), asyncio.create_task(_turns(0))).cancel()

    def look(self) -> None:
        for party, task in [each for each in self.waiting if each[1].done()]:
            self.waiting.remove((party, task))
            self.begun[party] += not task.cancelled()
        assert all(self.starts.under_way(party) <= 2 for party in (1, 2, 3))


@given(st.lists(st.tuples(st.sampled_from(["ask", "end", "give_up", "look"]), st.integers(1, 3)), max_size=60))
@settings(deadline=None, max_examples=100)
def test_no_party_has_more_under_way_than_it_may_and_all_that_wait_begin_in_the_end(steps: list[tuple[str, int]]) -> None:
    async def scenario() -> None:
        parties = Parties()
        for what, party in steps:
            parties.look()
            if what == "look":
                await _turns(1)
            else:
                getattr(parties, what)(party)
        for _ in range(200):
            await _turns(1)
            parties.look()
            for party in (1, 2, 3):
                parties.end(party)
        assert not parties.waiting
        assert not any(map(parties.starts.under_way, (1, 2, 3)))

    asyncio.run(scenario())
