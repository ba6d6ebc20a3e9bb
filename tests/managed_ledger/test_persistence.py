"""Persistence of one log: quorums of its ledgers and saves of its cursors, instead of the settings'."""

from bookkeeper.ledgers import DEFAULT_QUORUMS, Quorums
from managed_ledger.contract import EARLIEST
from managed_ledger.cursor.throttle import MarkRate, MarkThrottle

from .ledger_world import World, append_each, run


def test_the_next_ledgers_have_the_quorums_and_cursors_the_settings() -> None:
    async def scenario() -> None:
        world = World()
        log = await world.open()
        asked = world.ledger_store.quorums_asked
        log.set_persistence(Quorums(3, 2, 1), 0.0)
        cursor = await log.open_cursor("c", EARLIEST)
        before = len(asked)
        await append_each(log, 30)
        assert set(asked[before:]) == {Quorums(3, 2, 1)}
        await cursor.flush()
        assert len(asked) > before + 1
        log.set_persistence(DEFAULT_QUORUMS, None)
        before = len(asked)
        await append_each(log, 30)
        assert set(asked[before:]) == {DEFAULT_QUORUMS}
        await world.ledgers.close()

    run(scenario())


def test_a_rate_that_changes_holds_from_the_next_write_on() -> None:
    rate = MarkRate(1.0)
    throttle = MarkThrottle(rate, 60.0)
    assert throttle.changed(1, 10.0) == 10.0
    throttle.write_started(10.0)
    throttle.write_ended(1)
    assert throttle.changed(2, 10.1) == 11.0
    rate.limit(0.0)
    throttle.write_started(11.0)
    throttle.write_ended(2)
    assert throttle.changed(3, 11.1) == 11.1


def test_while_a_write_is_planned_no_other_one_is() -> None:
    throttle = MarkThrottle(MarkRate(1.0), 60.0)
    assert throttle.changed(1, 5.0) == 5.0
    assert throttle.changed(2, 5.1) is None
    throttle.write_started(5.2)
    assert throttle.changed(3, 5.3) is None
    throttle.write_ended(2)
    assert throttle.changed(3, 5.4) == 6.2
