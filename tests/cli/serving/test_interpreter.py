"""Demands of a server on its interpreter: the cycle collector off while it starts, never at work on all objects later."""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator

import pytest

from cli.serving import interpreter
from cli.serving.interpreter import GROWTH_OBJECTS, RUNS_BETWEEN_COUNTS, STAY_SECONDS, SettingAside


@pytest.fixture
def _as_before() -> Iterator[None]:
    threshold, seconds, callbacks = gc.get_threshold(), sys.getswitchinterval(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    gc.unfreeze()
    gc.enable()
    sys.setswitchinterval(seconds)


async def _settled() -> None:
    interpreter.settle()


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.mark.usefixtures("_as_before")
def test_the_cycle_collector_is_off_until_the_server_is_ready_and_on_then() -> None:
    interpreter.off_while_starting()
    assert not gc.isenabled()
    asyncio.run(_settled())
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] == interpreter.YOUNG_OBJECTS


@pytest.mark.usefixtures("_as_before")
def test_a_thread_that_waits_for_the_interpreter_asks_for_it_ten_times_sooner_than_by_default() -> None:
    asyncio.run(_settled())
    assert sys.getswitchinterval() == pytest.approx(interpreter.SWITCH_SECONDS)


@pytest.mark.usefixtures("_as_before")
def test_objects_that_outlive_two_collections_are_not_looked_at_again() -> None:
    asyncio.run(_settled())
    before = gc.get_freeze_count()
    seen_by_a_run = (interpreter.YOUNG_RUNS + 2) * interpreter.YOUNG_OBJECTS
    kept = [[number] for number in range(2 * seen_by_a_run)]
    assert gc.get_freeze_count() > before + seen_by_a_run // 2
    assert len(gc.get_objects()) < len(kept), "what is set aside is not among them"


@pytest.mark.usefixtures("_as_before")
def test_garbage_that_is_young_is_found_at_once() -> None:
    asyncio.run(_settled())
    for _ in range(2 * interpreter.YOUNG_OBJECTS):
        Cycle()
    left = sum(isinstance(each, Cycle) for each in gc.get_objects())
    assert left <= interpreter.YOUNG_OBJECTS


class FakeCollector:
    """Counts of objects: new ones, those that are set aside, and which of these are garbage."""

    def __init__(self) -> None:
        self.new = self.aside = self.garbage_aside = self.looked_at = self.counts = 0

    def collect(self) -> int:
        self.looked_at = self.new
        found, self.garbage_aside = self.garbage_aside, 0
        self.new -= found
        return found

    def freeze(self) -> None:
        self.aside, self.new = self.aside + self.new, 0

    def unfreeze(self) -> None:
        self.aside, self.new = 0, self.new + self.aside

    def get_freeze_count(self) -> int:
        self.counts += 1
        return self.aside


def aside_with(
    objects: int, still_there: Callable[[], int] | None = None
) -> tuple[FakeCollector, SettingAside, list[tuple[float, Callable[[], None]]]]:
    collector, asked = FakeCollector(), list[tuple[float, Callable[[], None]]]()
    aside = SettingAside(collector, lambda seconds, call: asked.append((seconds, call)), still_there)
    collector.new = objects
    aside.look_at_all()
    return collector, aside, asked


def grow(collector: FakeCollector, aside: SettingAside, objects: int) -> None:
    for _ in range(RUNS_BETWEEN_COUNTS):
        collector.new += objects // RUNS_BETWEEN_COUNTS
        for phase in ("start", "stop"):
            aside(phase, {"generation": 1})


def test_garbage_that_was_set_aside_is_found_when_there_is_half_as_much_again() -> None:
    collector, aside, asked = aside_with(2_000_000)
    grow(collector, aside, 400_000)
    assert asked == []
    grow(collector, aside, 200_000)
    assert asked == [(0.0, aside.look_at_all)]
    collector.garbage_aside = 500_000
    asked.pop()[1]()
    assert (collector.looked_at, collector.aside) == (2_600_000, 2_100_000)
    grow(collector, aside, 400_000)
    assert asked == [], "counted from what was left"


def test_little_growth_is_no_reason_to_look_at_all_however_small_the_process() -> None:
    collector, aside, asked = aside_with(1000)
    grow(collector, aside, GROWTH_OBJECTS // 2)
    assert asked == []
    grow(collector, aside, 1000)
    assert asked == [(0.0, aside.look_at_all)]


def test_growth_without_an_end_of_anything_is_no_garbage_and_is_not_even_counted() -> None:
    """Topics are loaded."""
    there = [0]
    collector, aside, asked = aside_with(200_000, lambda: there[0])
    counts = collector.counts
    grow(collector, aside, 1_000_000)
    there[0] = 2_000
    grow(collector, aside, 1_000_000)
    assert (asked, collector.counts) == ([], counts)


def test_ended_things_that_stay_for_a_minute_lead_to_a_look_at_all() -> None:
    there = [0]
    collector, aside, asked = aside_with(200_000, lambda: there[0])
    there[0] = 2_500
    grow(collector, aside, 1_000_000)
    ((seconds, look),) = asked
    assert seconds == STAY_SECONDS
    collector.garbage_aside = 500_000
    look()
    assert collector.aside == 700_000
    asked.clear()
    there[0] = 5_000
    grow(collector, aside, 1_000_000)
    assert asked == [], "counted from those that a look has left"


def test_ended_things_that_leave_memory_by_themselves_are_not_even_counted_however_many_live() -> None:
    """A topic with 30,000 subscriptions is deleted."""
    there = [0]
    collector, aside, asked = aside_with(200_000, lambda: there[0])
    counts = collector.counts
    for _ in range(3):
        there[0] = 30_000
        grow(collector, aside, 1_000_000)
        there[0] = 0
        while asked:
            asked.pop()[1]()
    assert (collector.counts, collector.looked_at) == (counts, 200_000)


def test_ended_things_that_leave_memory_make_room_for_others_that_stay() -> None:
    there = [3_000]
    collector, aside, asked = aside_with(200_000, lambda: there[0])
    there[0] = 0
    grow(collector, aside, 1_000_000)
    assert asked == []
    there[0] = 2_500
    grow(collector, aside, 1_000_000)
    assert len(asked) == 1


def test_ended_things_that_stay_without_growth_are_counted_once() -> None:
    there = [0]
    collector, aside, asked = aside_with(200_000, lambda: there[0])
    counts = collector.counts
    there[0] = 3_000
    grow(collector, aside, 1000)
    asked.pop()[1]()
    grow(collector, aside, 1000)
    assert (asked, collector.counts) == ([], counts + 1)


def test_the_youngest_are_not_set_aside() -> None:
    collector, aside, _ = aside_with(1000)
    collector.new = 10
    aside("stop", {"generation": 0})
    aside("start", {"generation": 1})
    assert (collector.new, collector.aside) == (10, 1000)
