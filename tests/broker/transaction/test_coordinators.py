"""The coordinators of a broker, over a service whose topics are fakes: loaded once, closed with their
bundle, found by clients."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.connection.listener import Listener
from broker.connection.requests.transactions import ENDS_TOLD_MAX
from broker.connection.settings import ConnectionSettings
from broker.errors import ServerError
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from broker.transaction.coordinators import ASSIGN, COORDINATORS, Coordinators, initialise_coordinators
from broker.transaction.settings import TransactionSettings
from tests.broker.connection.peer import ADVERTISED, TOPIC, Peer, lookup, partitions, play
from tests.broker.fake_topics import FakeTopics
from tests.broker.transaction.coordinator_world import FakeParticipants, LoopClock, refusal
from tests.managed_ledger.ledger_world import World, trimming
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnAction, TxnId


class CoordinatedServer:
    """One broker with coordinators, and who connects to it."""

    def __init__(self, settings: TransactionSettings) -> None:
        self.storage = World(trimming(), 0.001)
        self.topics = FakeTopics(self.storage.store)
        self.service = BrokerService(
            BrokerSettings(), self.storage.store, self.storage.clock, self.topics, self.storage.ledger_store
        )
        self.participants = FakeParticipants()
        self.coordinators = Coordinators(
            settings, self.storage.ledgers, self.service.catalogue, self.service.lookup, self.participants, LoopClock()
        )
        self.listener = Listener(self.service, ConnectionSettings(), coordinators=self.coordinators)

    async def peer(self) -> Peer:
        peer = Peer(self.listener, self.topics)
        await peer.connect()
        return peer


@asynccontextmanager
async def a_server(settings: TransactionSettings | None = None) -> AsyncIterator[CoordinatedServer]:
    server = CoordinatedServer(settings or TransactionSettings(transaction_coordinator_enabled=True))
    await server.service.bootstrap_standalone(ADVERTISED)
    await server.service.start(ADVERTISED)
    await initialise_coordinators(server.service.catalogue)
    server.service.lifecycle.close_with(server.coordinators.close_covered)
    await server.coordinators.start()
    try:
        yield server
    finally:
        await server.listener.close()
        await server.coordinators.close()
        await server.service.close()


async def said(peer: Peer, command: BaseCommand) -> BaseCommand:
    """The answer, which may take time."""
    peer.send(command)
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if found := peer.answers():
            return found[0]
    raise AssertionError("no answer")


def connect(number: int) -> BaseCommand:
    asked = api.CommandTcClientConnectRequest(request_id=1, tc_id=number)
    return BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST, tc_client_connect_request=asked)


def new(number: int, timeout_ms: int = 10_000) -> BaseCommand:
    asked = api.CommandNewTxn(request_id=2, tc_id=number, txn_ttl_seconds=timeout_ms)
    return BaseCommand(type=BaseCommand.NEW_TXN, new_txn=asked)


def add(txn_id: TxnId, *topics: str) -> BaseCommand:
    asked = api.CommandAddPartitionToTxn(request_id=3, txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least)
    asked.partitions.extend(topics)
    return BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN, add_partition_to_txn=asked)


def subscribe(txn_id: TxnId, topic: str, name: str) -> BaseCommand:
    asked = api.CommandAddSubscriptionToTxn(request_id=4, txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least)
    asked.subscription.add(topic=topic, subscription=name)
    return BaseCommand(type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN, add_subscription_to_txn=asked)


def end(txn_id: TxnId, action: str) -> BaseCommand:
    asked = api.CommandEndTxn(request_id=5, txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least, txn_action=action)
    return BaseCommand(type=BaseCommand.END_TXN, end_txn=asked)


def test_a_client_finds_its_coordinator_and_has_a_transaction_committed() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            peer = await server.peer()
            found = await said(peer, partitions(str(ASSIGN), may_create=False))
            assert found.partition_metadata_response.partitions == COORDINATORS
            where = await said(peer, lookup(str(ASSIGN.partition(7))))
            assert where.lookup_topic_response.broker_service_url == ADVERTISED.broker_url
            connected = (await said(peer, connect(7))).tc_client_connect_response
            assert (connected.request_id, connected.HasField("error")) == (1, False)
            opened = (await said(peer, new(7))).new_txn_response
            assert (opened.request_id, opened.txnid_most_bits, opened.txnid_least_bits) == (2, 7, 0)
            assert not opened.HasField("error")
            txn_id = TxnId(7, 0)
            added = (await said(peer, add(txn_id, "t"))).add_partition_to_txn_response
            assert (added.txnid_most_bits, added.HasField("error")) == (7, False)
            assert not (await said(peer, subscribe(txn_id, TOPIC, "s"))).add_subscription_to_txn_response.HasField("error")
            ended = (await said(peer, end(txn_id, "COMMIT"))).end_txn_response
            assert (ended.request_id, ended.HasField("error")) == (5, False)
            assert server.participants.ended == {
                (TOPIC, txn_id): TxnAction.COMMIT,
                (f"{TOPIC} s", txn_id): TxnAction.COMMIT,
            }

    play(scenario)


def test_a_client_that_was_told_the_end_does_not_find_the_transaction_again_and_one_that_was_not_is_told() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            peer, after_a_break = await server.peer(), await server.peer()
            await said(peer, connect(7))
            await said(peer, new(7))
            txn_id = TxnId(7, 0)
            assert not (await said(peer, end(txn_id, "COMMIT"))).end_txn_response.HasField("error")
            for action in ("COMMIT", "ABORT", "COMMIT"):
                assert (await said(peer, end(txn_id, action))).end_txn_response.error == api.TransactionNotFound
            assert not (await said(after_a_break, end(txn_id, "COMMIT"))).end_txn_response.HasField("error")

    play(scenario)


def test_a_connection_remembers_a_bounded_number_of_ends() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            peer = await server.peer()
            await said(peer, connect(7))
            for _ in range(ENDS_TOLD_MAX + 1):
                opened = (await said(peer, new(7))).new_txn_response
                await said(peer, end(TxnId(7, opened.txnid_least_bits), "ABORT"))
            assert not (await said(peer, end(TxnId(7, 0), "ABORT"))).end_txn_response.HasField("error")
            assert (await said(peer, end(TxnId(7, 2), "ABORT"))).end_txn_response.error == api.TransactionNotFound

    play(scenario)


def test_a_refused_command_is_answered_in_its_own_response_with_its_own_error() -> None:
    async def scenario() -> None:
        async with a_server(TransactionSettings(True, max_active_transactions_per_coordinator=1)) as server:
            peer = await server.peer()
            absent = (await said(peer, connect(99))).tc_client_connect_response
            assert absent.error == api.TransactionCoordinatorNotFound
            assert (await said(peer, new(3))).new_txn_response.error == api.TransactionCoordinatorNotFound
            await said(peer, connect(3))
            for command, field in (
                (add(TxnId(3, 9), TOPIC), "add_partition_to_txn_response"),
                (subscribe(TxnId(3, 9), TOPIC, "s"), "add_subscription_to_txn_response"),
                (end(TxnId(3, 9), "ABORT"), "end_txn_response"),
            ):
                told = getattr(await said(peer, command), field)
                assert (told.error, told.txnid_least_bits) == (api.TransactionNotFound, 9)
            await said(peer, new(3))
            assert (await said(peer, new(3))).new_txn_response.error == api.TooManyRequests
            bad = (await said(peer, add(TxnId(3, 0), "a/b"))).add_partition_to_txn_response
            assert bad.error == api.InvalidTopicName

            async def never(name: str) -> None:
                await asyncio.get_running_loop().create_future()

            server.participants.before = never
            await said(peer, add(TxnId(3, 0), TOPIC))
            peer.send(end(TxnId(3, 0), "COMMIT"))
            await asyncio.sleep(1)
            assert (await said(peer, end(TxnId(3, 0), "ABORT"))).end_txn_response.error == api.InvalidTxnStatus
            assert (await said(peer, add(TxnId(3, 0), TOPIC))).add_partition_to_txn_response.error == api.InvalidTxnStatus
            server.participants.before = None
            peer.transport.close()

    play(scenario)


def test_many_who_connect_at_once_load_a_coordinator_once() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            found = await asyncio.gather(*(server.coordinators.connect(number % 3) for number in range(30)))
            assert len(set(map(id, found))) == 3
            assert sorted(server.coordinators.all) == [0, 1, 2]

    play(scenario)


def test_a_coordinator_goes_with_its_bundle_and_is_loaded_again_from_its_log() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            first = await server.coordinators.connect(0)
            txn_id = await first.open(None, 60_000)
            await server.service.lifecycle.close_topics(lambda topic: topic.partitioned == ASSIGN)
            assert not server.coordinators.all
            assert await refusal(first.end(txn_id.least, TxnAction.COMMIT)) is ServerError.TRANSACTION_COORDINATOR_NOT_FOUND
            await asyncio.sleep(31)  # the broker looks for its own also when no client comes
            again = server.coordinators.get(0)
            await again.end(txn_id.least, TxnAction.COMMIT)
            assert list(server.coordinators.all) == [0], "those that nobody ever used are not loaded"

    play(scenario)


def test_a_coordinator_whose_log_fails_is_loaded_again_for_the_client_that_comes_back() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            peer = await server.peer()
            await said(peer, connect(0))
            await said(peer, new(0))
            store = server.storage.ledger_store
            store.fail_appends = store.fail_creates = 99
            assert (await said(peer, end(TxnId(0, 0), "COMMIT"))).end_txn_response.error == api.TransactionCoordinatorNotFound
            store.fail_appends = store.fail_creates = 0
            assert not (await said(peer, connect(0))).tc_client_connect_response.HasField("error")
            assert not (await said(peer, end(TxnId(0, 0), "COMMIT"))).end_txn_response.HasField("error")

    play(scenario)


def test_without_the_setting_each_command_is_told_that_there_are_no_transactions() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            server.listener.coordinators = None
            peer = await server.peer()
            one = TxnId(0, 0)
            for command in (connect(0), new(0), add(one, TOPIC), subscribe(one, TOPIC, "s"), end(one, "ABORT")):
                found = await said(peer, command)
                assert (found.error.error, found.error.message) == (api.NotAllowedError, "Transactions are not enabled.")

    play(scenario)


def test_an_end_that_does_not_say_which_is_refused_and_the_transaction_stays_open() -> None:
    """An action that a broker does not know arrives as none, and was taken for a commit."""

    async def scenario() -> None:
        async with a_server() as server:
            peer = await server.peer()
            await said(peer, connect(0))
            opened = (await said(peer, new(0))).new_txn_response
            txn_id = TxnId(opened.txnid_most_bits, opened.txnid_least_bits)
            silent = end(txn_id, "COMMIT")
            silent.end_txn.ClearField("txn_action")
            told = (await said(peer, silent)).end_txn_response
            assert (told.error, told.message) == (api.NotAllowedError, "END_TXN without an action")
            there = api.CommandEndTxnOnPartition(request_id=6, topic="t")
            answer = await said(peer, BaseCommand(type=BaseCommand.END_TXN_ON_PARTITION, end_txn_on_partition=there))
            assert answer.end_txn_on_partition_response.error == api.NotAllowedError
            assert not (await said(peer, end(txn_id, "ABORT"))).end_txn_response.HasField("error")

    play(scenario)
