"""Listeners to confirmed runs: called once a turn, and a lone taker may take a lone run before it is kept for readers."""

import asyncio
from array import array
from collections.abc import Callable

from bookkeeper.write.parts import NOT_TAKEN, Part
from managed_ledger.append.listeners import ConfirmedListeners, New, RefusedListener, joined
from ports.loop.turn import turn_of
from tests.simulation.worlds import World, run
from wire.run import EntryRun, batch_of


def a_run(entry_id: int) -> EntryRun:
    return EntryRun(1, entry_id, b"x", array("I", (0, 1)), 0)


def a_part(ledger_id: int, entry_id: int) -> Part:
    part = Part(batch_of([b"%d" % entry_id]), 0, 1, NOT_TAKEN, None, 0.0)
    part.ledger_id, part.first_entry_id, part.last_entry_id = ledger_id, entry_id, entry_id
    return part


class Site:
    """Listeners of one log, and notes of all that they are told. `takes`: what the taker answers."""

    def __init__(self, takes: int = 0) -> None:
        self.kept: list[int] = []
        self.taken: list[int] = []
        self.calls: list[str] = []
        self.takes = takes
        self.listeners = ConfirmedListeners(
            lambda kept: self.kept.append(kept.first_entry_id), lambda new, count: self.taken.append(count)
        )

    def listener(self, name: str) -> Callable[[], None]:
        return lambda: self.calls.append(name)

    def taker(self, new: New, keep: Callable[[], None]) -> int:
        self.calls.append(f"taker of {new.first_entry_id}")
        return self.takes


def test_listeners_are_called_in_their_order_once_a_turn_however_many_runs_came() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        site.listeners.add(site.listener("one"))
        site.listeners.add(site.listener("two"))
        with turn_of(world.loop):
            for entry_id in (5, 6, 7):
                site.listeners.confirmed(a_run(entry_id))
            assert site.calls == []
        assert (site.calls, site.kept) == (["one", "two"], [5, 6, 7])

    run(scenario)


def test_a_lone_taker_gets_a_lone_run_which_is_not_kept_then() -> None:
    async def scenario(world: World) -> None:
        site = Site(takes=3)
        site.listeners.add(site.listener("one"), site.taker)
        with turn_of(world.loop):
            site.listeners.confirmed(a_run(5))
        assert (site.calls, site.kept, site.taken) == (["taker of 5"], [], [3])

    run(scenario)


def test_a_taker_is_not_asked_beside_another_listener_or_for_more_than_one_run() -> None:
    async def scenario(world: World) -> None:
        for runs, others in ((1, 1), (2, 0)):
            site = Site(takes=3)
            site.listeners.add(site.listener("one"), site.taker)
            for _ in range(others):
                site.listeners.add(site.listener("two"))
            with turn_of(world.loop):
                for entry_id in range(runs):
                    site.listeners.confirmed(a_run(entry_id))
            assert site.calls == ["one", "two"][: 1 + others]
            assert (site.kept, site.taken) == (list(range(runs)), [])

    run(scenario)


def test_a_listener_that_ended_hears_nothing_and_may_end_twice() -> None:
    async def scenario(world: World) -> None:
        site = Site()
        end = site.listeners.add(site.listener("one"))
        site.listeners.confirmed(a_run(5))
        end()
        end()
        await asyncio.sleep(0)
        assert (site.calls, site.kept) == ([], [5])

    run(scenario)


def test_another_change_keeps_the_run_before_it_and_calls_the_listeners_once() -> None:
    async def scenario(world: World) -> None:
        site = Site(takes=3)
        site.listeners.add(site.listener("one"), site.taker)
        with turn_of(world.loop):
            site.listeners.confirmed(a_run(5))
            site.listeners.moved()
            assert site.kept == [5]
        assert (site.calls, site.taken) == (["one"], [])

    run(scenario)


def test_parts_that_follow_one_another_are_joined_and_others_are_not() -> None:
    news: list[New] = [a_part(1, 0), a_part(1, 1), a_part(1, 3), a_part(2, 4), a_run(9), a_part(2, 5)]
    assert [(each.ledger_id, each.first_entry_id, each.count) for each in joined(news)] == [
        (1, 0, 2),
        (1, 3, 1),
        (2, 4, 1),
        (1, 9, 1),
        (2, 5, 1),
    ]


def test_refused_appends_need_a_listener_that_goes_on() -> None:
    refused, calls = RefusedListener(None), list[bool]()
    assert not refused.tell()
    refused.listener = lambda: calls.append(True)
    assert refused.tell()
    assert calls == [True]
