"""Promises of the appender: the order of answers, which append is refused when, the end of a ledger, and broken writers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from managed_ledger.append import append_driver
from managed_ledger.append.append_driver import FRUITLESS_LEDGERS_MAX
from managed_ledger.append.rollover import RolloverLimits
from managed_ledger.errors import AppendRefused, ManagedLedgerError, ManagedLedgerFenced

from ..fake_ledgers import batch
from ..ledger_world import run
from .append_world import ENDLESS, AppendWorld

LONG = 20.0
"""Seconds in which everything that was begun ends: each call of the fakes takes one second."""

Scenario = Callable[[AppendWorld], Coroutine[Any, Any, None]]


def on_world(scenario: Scenario, limits: RolloverLimits = ENDLESS, *, goes_on: bool = True) -> None:
    async def with_world() -> None:
        await scenario(AppendWorld(limits, goes_on=goes_on))

    run(with_world())


async def opened(world: AppendWorld) -> None:
    """Have an open ledger with one entry, and forget what was told until then."""
    await world.append(b"first")
    await asyncio.sleep(0)
    world.told.clear()


# Order


def test_runs_and_parts_are_answered_in_the_order_in_which_they_came_with_consecutive_ids() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.append(b"a", b"-")
        assert world.part(b"b", b"-", b"-")
        assert world.part(b"c")
        world.append(b"d")
        await asyncio.sleep(LONG)
        assert world.answers == [(b"a", 1, 1), (b"b", 1, 3), (b"c", 1, 6), (b"d", 1, 7)]
        assert world.content(1) == [b"first", b"a", b"-", b"b", b"-", b"-", b"c", b"d"]
        assert world.sequence.last_confirmed == (1, 7)

    on_world(scenario)


def test_each_stored_run_is_told_before_it_is_answered() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.append(b"a")
        world.part(b"b")
        await asyncio.sleep(LONG)
        for text in (b"a", b"b"):
            answer = next(each for each in world.answers if each[0] == text)
            for kind in ("stored", "confirmed"):
                assert world.told.index((kind, text)) < world.told.index(answer)

    on_world(scenario)


def test_appends_wait_for_the_first_ledger_and_no_part_overtakes_them() -> None:
    async def scenario(world: AppendWorld) -> None:
        for text in (b"a", b"b"):
            world.append(text)
            await asyncio.sleep(0)
            assert not world.part(b"overtakes")
        assert world.content_or_nothing() == []
        await asyncio.sleep(LONG)
        assert world.answers == [(b"a", 1, 0), (b"b", 1, 1)]
        assert world.content(1) == [b"a", b"b"]
        assert world.told.count("new ledger") == 1
        assert world.part(b"c")

    on_world(scenario)


def test_a_ledger_is_made_for_the_first_append_and_not_before() -> None:
    async def scenario(world: AppendWorld) -> None:
        await asyncio.sleep(LONG)
        assert (world.shared.creates, world.appender.writer_of(1)) == (0, None)
        await world.append(b"a")
        assert world.shared.creates == 1
        assert world.appender.writer_of(1) is not None

    on_world(scenario)


def test_an_append_that_its_caller_gave_up_is_stored_and_holds_nobody_back() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.appender.append(batch(b"left")).cancel()
        world.append(b"stays")
        await asyncio.sleep(LONG)
        assert world.answers == [(b"stays", 1, 2)]
        assert world.content(1) == [b"first", b"left", b"stays"]

    on_world(scenario)


# Bound of what waits


@pytest.mark.parametrize("is_beyond", [False, True])
def test_more_bytes_than_may_wait_for_a_ledger_fail_all_of_them_in_order(
    monkeypatch: pytest.MonkeyPatch, is_beyond: bool
) -> None:
    size = len(batch(b"x").buffer)
    monkeypatch.setattr(append_driver, "WAITING_BYTES_MAX", 3 * size - is_beyond)

    async def scenario(world: AppendWorld) -> None:
        for text in (b"a", b"b", b"c"):
            world.append(text)
        await asyncio.sleep(0)
        if is_beyond:
            world.append(b"d")
            await asyncio.sleep(0)
            assert world.answers == [(text, ManagedLedgerError) for text in (b"a", b"b", b"c", b"d")]
        await asyncio.sleep(LONG)
        assert world.content_or_nothing() == ([] if is_beyond else [b"a", b"b", b"c"])
        assert world.appender._waiting_bytes == 0

    on_world(scenario)


def test_bytes_that_a_ledger_has_taken_count_no_more_among_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_driver, "WAITING_BYTES_MAX", 3 * len(batch(b"x").buffer))

    async def scenario(world: AppendWorld) -> None:
        for round_ in range(5):
            await asyncio.gather(*(world.append(b"%d" % round_) for _ in range(2)))
            await asyncio.sleep(LONG)
            assert world.appender._waiting_bytes == 0
        assert [entry for ledger in range(1, 6) for entry in world.content(ledger)] == [b"%d" % (at // 2) for at in range(10)]

    on_world(scenario, RolloverLimits(2, 1 << 30, 0.0, None))


# End of a ledger


@pytest.mark.parametrize(
    ("limits", "per_ledger"), [(RolloverLimits(3, 1 << 30, 0.0, None), 3), (RolloverLimits(1000, 2, 0.0, None), 2)]
)
def test_a_full_ledger_is_closed_and_the_next_append_begins_another(limits: RolloverLimits, per_ledger: int) -> None:
    async def scenario(world: AppendWorld) -> None:
        for number in range(7):
            world.append(b"%d" % number)
        await asyncio.sleep(LONG)
        assert [answer[1:] for answer in world.answers] == [(1 + at // per_ledger, at % per_ledger) for at in range(7)]
        assert [world.ledger(1).last_entry_id, world.ledger(2).last_entry_id] == [per_ledger - 1] * 2
        world.sequence.check_invariants()

    on_world(scenario, limits)


def test_a_full_ledger_takes_no_part_and_is_closed_by_its_last_answer() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        assert world.part(b"a")
        assert not world.part(b"b"), "one entry is stored, and one is under way"
        await asyncio.sleep(LONG)
        assert (world.open_ledger(), world.ledger(1).last_entry_id, world.shared.creates) == (None, 1, 1)

    on_world(scenario, RolloverLimits(2, 1 << 30, 0.0, None))


def test_a_full_ledger_takes_more_until_it_is_as_old_as_it_must_be() -> None:
    async def scenario(world: AppendWorld) -> None:
        for number in range(5):
            await world.append(b"%d" % number)
        await asyncio.sleep(100)
        await world.append(b"late")
        assert [answer[1] for answer in world.answers] == [1, 1, 1, 1, 1, 2]

    on_world(scenario, RolloverLimits(2, 1 << 30, 60.0, None))


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_old_ledger_is_closed_though_nobody_appends_unless_it_is_empty(is_empty: bool) -> None:
    async def scenario(world: AppendWorld) -> None:
        if is_empty:
            await world.appender._begin()
        else:
            await opened(world)
        await asyncio.sleep(59)
        assert world.open_ledger() == 1
        await asyncio.sleep(LONG)
        assert world.open_ledger() == (1 if is_empty else None)
        assert world.shared.creates == 1

    on_world(scenario, RolloverLimits(1000, 1 << 30, 0.0, 60.0))


def test_a_ledger_to_which_nothing_was_added_is_closed_after_the_idle_time_and_before_twice_of_it() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        for _ in range(10):
            await asyncio.sleep(30)
            await world.append(b"busy")
        assert world.open_ledger() == 1
        await asyncio.sleep(59)
        assert world.open_ledger() == 1
        await asyncio.sleep(63)
        assert (world.open_ledger(), world.shared.creates) == (None, 1), "the next one is made for the next append"
        await world.append(b"later")
        assert world.open_ledger() == 2

    on_world(scenario, RolloverLimits(1000, 1 << 30, 0.0, None, 60.0))


def test_a_ledger_that_ends_is_read_through_its_writer_until_it_is_closed() -> None:
    async def scenario(world: AppendWorld) -> None:
        await world.append(b"a")
        world.append(b"b")
        await asyncio.sleep(0.5)
        assert world.appender.writer_of(1) is not None, "opening it would fence it"
        assert world.appender.writer_of(2) is None
        await asyncio.sleep(LONG)
        assert world.appender.writer_of(1) is None

    on_world(scenario, RolloverLimits(1, 1 << 30, 0.0, None))


# A writer that breaks


@pytest.mark.parametrize(("torn", "lost"), [(False, False), (False, True), (True, False)])
def test_a_broken_ledger_keeps_what_it_has_stored_and_the_rest_goes_to_the_next_in_order(torn: bool, lost: bool) -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.store.fail_appends, world.store.lose_answers, world.store.torn_entries = 1, lost, int(torn)
        assert world.part(b"a", b"-")
        world.append(b"b")
        world.append(b"c")
        await asyncio.sleep(1.5)
        assert not world.part(b"no"), "nothing is given to a broken ledger"
        world.append(b"d")
        await asyncio.sleep(LONG)
        if torn:
            assert world.answers == [(text, ManagedLedgerError) for text in (b"a", b"b", b"c", b"d")]
            return
        assert world.answers == [
            (b"a", *((1, 1) if lost else (2, 0))),
            *((text, 2, at) for at, text in enumerate((b"b", b"c", b"d"), 0 if lost else 2)),
        ]
        assert [world.content(1), world.content(2)] == (
            [[b"first", b"a", b"-"], [b"b", b"c", b"d"]] if lost else [[b"first"], [b"a", b"-", b"b", b"c", b"d"]]
        )
        assert world.ledger(1).is_fenced, "it was recovered as a new owner would do"
        assert (world.appender._waiting_bytes, world.appender._sent) == (0, None)

    on_world(scenario)


def test_a_broken_ledger_that_stored_nothing_is_to_be_deleted() -> None:
    async def scenario(world: AppendWorld) -> None:
        world.store.fail_appends = 1
        await world.append(b"a")
        await asyncio.sleep(LONG)
        assert (world.shared.deleted, [span.ledger_id for span in world.sequence]) == ([1], [2])

    on_world(scenario)


def test_a_broken_ledger_that_cannot_be_recovered_fails_all_and_nothing_is_appended_elsewhere() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.store.fail_appends = world.store.fail_opens = 1
        assert world.part(b"a")
        world.append(b"b")
        await asyncio.sleep(LONG)
        world.append(b"c")
        await asyncio.sleep(0)
        assert world.answers == [(text, ManagedLedgerError) for text in (b"a", b"b", b"c")]
        assert (world.shared.creates, world.content(1)) == (1, [b"first"])

    on_world(scenario)


def test_a_fenced_ledger_fails_all_at_once_in_order_and_no_other_ledger_is_begun() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.ledger(1).is_fenced = True
        assert world.part(b"a")
        for text in (b"b", b"c"):
            world.append(text)
        await asyncio.sleep(1.5)
        assert len(world.answers) == 3, "closing it would take another second"
        world.append(b"later")
        assert not world.part(b"no")
        await asyncio.sleep(LONG)
        assert world.answers == [(text, ManagedLedgerFenced) for text in (b"a", b"b", b"c", b"later")]
        assert (world.shared.creates, world.content(1)) == (1, [b"first"])

    on_world(scenario)


# Refusals


def test_appends_that_several_ledgers_did_not_take_are_refused_in_order_and_later_ones_are_stored() -> None:
    async def scenario(world: AppendWorld) -> None:
        world.store.fail_appends = FRUITLESS_LEDGERS_MAX
        for text in (b"a", b"b"):
            world.append(text)
        await asyncio.sleep(LONG)
        assert world.answers == [(b"a", AppendRefused), (b"b", AppendRefused)]
        assert world.told.index("refused") < world.told.index(world.answers[0])
        assert (world.shared.creates, world.appender._waiting_bytes) == (FRUITLESS_LEDGERS_MAX, 0)
        await world.append(b"c")
        assert world.content(FRUITLESS_LEDGERS_MAX + 1) == [b"c"]

    on_world(scenario)


def test_a_confirmed_entry_ends_the_row_of_ledgers_that_took_nothing() -> None:
    async def scenario(world: AppendWorld) -> None:
        for number in range(FRUITLESS_LEDGERS_MAX + 2):
            world.store.fail_appends = 1
            await world.append(b"%d" % number)
        assert [type(each[1]) for each in world.answers] == [int] * (FRUITLESS_LEDGERS_MAX + 2)
        assert "refused" not in world.told

    on_world(scenario)


def test_refused_appends_fail_a_managed_ledger_that_cannot_go_on_after_them() -> None:
    async def scenario(world: AppendWorld) -> None:
        world.store.fail_creates = 1
        world.append(b"a")
        await asyncio.sleep(LONG)
        world.append(b"b")
        await asyncio.sleep(LONG)
        assert world.answers == [(b"a", ManagedLedgerError), (b"b", ManagedLedgerError)]
        assert world.shared.creates == 0

    on_world(scenario, goes_on=False)


def test_an_error_that_nobody_foresaw_fails_what_waits() -> None:
    async def scenario(world: AppendWorld) -> None:
        world.store.unforeseen = RuntimeError("odd")
        with pytest.raises(ManagedLedgerError, match="odd"):
            await world.append(b"a")

    on_world(scenario)


# Closing


def test_earlier_appends_are_stored_after_later_ones_are_refused_and_closing_waits_for_them() -> None:
    async def scenario(world: AppendWorld) -> None:
        world.append(b"a")
        world.append(b"b")
        world.appender.refuse(ManagedLedgerError("closing"))
        world.append(b"c")
        await world.appender.close()
        assert sorted(world.answers) == [(b"a", 1, 0), (b"b", 1, 1), (b"c", ManagedLedgerError)]
        assert (world.ledger(1).last_entry_id, world.open_ledger()) == (1, None)

    on_world(scenario, RolloverLimits(1, 1 << 30, 0.0, None))


def test_closing_raises_what_made_the_appends_fail() -> None:
    async def scenario(world: AppendWorld) -> None:
        await opened(world)
        world.ledger(1).is_fenced = True
        world.append(b"a")
        with pytest.raises(ManagedLedgerFenced):
            await world.appender.close()
        assert world.answers == [(b"a", ManagedLedgerFenced)]

    on_world(scenario)
