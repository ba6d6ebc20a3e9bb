"""Many works some at a time: results, failures and cancellation."""

import asyncio
from itertools import pairwise

import pytest

from ports.loop.side_by_side import AT_ONCE_MAX, side_by_side


class Counted:
    """Works that count how many of them are under way."""

    def __init__(self) -> None:
        self.begun = self.under_way = self.most = 0

    async def work(self, number: int) -> int:
        self.begun += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(number % 3 + 1):
            await asyncio.sleep(0)
        self.under_way -= 1
        if number % 5 == 4:
            raise ValueError(number)
        return number


def test_all_are_done_and_told_in_the_order_given() -> None:
    async def run() -> None:
        counted = Counted()
        found = await side_by_side(counted.work(number) for number in range(100))
        assert [each for each in found if isinstance(each, int)] == [each for each in range(100) if each % 5 != 4]
        failures = [str(each) for each in found if isinstance(each, ValueError)]
        assert failures == [str(each) for each in range(4, 100, 5)]

    asyncio.run(run())


def test_a_turn_of_the_loop_does_some_of_the_works_that_wait_for_nothing() -> None:
    async def work() -> None:
        done.append(1)

    async def count() -> None:
        while True:
            counts.append(len(done))
            await asyncio.sleep(0)

    async def run() -> None:
        counting = asyncio.create_task(count())
        await side_by_side(work() for _ in range(1000))
        counting.cancel()

    done, counts = list[int](), [0]
    asyncio.run(run())
    assert len(done) == 1000
    assert max(after - before for before, after in pairwise(counts)) <= 2 * AT_ONCE_MAX


def test_no_more_are_under_way_than_allowed() -> None:
    async def run() -> None:
        counted = Counted()
        await side_by_side((counted.work(number) for number in range(1000)), 7)
        assert (counted.begun, counted.most) == (1000, 7)

    asyncio.run(run())


def test_a_cancelled_caller_cancels_what_is_under_way_and_begins_no_more() -> None:
    async def run() -> None:
        counted = Counted()
        doing = asyncio.create_task(side_by_side([counted.work(number) for number in range(50)], 3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing
        begun = counted.begun
        await asyncio.sleep(0)
        assert begun == counted.begun < 10

    asyncio.run(run())


def test_a_work_that_was_cancelled_by_itself_is_a_result() -> None:
    async def run() -> None:
        async def gives_up() -> None:
            raise asyncio.CancelledError

        assert [type(each) for each in await side_by_side([gives_up(), gives_up()])] == [asyncio.CancelledError] * 2

    asyncio.run(run())


def test_there_may_be_nothing_to_do() -> None:
    async def run() -> None:
        assert await side_by_side([]) == []

    asyncio.run(run())


def test_one_work_takes_no_task_of_its_own() -> None:
    async def run() -> None:
        async def work() -> asyncio.Task[None] | None:
            return asyncio.current_task()

        assert await side_by_side([work()]) == [asyncio.current_task()]

    asyncio.run(run())
