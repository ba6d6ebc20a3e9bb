"""Promises: who hears of their end, in which order, and when."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ports.loop.promise import Promise, ignore, listen, promises


def on_a_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def promise() -> "Promise[Any]":
    return promises(asyncio.get_running_loop())()


def test_listeners_hear_of_a_result_at_once_and_in_order() -> None:
    async def scenario() -> None:
        told: list[str] = []
        made = promise()
        made.add_done_callback(lambda _: told.append("callback"))
        listen(made, lambda done: told.append(f"first {done.result()}"))
        listen(made, lambda _: told.append("second"))
        made.set_result(1)
        assert told == ["first 1", "second"]
        await asyncio.sleep(0)
        assert told == ["first 1", "second", "callback"]

    on_a_loop(scenario)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_listeners_hear_of_a_failure_in_the_next_turn(is_cancelled: bool) -> None:
    async def scenario() -> None:
        told: list[str] = []
        made = promise()
        listen(made, lambda done: told.append("cancelled" if done.cancelled() else repr(done.exception())))
        if is_cancelled:
            made.cancel()
        else:
            made.set_exception(OSError(5, "gone"))
        assert told == []
        await asyncio.sleep(0)
        assert told == ["cancelled" if is_cancelled else repr(OSError(5, "gone"))]

    on_a_loop(scenario)


def test_a_listener_to_a_done_promise_is_called_in_the_next_turn() -> None:
    async def scenario() -> None:
        told: list[int] = []
        made = promise()
        made.set_result(1)
        listen(made, lambda done: told.append(done.result()))
        assert told == []
        await asyncio.sleep(0)
        assert told == [1]

    on_a_loop(scenario)


def test_an_ignored_listener_hears_nothing_of_a_promise_or_a_future() -> None:
    async def scenario() -> None:
        told: list[object] = []
        for made in (promise(), asyncio.get_running_loop().create_future()):
            listen(made, told.append)
            ignore(made, told.append)
            made.set_result(1)
        await asyncio.sleep(0)
        assert told == []

    on_a_loop(scenario)


def test_a_listener_that_raises_harms_neither_the_others_nor_who_gives_the_result() -> None:
    async def scenario() -> None:
        loop, told = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: told.append(repr(context["exception"])))
        made = promise()
        listen(made, lambda _: 1 / 0)
        listen(made, lambda _: told.append("second"))
        made.set_result(1)
        assert told == [repr(ZeroDivisionError("division by zero")), "second"]

    on_a_loop(scenario)
