"""Auditor and replication workers together, in virtual time: bookies come and go, sessions are lost, nothing stays behind."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.repair.auditor.election import elected_auditor
from bookkeeper.repair.settings import RepairSettings
from bookkeeper.repair.underreplication.tree import AUDITOR_ELECTION, encode_vote
from metadata.memory import MemoryStore
from metadata.sessions import SessionEvent, SessionListener
from metadata.store import Operation, OutcomeUnknown, Put, Stat, StoreUnavailable
from tests.bookkeeper.fake_bookies import FixedClock
from tests.bookkeeper.repair.repair_world import RepairWorld
from tests.simulation.worlds import World, run

QUICK = RepairSettings(rereplication_entry_batch_size=4)


def in_virtual_time(scenario: Callable[[], Coroutine[Any, Any, None]], seed: int = 0) -> None:
    async def bounded(_: World) -> None:
        async with asyncio.timeout(10_000_000):
            await scenario()

    run(bounded, seed)


class Flaky(MemoryStore):
    """A session whose store fails now and then, before or after a write; and that can be lost."""

    def __init__(self, world: RepairWorld, seed: int = 0, failing: float = 0.0) -> None:
        super().__init__(FixedClock(), world.shared, alone=False)
        self._world, self._random, self.failing = world, Random(seed), failing
        self._listeners: list[SessionListener] = []

    async def commit(self, operations: Any) -> list[Stat | None]:
        chance = self._random.random()
        if chance < self.failing / 2:
            raise StoreUnavailable("chance")
        stats = await super().commit(operations)
        if chance > 1 - self.failing / 4:
            self.lose()
        if chance < self.failing and not all(_shows(operation) for operation in operations):
            raise OutcomeUnknown("chance")
        return stats

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def lose(self) -> None:
        """Lose the session: ephemeral nodes go, and a new session follows, as in the store on ZooKeeper."""
        self.tell(SessionEvent.SESSION_LOST)
        self._shared.end_session(self._session, 0)
        self._session = self._tree.open_session()
        self.tell(SessionEvent.SESSION_REESTABLISHED)

    def doubt(self) -> None:
        """ZooKeeper was silent for too long, as when it has no quorum, and has kept the session: the nodes are still there."""
        self.tell(SessionEvent.SESSION_LOST)
        self.tell(SessionEvent.SESSION_REESTABLISHED)

    def tell(self, event: SessionEvent) -> None:
        for listener in list(self._listeners):
            listener(event)


def _shows(operation: Operation) -> bool:
    """Whether the present state shows that it was done."""
    return not isinstance(operation, Put) or (operation.ephemeral and not operation.sequential)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # virtual time
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_ledgers_of_a_lost_bookie_get_their_copies_back_and_nothing_is_left_behind(workers: int) -> None:
    async def scenario() -> None:
        world = RepairWorld(6, QUICK)
        await world.up()
        quorums = [(2, 2, 2), (3, 3, 2), (4, 2, 2), (3, 3, 3)]
        ids = [await world.closed_ledger(quorums[number % 4], number) for number in range(20)]
        for number in range(workers):
            await world.auto_recovery(f"worker{number}")
        await world.down("b0:1")
        assert any(world.lacks(ledger_id) for ledger_id in ids)
        await world.until_whole(*ids)
        await until(lambda: not world.locks())
        assert world.shared.tree.children("/ledgers/underreplication/ledgers") == []
        await world.down("b1:1")
        await world.until_whole(*ids)
        await world.close()
        assert world.shared.tree.children(AUDITOR_ELECTION) == []

    in_virtual_time(scenario)


def test_one_bookie_may_be_away_for_the_delay_and_a_read_only_one_is_not_lost() -> None:
    async def scenario() -> None:
        world = RepairWorld(5, RepairSettings(lost_bookie_recovery_delay=60))
        await world.up()
        ids = [await world.closed_ledger((3, 3, 2), 5) for _ in range(8)]
        before = [world.metadata(ledger_id) for ledger_id in ids]
        await world.auto_recovery()
        await world.down("b0:1")
        await asyncio.sleep(50)
        await world.up("b0:1")
        await asyncio.sleep(500)
        await world.up("b0:1", read_only=True)
        await asyncio.sleep(500)
        assert [world.metadata(ledger_id) for ledger_id in ids] == before
        assert world.marked() == []
        await world.down("b0:1")
        await asyncio.sleep(59)
        assert world.marked() == []
        await asyncio.sleep(20)
        await world.until_whole(*ids)
        assert not any("b0:1" in segment.bookies for each in ids for segment in world.metadata(each).segments)
        await world.close()

    in_virtual_time(scenario)


def test_two_lost_bookies_are_not_waited_for_and_a_delay_set_again_is_an_audit_now() -> None:
    async def scenario() -> None:
        world = RepairWorld(7, RepairSettings(lost_bookie_recovery_delay=10_000))
        await world.up()
        ids = [await world.closed_ledger((3, 3, 2), 5) for _ in range(10)]
        await world.auto_recovery()
        await asyncio.sleep(5)
        began = asyncio.get_running_loop().time()
        await world.down("b0:1", "b1:1")
        await asyncio.sleep(5)
        await world.until_whole(*ids)
        await world.down("b2:1")
        await asyncio.sleep(5)
        assert world.marked() == []
        await world.repair_client().marks.set_lost_bookie_recovery_delay(10_000)
        await asyncio.sleep(5)
        await world.until_whole(*ids)
        assert asyncio.get_running_loop().time() - began < 1000
        await world.close()

    in_virtual_time(scenario)


def test_nothing_is_marked_or_repaired_while_autorecovery_is_disabled_and_all_of_it_afterwards() -> None:
    async def scenario() -> None:
        world = RepairWorld(5, QUICK)
        await world.up()
        ids = [await world.closed_ledger((3, 3, 2), 5) for _ in range(8)]
        await world.auto_recovery()
        marks = world.repair_client().marks
        await marks.disable()
        await marks.mark_missing(ids[0], ["b1:1"])
        await world.down("b0:1")
        await asyncio.sleep(1000)
        assert world.marked() == ["urL0000000000"]
        assert any(world.lacks(ledger_id) for ledger_id in ids)
        await marks.enable()
        await asyncio.sleep(5)
        await world.until_whole(*ids)
        await world.close()

    in_virtual_time(scenario)


def test_the_writer_of_an_open_ledger_has_its_grace_and_then_is_stopped() -> None:
    async def scenario() -> None:
        world = RepairWorld(6, RepairSettings(open_ledger_rereplication_grace_period=30_000))
        await world.up()
        writing = await world.open_ledger((3, 3, 2), 5)
        idle = await world.open_ledger((3, 3, 2), 5)
        shared = set(world.metadata(writing.ledger_id).segments[0].bookies) & set(
            world.metadata(idle.ledger_id).segments[0].bookies
        )
        lost = sorted(shared)[0]
        await world.auto_recovery()
        await asyncio.sleep(5)
        await world.down(lost)
        await asyncio.sleep(10)
        await world.append(writing, 5)
        await asyncio.sleep(10)
        assert world.metadata(idle.ledger_id).state == LedgerState.OPEN
        await asyncio.sleep(60)
        assert world.metadata(idle.ledger_id).state == LedgerState.CLOSED
        assert world.metadata(writing.ledger_id).state == LedgerState.OPEN
        await world.append(writing, 5)
        await writing.close()
        await world.until_whole(writing.ledger_id, idle.ledger_id)
        await world.close()

    in_virtual_time(scenario)


def test_a_session_that_was_held_to_be_lost_and_lives_on_leaves_no_lock_behind() -> None:
    """Found by schedule 2 of benchmarks/cluster/faults.py: ledgers stayed marked and locked as long as the process lived."""

    async def scenario() -> None:
        world = RepairWorld(6, RepairSettings(open_ledger_rereplication_grace_period=30_000))
        await world.up()
        idle = await world.open_ledger((3, 3, 2), 5)
        session = Flaky(world)
        await world.auto_recovery("host:1", session, session)
        await asyncio.sleep(5)
        await world.down(world.metadata(idle.ledger_id).segments[0].bookies[0])
        await until(lambda: bool(world.locks()))
        session.doubt()
        await asyncio.sleep(60)
        assert world.metadata(idle.ledger_id).state == LedgerState.CLOSED
        await world.until_whole(idle.ledger_id)
        await until(lambda: not world.locks())
        await world.close()

    in_virtual_time(scenario)


def test_a_ledger_that_cannot_be_repaired_keeps_the_others_from_nothing_and_is_repaired_when_it_can_be() -> None:
    async def scenario() -> None:
        world = RepairWorld(6, QUICK)
        await world.up()
        bad = await world.closed_ledger((2, 2, 2), 5)
        ids = [await world.closed_ledger((3, 3, 2), 5) for _ in range(8)]
        one, two = world.metadata(bad).segments[0].bookies
        recovery = await world.auto_recovery()
        await asyncio.sleep(5)
        await world.down(one)
        world.bookies[two].ledgers[bad].entries.clear()
        await asyncio.sleep(2000)
        assert world.marked() == [f"urL{bad:010d}"]
        for ledger_id in ids:
            assert world.lacks(ledger_id) == []
        assert recovery.counters.replication_worker_num_defer_ledger_lock_release_of_failed_ledger > 3
        assert recovery.counters.replication_worker_num_defer_ledger_lock_release_of_failed_ledger < 30
        await world.up(one)
        await world.until_whole(bad, *ids)
        await world.close()

    in_virtual_time(scenario)


def test_a_deleted_ledger_is_marked_no_more() -> None:
    async def scenario() -> None:
        world = RepairWorld(3, QUICK)
        await world.up()
        ledger_id = await world.closed_ledger((2, 2, 2), 5)
        session = world.session()
        await world.repair_client().marks.mark_missing(ledger_id, ["b0:1"])
        await world.repair_client().marks.mark_missing(4711, ["b0:1"])
        await session.delete(ledger_path(ledger_id))
        await world.auto_recovery()
        await until(lambda: not world.marked() and not world.locks())
        await world.close()

    in_virtual_time(scenario)


def test_the_check_of_all_ledgers_finds_what_no_lost_bookie_tells_of() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, RepairSettings(auditor_periodic_check_interval=1000))
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 10)
        await world.auto_recovery()
        await asyncio.sleep(100)
        name = world.metadata(ledger_id).segments[0].bookies[1]
        world.bookies[name].lose(ledger_id, 9)
        await asyncio.sleep(100)
        assert world.lacks(ledger_id)
        await asyncio.sleep(1000)
        await world.until_whole(ledger_id)
        await world.close()

    in_virtual_time(scenario)


# Election


def test_one_is_the_auditor_and_the_next_takes_over_when_it_goes_or_loses_its_session() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, QUICK)
        await world.up()
        sessions = [Flaky(world) for _ in range(3)]
        recoveries = [await world.auto_recovery(f"host{number}:1", session, session) for number, session in enumerate(sessions)]
        await until(lambda: any(recovery.is_auditor for recovery in recoveries))
        await asyncio.sleep(1)
        for _ in range(4):
            (at,) = [at for at, recovery in enumerate(recoveries) if recovery.is_auditor]
            assert await elected_auditor(world.session()) == f"host{at}:1"
            found = world.shared.tree.get(AUDITOR_ELECTION)
            assert found is not None
            assert found.value == encode_vote(f"host{at}:1")
            sessions[at].lose()
            assert [each.partition("_")[0] for each in world.shared.tree.children(AUDITOR_ELECTION)] == ["V", "V"]
            await asyncio.sleep(1)
            assert not recoveries[at].is_auditor
        (at,) = [at for at, recovery in enumerate(recoveries) if recovery.is_auditor]
        await recoveries[at].stop()
        await asyncio.sleep(1)
        assert sum(recovery.is_auditor for recovery in recoveries) == 1
        await world.close()

    in_virtual_time(scenario)


def test_an_auditor_whose_session_is_lost_ends_before_the_store_says_anything_else() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, QUICK)
        await world.up()
        session = Flaky(world)
        recovery = await world.auto_recovery("host:1", session, session)
        await until(lambda: recovery.is_auditor)
        session.tell(SessionEvent.SESSION_LOST)
        await asyncio.sleep(1)
        assert not recovery.is_auditor
        session.tell(SessionEvent.SESSION_REESTABLISHED)
        await until(lambda: recovery.is_auditor)
        await world.close()

    in_virtual_time(scenario)


def test_a_vote_whose_making_was_not_answered_is_not_elected_for_ever() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, QUICK)
        await world.up()
        session = Flaky(world)
        lost = 1

        async def commit(operations: Any) -> list[Stat | None]:
            nonlocal lost
            stats = await MemoryStore.commit(session, operations)
            if lost and "V_" in operations[0].path:
                lost -= 1
                raise OutcomeUnknown("lost")
            return stats

        session.commit = commit  # type: ignore[method-assign]
        recovery = await world.auto_recovery("host:1", session, session)
        await until(lambda: recovery.is_auditor)
        assert len(world.shared.tree.children(AUDITOR_ELECTION)) == 1
        await world.close()

    in_virtual_time(scenario)


# Chance


@pytest.mark.parametrize("seed", range(12))
def test_all_ledgers_are_whole_in_the_end_whatever_fails_and_whoever_dies(seed: int) -> None:
    """Bookies die and come back, sessions are lost, metadata fails and forgets to answer, workers are killed in mid-repair."""

    async def scenario() -> None:
        chance = Random(seed)
        world = RepairWorld(
            7, RepairSettings(rereplication_entry_batch_size=2, lock_release_of_failed_ledger_grace_period=3200)
        )
        await world.up()
        ids = [await world.closed_ledger(chance.choice([(2, 2, 2), (3, 3, 2), (4, 3, 2)]), number) for number in range(12)]
        sessions = [Flaky(world, seed * 10 + number) for number in range(3)]
        for number, session in enumerate(sessions):
            await world.auto_recovery(f"host{number}:1", session, session)
            session.failing = 0.1
        for _ in range(12):
            name = chance.choice(sorted(world.bookies))
            await world.down(name)
            await asyncio.sleep(chance.random() * 4)
            chance.choice([Flaky.lose, Flaky.doubt])(chance.choice(sessions))
            await asyncio.sleep(chance.random() * 4)
            await world.up(name)
            if chance.random() < 0.3:
                damaged = chance.choice(ids)
                bookie = world.bookies[chance.choice(world.metadata(damaged).segments[0].bookies)]
                if not world.lacks(damaged) and damaged:
                    bookie.ledgers.pop(damaged, None)  # a short ledger may have nothing there
                    await world.repair_client().marks.mark_missing(damaged, ["somebody"])
        for session in sessions:
            session.failing = 0.0
        await world.until_whole(*ids)
        await until(lambda: not world.locks())
        world.shared.tree.check_invariants()
        await world.close()

    in_virtual_time(scenario, seed)
