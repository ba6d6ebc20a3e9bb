"""Long calculations leave the loop, short ones do not, and in simulation none does."""

import asyncio
import threading

import pytest

from ports.loop.aside import aside
from tests.simulation.worlds import run


@pytest.mark.parametrize("is_long", [False, True])
def test_a_long_calculation_is_done_in_another_thread(is_long: bool) -> None:
    async def scenario() -> bool:
        return await aside(threading.current_thread, is_long=is_long) is threading.current_thread()

    assert asyncio.run(scenario()) is not is_long


def test_in_simulation_it_is_done_at_once() -> None:
    async def scenario() -> None:
        assert await aside(threading.current_thread, is_long=True) is threading.current_thread()

    run(lambda _: scenario())


def test_what_it_raises_is_raised() -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await aside(lambda: int("x"), is_long=True)

    asyncio.run(scenario())
