"""A coordinator on its log: what is answered is durable, killed in any state it goes on, and everybody hears one end."""

import asyncio
import random

import pytest
import uvloop

from broker.admin.metrics.transactions import asked_text
from broker.errors import BrokerError, ServerError
from broker.transaction.coordinator_driver import ANSWER_SECONDS_MAX
from broker.transaction.log_driver import MAX_SEQUENCE
from broker.transaction.records import TxnStatus, TxnSubscription
from tests.broker.transaction.coordinator_world import ABORT, COMMIT, CoordinatorWorld, T, refusal
from tests.managed_ledger.ledger_world import run
from wire.transactions import TxnAction, TxnId

S = TxnSubscription(T, "s")


def test_a_transaction_is_committed_by_all_who_took_part_before_it_is_answered() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        txn_id = await coordinator.open(None, 10_000)
        assert txn_id == TxnId(0, 0)
        await coordinator.add_partitions(0, [T, T + "2"])
        await coordinator.add_subscriptions(0, [S])
        await coordinator.end(0, COMMIT)
        assert world.participants.ended == {(T, txn_id): COMMIT, (T + "2", txn_id): COMMIT, (f"{T} s", txn_id): COMMIT}
        assert (coordinator.meters.created, coordinator.meters.committed, coordinator.meters.appended) == (1, 1, 5)
        assert world.participants.marks == [-1, -1, -1]
        await coordinator.close()

    run(scenario())


def test_a_transaction_that_is_open_too_long_is_aborted_also_by_a_broker_that_was_started_since() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        await coordinator.open(None, 10_000)
        await coordinator.add_partitions(0, [T])
        await coordinator.open(None, 2_000)
        await coordinator.add_partitions(1, [T])
        await asyncio.sleep(5)
        assert world.participants.ended == {(T, TxnId(0, 1)): ABORT}
        assert coordinator.meters.timed_out == coordinator.meters.aborted == 1
        coordinator = await world.restart()
        await asyncio.sleep(4)
        assert len(world.participants.ended) == 1
        await asyncio.sleep(2)
        assert world.participants.ended[T, TxnId(0, 0)] is ABORT
        assert await refusal(coordinator.end(0, COMMIT)) is ServerError.TRANSACTION_NOT_FOUND
        await coordinator.close()

    run(scenario())


def test_a_number_is_never_given_twice_also_when_nothing_is_left_of_the_log() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        seen: list[int] = []
        for turn in range(6):
            coordinator = await world.load()
            for _ in range(15):  # ledgers of ten entries roll over
                seen.append((await coordinator.open(None, 10_000)).least)
                await coordinator.end(seen[-1], ABORT)
            world.storage.clock.ms += 700_000  # beyond retention: what is consumed is deleted
            await coordinator.log.ledger.trim()
            assert coordinator.log.ledger.entry_count <= 10
            if turn % 2:
                await coordinator.close()
            else:
                await world.kill()
            world.storage.start()
        assert len(set(seen)) == len(seen) == 90
        assert seen[30:45] == list(range(seen[30], seen[30] + 15))

    run(scenario())


def test_after_a_clean_stop_numbers_go_on_without_a_gap() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        for number in range(3):
            coordinator = await world.load()
            assert (await coordinator.open(None, 1000)).least == number
            await coordinator.close()
            assert coordinator.log.ledger.properties[MAX_SEQUENCE] == str(number)

    run(scenario())


@pytest.mark.parametrize("state", ["open", "committing", "aborting", "committed"])
def test_killed_in_each_state_the_next_one_goes_on(state: str) -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        txn_id = await coordinator.open(None, 60_000)
        await coordinator.add_partitions(0, [T])
        blocked = asyncio.Event()

        async def block(name: str) -> None:
            blocked.set()
            await asyncio.get_running_loop().create_future()

        world.participants.before = None if state == "committed" else block
        if state != "open":
            ending = asyncio.create_task(coordinator.end(0, ABORT if state == "aborting" else COMMIT))
            await (asyncio.wait([ending]) if state == "committed" else blocked.wait())
            killed = await world.restart()
            await asyncio.wait([ending])
            assert state == "committed" or isinstance(ending.exception(), BrokerError)
            coordinator = killed
        else:
            coordinator = await world.restart()
        world.participants.before = None
        if state == "open":
            assert coordinator.machine.get(0).status is TxnStatus.OPEN
            assert list(coordinator.machine.get(0).partitions) == [T]
            await coordinator.end(0, COMMIT)
        await asyncio.sleep(20)
        expected = ABORT if state == "aborting" else COMMIT
        assert world.participants.ended == {(T, txn_id): expected}
        assert coordinator.machine.active_count == 0
        await coordinator.end(0, expected)  # a client that did not hear the answer asks again
        assert await refusal(coordinator.end(0, COMMIT if state == "aborting" else ABORT)) is ServerError.TRANSACTION_NOT_FOUND
        await coordinator.close()

    run(scenario())


def test_an_unreachable_participant_is_asked_until_it_has_ended_the_transaction() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        txn_id = await coordinator.open(None, 60_000)
        await coordinator.add_partitions(0, [T])
        refusals = [ServerError.SERVICE_NOT_READY, ServerError.NOT_ALLOWED, ServerError.UNKNOWN]

        async def refuse(name: str) -> None:
            if refusals:
                raise BrokerError(refusals.pop(), "not now")
            if world.participants.asked[T, txn_id] == 4:
                await asyncio.sleep(1000)

        world.participants.before = refuse
        await coordinator.end(0, COMMIT)
        assert world.participants.asked[T, txn_id] == 5, "three refusals, one that never answered"
        await coordinator.close()

    run(scenario())


@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_a_participant_that_ended_the_transaction_otherwise_is_named_and_blocks_nothing(action: TxnAction) -> None:
    """Any peer that may send END_TXN_ON_PARTITION can cause this. The coordinator asked on for ever, and END_TXN had no
    answer."""

    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        txn_id = await coordinator.open(None, 60_000)
        await coordinator.add_partitions(0, [T, T + "2"])
        await coordinator.add_subscriptions(0, [S])

        async def refuse(name: str) -> None:
            if name in (T, f"{T} s"):
                raise BrokerError(ServerError.TRANSACTION_CONFLICT, "it has ended")

        world.participants.before = refuse
        for _ in range(2):
            with pytest.raises(BrokerError, match=f"otherwise at {T}, {T} s") as told:
                await coordinator.end(0, action)
            assert told.value.code is ServerError.TRANSACTION_CONFLICT
        assert world.participants.ended == {(T + "2", txn_id): action}
        assert set(world.participants.asked.values()) == {1}
        assert coordinator.machine.active_count == len(coordinator._tasks) == len(coordinator._endings_of) == 0
        assert coordinator.log.ledger.cursors["transaction.subscription"].backlog_entries() == 0
        told_to_operators = "".join(asked_text("c", coordinator._endings.meters, with_topics=False))
        assert 'pulsar_txn_tb_client_contradicted_total{cluster="c"} 2' in told_to_operators
        other = await coordinator.open(None, 60_000)
        assert coordinator.machine.low_water_mark == other.least - 1 == 0
        coordinator = await world.restart()
        with pytest.raises(BrokerError, match=f"otherwise at {T}, {T} s"):
            await coordinator.end(0, action)
        assert set(world.participants.asked.values()) == {1}
        await coordinator.close()

    run(scenario())


@pytest.mark.parametrize("is_refusing", [True, False])
def test_an_end_request_is_answered_in_time_with_the_participant_that_has_not_done_it(is_refusing: bool) -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        txn_id = await coordinator.open(None, 60_000)
        await coordinator.add_partitions(0, [T, T + "2"])

        async def absent(name: str) -> None:
            if name == T and is_refusing:
                raise BrokerError(ServerError.SERVICE_NOT_READY, "not now")
            if name == T:
                await asyncio.get_running_loop().create_future()

        world.participants.before = absent
        began = asyncio.get_running_loop().time()
        reason = "not now" if is_refusing else "no answer within 3.0 s"
        with pytest.raises(BrokerError, match=f"will be committed, but .* yet: {T}: {reason}") as told:
            await coordinator.end(0, COMMIT)
        assert told.value.code is ServerError.SERVICE_NOT_READY
        assert asyncio.get_running_loop().time() - began <= ANSWER_SECONDS_MAX + 1
        assert await refusal(coordinator.end(0, ABORT)) is ServerError.INVALID_TXN_STATUS
        world.participants.before = None
        await coordinator.end(0, COMMIT)
        assert world.participants.ended == {(T, txn_id): COMMIT, (T + "2", txn_id): COMMIT}
        await coordinator.close()

    run(scenario())


def test_an_end_that_is_not_durable_reaches_no_participant_and_ends_the_coordinator() -> None:
    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        await coordinator.open(None, 60_000)
        await coordinator.add_partitions(0, [T])
        store = world.storage.ledger_store
        store.fail_appends = store.fail_creates = 99
        assert await refusal(coordinator.end(0, COMMIT)) is ServerError.TRANSACTION_COORDINATOR_NOT_FOUND
        assert not world.participants.asked
        assert await refusal(coordinator.open(None, 1)) is ServerError.TRANSACTION_COORDINATOR_NOT_FOUND
        store.fail_appends = store.fail_creates = 0
        await coordinator.close()
        again = await world.load()
        assert again.machine.get(0).status is TxnStatus.OPEN
        await again.end(0, ABORT)
        await again.close()

    run(scenario())


def test_a_coordinator_whose_log_somebody_else_has_taken_has_ended() -> None:
    async def scenario() -> None:
        world, other = CoordinatorWorld(), CoordinatorWorld()
        coordinator = await world.load()
        await coordinator.open(None, 60_000)
        other.storage.tree, other.storage.shared = world.storage.tree, world.storage.shared
        other.storage.start()
        taken = await other.load()
        assert await refusal(coordinator.end(0, COMMIT)) is ServerError.TRANSACTION_COORDINATOR_NOT_FOUND
        await taken.end(0, ABORT)
        await coordinator.close()
        await taken.close()

    run(scenario())


@pytest.mark.parametrize("seed", range(25))
def test_killed_at_any_moment_all_who_took_part_hear_the_end_that_the_client_was_told(seed: int) -> None:
    async def scenario() -> None:
        rng = random.Random(seed)
        world = CoordinatorWorld(step_s=0.002)
        told: dict[TxnId, object] = {}
        given: list[TxnId] = []
        took_part: dict[TxnId, set[str]] = {}

        async def client(number: int) -> None:
            """One that gives a transaction up at the first refusal, as who has lost its broker."""
            for _ in range(6):
                coordinator = world.coordinator
                try:
                    txn_id = await coordinator.open(None, rng.choice([50, 5_000]))
                    given.append(txn_id)
                    names = [f"t{rng.randrange(4)}" for _ in range(rng.randrange(3))]
                    await coordinator.add_partitions(txn_id.least, names)
                    took_part[txn_id] = set(names)
                    await coordinator.add_subscriptions(txn_id.least, [TxnSubscription("t", f"s{number}")])
                    took_part[txn_id].add(f"t s{number}")
                    action = rng.choice([COMMIT, ABORT])
                    await coordinator.end(txn_id.least, action)
                    told[txn_id] = action
                except BrokerError:
                    await asyncio.sleep(rng.random() / 10)

        await world.load()
        clients = [asyncio.create_task(client(number)) for number in range(4)]
        for _ in range(4):
            await asyncio.sleep(rng.random() / 20)
            await world.restart()
        done, stuck = await asyncio.wait(clients, timeout=100)
        for task in stuck:  # what they waited for died with its broker
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        assert not [task for task in done if task.exception()]
        await asyncio.sleep(60)
        assert world.coordinator.machine.active_count == 0, "all has ended, by a client, by time, or after a restart"
        assert len(set(given)) == len(given)
        for txn_id, action in told.items():
            for name in took_part[txn_id]:
                assert world.participants.ended[name, txn_id] is action
        for txn_id, names in took_part.items():
            assert len({world.participants.ended[name, txn_id] for name in names}) <= 1
        cursor = world.coordinator.log.ledger.cursors["transaction.subscription"]
        assert cursor.backlog_entries() == 0, "what has ended is let go"
        await world.coordinator.close()

    run(scenario())


def test_transactions_whose_time_is_up_at_once_are_opened_on_the_loop_that_serves() -> None:
    """A timer of uvloop's that is due already cannot say when: the second client got an internal error."""

    async def scenario() -> None:
        world = CoordinatorWorld()
        coordinator = await world.load()
        opened = await asyncio.gather(*(coordinator.open(None, 0) for _ in range(20)))
        assert [txn_id.least for txn_id in opened] == list(range(20))
        await coordinator.close()

    uvloop.run(scenario())
