"""Free memory goes back to the system when many things have ended, and at no other time."""

import asyncio
import gc
import random

from cli.serving.free_memory import (
    CALM_TICKS,
    ENDS_AT_ONCE,
    ENDS_MIN,
    IDLE_TICK_SECONDS,
    PAUSE_TIMES,
    TICK_SECONDS,
    FreeMemory,
    give_back_when_things_end,
)
from ports.ends import ENDS
from simulation.world.loop import SimLoop


def requests(machine: FreeMemory, ended: int, ticks: int) -> list[int]:
    """The ticks, of so many with this count of ends, at which memory is given back."""
    return [tick for tick in range(ticks) if machine.is_due(ended, 0.0)]


def test_memory_is_given_back_while_things_end_each_time_that_so_many_have() -> None:
    machine = FreeMemory(1000)
    asked = [ended for ended in range(1000, 1000 + 5 * ENDS_AT_ONCE + 1, ENDS_AT_ONCE // 4) if machine.is_due(ended, 0.0)]
    assert asked == [1000 + times * ENDS_AT_ONCE for times in range(1, 6)]


def test_the_rest_is_given_back_soon_after_the_last_end_and_once_more_later() -> None:
    machine = FreeMemory(0)
    assert not machine.is_due(ENDS_MIN, 0.0)
    assert requests(machine, ENDS_MIN, 10_000) == [calm - 1 for calm in CALM_TICKS]


def test_an_end_between_two_requests_delays_the_second() -> None:
    machine = FreeMemory(0)
    machine.is_due(ENDS_MIN, 0.0)
    assert requests(machine, ENDS_MIN, 10) == [CALM_TICKS[0] - 1]
    machine.is_due(ENDS_MIN + 1, 0.0)
    assert requests(machine, ENDS_MIN + 1, 10_000) == [calm - 1 for calm in CALM_TICKS]


def test_few_ends_lead_to_no_request_until_there_are_enough() -> None:
    machine = FreeMemory(0)
    for ended in range(1, ENDS_MIN):
        assert requests(machine, ended, 100) == []
    machine.is_due(ENDS_MIN, 0.0)
    assert requests(machine, ENDS_MIN, 100) != []


def test_a_server_in_which_nothing_ends_never_asks() -> None:
    assert requests(FreeMemory(7), 7, 10_000) == []


def test_a_server_looks_rarely_while_nothing_ends_and_often_until_all_is_given_back() -> None:
    machine = FreeMemory(7)
    looks = [(ended, machine.is_due(ended, 0.0), machine.tick_seconds)[2] for ended in (7, 7 + ENDS_MIN, 7 + ENDS_MIN)]
    assert looks == [IDLE_TICK_SECONDS, TICK_SECONDS, TICK_SECONDS]
    requests(machine, 7 + ENDS_MIN, CALM_TICKS[-1])
    assert machine.tick_seconds == IDLE_TICK_SECONDS


def test_a_request_that_took_long_is_followed_by_a_longer_pause() -> None:
    machine = FreeMemory(0)
    assert machine.is_due(ENDS_AT_ONCE, 10.0)
    machine.answered(0.5, 10.5)
    assert not machine.is_due(2 * ENDS_AT_ONCE, 10.4 + PAUSE_TIMES * 0.5)
    assert machine.is_due(2 * ENDS_AT_ONCE, 10.5 + PAUSE_TIMES * 0.5)


def test_a_server_gives_back_memory_after_ends_and_only_after_them() -> None:
    asked, collected = list[float](), list[int]()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        give_back_when_things_end(loop, collected.append, lambda: asked.append(loop.time()))
        await asyncio.sleep(60)
        assert asked == []
        ENDS.count += 2 * ENDS_AT_ONCE
        await asyncio.sleep(2 * TICK_SECONDS * CALM_TICKS[-1])
        assert (len(asked), collected) == (1 + len(CALM_TICKS), [1, *(2 for _ in CALM_TICKS)])

    loop = SimLoop(random.Random(1))
    loop.run_until_complete(run())
    loop.close()


def test_new_objects_are_looked_at_while_things_end_also_in_a_pause() -> None:
    machine = FreeMemory(0)
    machine.answered(1000.0, 0.0)
    looks = [ended for ended in range(0, 5 * ENDS_AT_ONCE, ENDS_AT_ONCE // 2) if machine.is_look_due(ended)]
    assert looks == [times * ENDS_AT_ONCE for times in range(1, 5)]


def test_the_collection_after_the_last_end_looks_at_few_objects_however_many_were_made_meanwhile() -> None:
    """Python itself runs no collection while as many old objects are freed as new ones are made."""
    looked_at = list[int]()

    def before(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(sum(len(gc.get_objects(generation=each)) for each in range(info["generation"] + 1)))
        else:
            gc.freeze()  # as the server does

    async def run() -> None:
        loop = asyncio.get_running_loop()
        old, new = [[number] for number in range(60_000)], list[list[int]]()
        gc.collect()
        gc.freeze()
        give_back_when_things_end(loop, give_back=lambda: None)
        gc.callbacks.append(before)
        try:
            for _ in range(50):
                for _ in range(1000):
                    old.pop()
                    new.append([0])
                ENDS.count += ENDS_AT_ONCE
                await asyncio.sleep(TICK_SECONDS)
            await asyncio.sleep(10 * TICK_SECONDS)
        finally:
            gc.callbacks.remove(before)
            gc.unfreeze()
        assert len(new) == 50_000

    loop = SimLoop(random.Random(1))
    loop.run_until_complete(run())
    loop.close()
    assert len(looked_at) > 50
    assert max(looked_at) < 10_000
