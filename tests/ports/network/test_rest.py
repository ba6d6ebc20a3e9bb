"""Rest: commands that take longer than one turn of the event loop."""

import asyncio
from collections.abc import Iterator

import pytest

from ports.network.rest import Rest


def slices(done: list[int], count: int) -> Iterator[None]:
    for number in range(count):
        done.append(number)
        yield
    done.append(count)


def test_each_turn_of_the_loop_does_one_slice() -> None:
    async def scenario() -> None:
        done: list[int] = []
        ended: list[bool] = []
        rest = Rest(lambda: ended.append(rest.is_through()))
        rest.begin(slices(done, 2))
        assert done == [0]
        assert rest.is_behind
        await asyncio.sleep(0)
        assert (done, ended) == ([0, 1], [False])
        await asyncio.sleep(0)
        assert (done, ended) == ([0, 1, 2], [False, True])
        assert not rest.is_behind

    asyncio.run(scenario())


def test_a_command_of_one_slice_needs_no_further_turn() -> None:
    async def scenario() -> None:
        done: list[int] = []
        turns: list[str] = []
        rest = Rest(lambda: turns.append("turn"))
        rest.begin(slices(done, 0))
        assert not rest.is_behind
        await asyncio.sleep(0)
        assert (done, turns) == ([0], [])

    asyncio.run(scenario())


def test_a_second_command_must_wait_for_the_end_of_the_first() -> None:
    async def scenario() -> None:
        rest = Rest(lambda: None)
        rest.begin(slices([], 5))
        with pytest.raises(AssertionError, match="before the one before it"):
            rest.begin(slices([], 1))
        rest.close()

    asyncio.run(scenario())


def test_a_closed_connection_does_no_further_slice() -> None:
    async def scenario() -> None:
        done: list[int] = []
        turns: list[str] = []
        rest = Rest(lambda: turns.append("turn"))
        rest.begin(slices(done, 3))
        rest.close()
        await asyncio.sleep(0)
        assert (done, turns, rest.is_behind) == ([0], [], False)
        rest.close()

    asyncio.run(scenario())
