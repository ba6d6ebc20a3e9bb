"""Owners of transactions, and transaction logs that cannot be opened as topics, as Apache Pulsar 4.0.8 refuses both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.service.topic_name import TopicName
from broker.transaction.coordinators import ASSIGN, Coordinators, initialise_coordinators
from broker.transaction.here import ParticipantsHere
from broker.transaction.settings import TransactionSettings
from tests.broker.connection.peer import TOPIC, Peer, a_peer, partitions, play, producer, subscribe
from tests.broker.security.secured_server import Secured, secured
from tests.broker.transaction.coordinator_world import FakeParticipants, LoopClock
from tests.broker.transaction.test_coordinators import add, connect, end, new, said
from tests.broker.transaction.test_coordinators import subscribe as take_part
from tests.managed_ledger.ledger_world import World, trimming
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnAction, TxnId

SYSTEM = "persistent://pulsar/system"
NOT_TOPICS = (
    f"{SYSTEM}/__transaction_log_0",
    f"{SYSTEM}/__transaction_log_99",
    f"{SYSTEM}/transaction_coordinator_assign-partition-0",
    f"{TOPIC}-s__transaction_pending_ack",
    f"{TOPIC}-'transactions__transaction_pending_ack",
)
TOPICS = (
    "persistent://public/default/__transaction_log_0",
    "persistent://public/default/__transaction_buffer_snapshot",
    "persistent://public/default/__transaction_buffer_snapshot_segments",
    "persistent://public/default/__transaction_buffer_snapshot_indexes",
    "persistent://public/default/__transaction_pending_ack-s",
)


@pytest.mark.parametrize("topic", NOT_TOPICS)
def test_a_client_cannot_open_a_transaction_system_topic(topic: str) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.service.catalogue.partitioned_topics.create(ASSIGN, 1, {})
            for command in (producer(topic=topic), subscribe(topic=topic)):
                answer = await peer.ask(command)
                assert (answer.type, answer.error.error) == (BaseCommand.ERROR, api.NotAllowedError)
                assert answer.error.message == f"Can not create transaction system topic {topic}"
            assert peer.topics.topics == {}

    play(scenario)


@pytest.mark.parametrize("topic", TOPICS)
def test_names_that_are_like_it_are_topics_as_others_are(topic: str) -> None:
    """Apache's brokers write snapshots through a client of their own, so that clients may open those topics."""

    async def scenario() -> None:
        async with a_peer() as peer:
            assert (await peer.ask(producer(topic=topic))).type == BaseCommand.PRODUCER_SUCCESS

    play(scenario)


def test_a_client_may_ask_how_many_coordinators_there_are() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.service.catalogue.partitioned_topics.create(ASSIGN, 3, {})
            answer = await peer.ask(partitions(str(ASSIGN), may_create=False))
            assert answer.partition_metadata_response.partitions == 3

    play(scenario)


def test_a_transaction_that_names_a_log_as_its_topic_comes_to_its_end() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            service = peer.service
            log = TopicName.parse(NOT_TOPICS[0])
            await peer.topics.store.put(log.managed_ledger_path, b"")
            assert await service.catalogue.topic_exists(log)
            await ParticipantsHere(service.catalogue, service.lifecycle).end_on_partition(
                str(log), TxnId(0, 1), TxnAction.COMMIT, -1
            )

    play(scenario)


@asynccontextmanager
async def coordinated() -> AsyncIterator[Secured]:
    """With grants for alice and bob, and for the proxy that they may come through."""
    async with secured() as server:
        service, storage = server.listener.service, World(trimming(), 0.001)
        settings = TransactionSettings(transaction_coordinator_enabled=True)
        coordinators = Coordinators(
            settings, storage.ledgers, service.catalogue, service.lookup, FakeParticipants(), LoopClock()
        )
        await initialise_coordinators(service.catalogue)
        await coordinators.start()
        server.listener.coordinators = coordinators
        may = ["produce", "consume"]
        await server.grant(namespace_auth={"alice": may, "bob": may, "proxy": may})
        try:
            yield server
        finally:
            await coordinators.close()


async def opened(peer: Peer) -> TxnId:
    await said(peer, connect(0))
    told = (await said(peer, new(0))).new_txn_response
    assert not told.HasField("error")
    return TxnId(told.txnid_most_bits, told.txnid_least_bits)


async def outcomes(peer: Peer, txn_id: TxnId) -> list[str | None]:
    """Returns the refusal of each command that uses a transaction; None: it is done."""
    found: list[str | None] = []
    for command, name in (
        (add(txn_id, TOPIC), "add_partition_to_txn_response"),
        (take_part(txn_id, TOPIC, "s"), "add_subscription_to_txn_response"),
        (end(txn_id, "COMMIT"), "end_txn_response"),
    ):
        told = getattr(await said(peer, command), name)
        found.append(api.ServerError.Name(told.error) if told.HasField("error") else None)
    return found


@pytest.mark.parametrize(
    ("role", "original", "may"),
    [
        ("alice", None, True),
        ("bob", None, False),
        ("admin", None, True),
        ("proxy", "alice", True),
        ("proxy", "bob", False),
        ("proxy", "admin", False),  # both would have to be super-users (ServerCnx.isSuperUser)
    ],
)
def test_a_transaction_is_used_by_its_owner_or_a_super_user_also_through_a_proxy(
    role: str, original: str | None, may: bool
) -> None:
    async def scenario() -> None:
        async with coordinated() as server:
            txn_id = await opened(await server.peer_of("alice"))
            fields = {} if original is None else {"original_principal": original}
            peer = await server.peer_of(role, **fields)
            assert await outcomes(peer, txn_id) == [None if may else "TransactionNotFound"] * 3
            if not may:
                assert await outcomes(await server.peer_of("alice"), txn_id) == [None] * 3

    play(scenario)


def test_a_transaction_opened_through_a_proxy_belongs_to_the_client() -> None:
    async def scenario() -> None:
        async with coordinated() as server:
            txn_id = await opened(await server.peer_of("proxy", original_principal="alice"))
            other = await server.peer_of("proxy", original_principal="bob")
            assert await outcomes(other, txn_id) == ["TransactionNotFound"] * 3
            assert await outcomes(await server.peer_of("alice"), txn_id) == [None] * 3

    play(scenario)
