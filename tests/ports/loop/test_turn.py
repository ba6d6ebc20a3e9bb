"""The end of a turn: what is done there, in which order, and what of it waits for the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from ports.loop.turn import Turn, turn_of


def on_a_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def here() -> Turn:
    return turn_of(asyncio.get_running_loop())


def test_work_asked_for_in_a_turn_is_done_at_its_end_in_order() -> None:
    async def scenario() -> None:
        done: list[str] = []
        with here():
            here().at_end(lambda: done.append("first"))
            here().at_end(lambda: done.append("second"))
            assert done == []
        assert done == ["first", "second"]

    on_a_loop(scenario)


def test_work_asked_for_at_the_end_of_a_turn_is_done_in_that_turn() -> None:
    async def scenario() -> None:
        done: list[str] = []

        def tell() -> None:
            done.append("told")
            here().at_end(partial(done.append, "sent"))

        with here():
            here().at_end(tell)
            here().at_end(partial(done.append, "receipt"))
        assert done == ["told", "receipt", "sent"]

    on_a_loop(scenario)


def test_a_turn_within_itself_ends_with_the_outer_one() -> None:
    async def scenario() -> None:
        done: list[str] = []
        with here():
            with here():
                here().at_end(partial(done.append, "sent"))
            assert done == []
        assert done == ["sent"]

    on_a_loop(scenario)


def test_without_a_turn_it_is_called_soon() -> None:
    async def scenario() -> None:
        done: list[str] = []
        here().at_end(partial(done.append, "sent"))
        assert done == []
        await asyncio.sleep(0)
        assert done == ["sent"]

    on_a_loop(scenario)


def test_a_part_that_raises_costs_the_others_nothing() -> None:
    async def scenario() -> None:
        done: list[str] = []
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

        def fail() -> None:
            raise KeyError("a bug")

        with here():
            here().at_end(fail)
            here().at_end(partial(done.append, "sent"))
        assert done == ["sent"]
        assert [type(context["exception"]) for context in told] == [KeyError]

    on_a_loop(scenario)


def test_an_event_that_fails_ends_its_turn() -> None:
    async def scenario() -> None:
        done: list[str] = []

        def event() -> None:
            with here():
                here().at_end(partial(done.append, "sent"))
                raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            event()
        assert done == ["sent"]
        here().at_end(partial(done.append, "soon"))
        assert done == ["sent"]
        await asyncio.sleep(0)
        assert done == ["sent", "soon"]

    on_a_loop(scenario)


def test_each_loop_has_a_turn_of_its_own() -> None:
    async def scenario() -> Turn:
        return here()

    with asyncio.Runner() as one, asyncio.Runner() as other:
        assert one.run(scenario()) is one.run(scenario())
        assert one.run(scenario()) is not other.run(scenario())
