"""SimLoop: asyncio on virtual time."""

import asyncio
import io
from typing import Any

import pytest

from simulation.world.loop import SimLoop, SimulationFailure
from simulation.world.rng import stream
from tests.simulation.worlds import World, run


def test_an_hour_of_sleep_takes_an_hour_of_virtual_time() -> None:
    async def scenario(world: World) -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert 3600 <= run(scenario) < 3600.01


def test_call_soon_is_first_in_first_out() -> None:
    seen: list[int] = []

    async def scenario(world: World) -> None:
        for number in range(100):
            world.loop.call_soon(seen.append, number)
        await asyncio.sleep(0)

    run(scenario)
    assert seen == list(range(100))


def order_of_equal_timers(seed: int) -> list[int]:
    seen: list[int] = []

    async def scenario(world: World) -> None:
        for number in range(10):
            world.loop.call_at(1.0, seen.append, number)
        await asyncio.sleep(2)

    run(scenario, seed)
    return seen


def test_timers_that_are_due_together_run_in_an_order_drawn_from_the_seed() -> None:
    assert order_of_equal_timers(1) == order_of_equal_timers(1)
    assert order_of_equal_timers(1) != order_of_equal_timers(2)
    assert sorted(order_of_equal_timers(2)) == list(range(10))


@pytest.mark.parametrize(("is_slow", "turns"), [(False, 3), (True, 1)])
def test_timers_that_became_due_meanwhile_run_in_one_turn_of_a_slow_machine(is_slow: bool, turns: int) -> None:
    loop = SimLoop(stream(0, "loop"), is_slow=is_slow)
    found: set[int] = set()
    turn = 0

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count_turns)

    async def scenario() -> None:
        loop.call_soon(count_turns)
        for number in range(3):
            loop.call_later((number + 1) * 0.000_05, lambda: found.add(turn))
        await asyncio.sleep(0.01)

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.finish()
    assert len(found) == turns


def test_a_busy_loop_meets_its_timers() -> None:
    async def scenario(world: World) -> bool:
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            world.loop.call_soon(turn)

        turn()
        await asyncio.sleep(0.01)
        return turns > 1000

    assert run(scenario)


def test_an_exception_in_a_callback_ends_the_run() -> None:
    async def scenario(world: World) -> None:
        world.loop.call_later(1, lambda: 1 // 0)
        await asyncio.sleep(5)

    with pytest.raises(SimulationFailure, match="ZeroDivisionError"):
        run(scenario)


def test_an_exception_that_no_one_takes_from_a_task_ends_the_run() -> None:
    async def fails() -> None:
        raise LookupError("nobody asked")

    async def scenario(world: World) -> None:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(1)

    with pytest.raises(SimulationFailure, match="LookupError"):
        run(scenario)


def test_asking_for_a_thread_ends_the_run() -> None:
    async def scenario(world: World) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(SimulationFailure, match="thread"):
        run(scenario)


def test_a_deadlock_is_a_failure_and_not_a_hang() -> None:
    async def scenario(world: World) -> None:
        await world.loop.create_future()

    with pytest.raises(SimulationFailure, match="nothing is left"):
        run(scenario)


def test_timeouts_task_groups_and_gather_work() -> None:
    async def scenario(world: World) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(asyncio.sleep(1, "a"))
            second = group.create_task(asyncio.sleep(2, "b"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.sleep(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(9), 1)
        return [first.result(), second.result(), *await asyncio.gather(asyncio.sleep(1, "c"), asyncio.sleep(0, "d"))]

    assert run(scenario) == ["a", "b", "c", "d"]


def cancel_many(seed: int) -> str:
    sink = io.StringIO()

    async def scenario(world: World) -> None:
        async def child(number: int) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                world.loop.trace.record("test", f"child {number} cancelled")

        async def boom() -> None:
            await asyncio.sleep(1)
            raise KeyError("boom")

        async def parent() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(child(number))
                group.create_task(boom())

        with pytest.raises(ExceptionGroup):
            await parent()

    run(scenario, seed, sink)
    return sink.getvalue()


def test_the_order_in_which_a_task_group_cancels_does_not_depend_on_addresses() -> None:
    first = cancel_many(3)
    padding = [object() for _ in range(1000)]
    assert first.count("cancelled") == 50
    assert cancel_many(3) == first
    assert padding


def test_asyncio_streams_and_queues_work() -> None:
    async def scenario(world: World) -> bytes:
        queue: asyncio.Queue[bytes] = asyncio.Queue(1)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await queue.put(await reader.readexactly(5))
            writer.write(b"world")
            await writer.drain()
            writer.close()

        await asyncio.start_server(serve, "localhost", 99)
        reader, writer = await asyncio.open_connection("localhost", 99)
        writer.write(b"hello")
        answer = await reader.read()
        writer.close()
        return await queue.get() + answer

    assert run(scenario) == b"helloworld"
