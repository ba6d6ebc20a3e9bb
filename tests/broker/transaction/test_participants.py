"""Participants at another broker, over a socket: that broker's own connections and a coordinator's link to them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from broker.connection.listener import Listener
from broker.errors import BrokerError, ServerError
from broker.service.addresses import Advertised, Answer
from broker.service.broker_service import BrokerService
from broker.service.lookup import Lookup
from broker.service.neighbours.neighbours import Neighbours
from broker.service.topic_name import TopicName
from broker.transaction.coordinators import Coordinators
from broker.transaction.participants import ParticipantsAnywhere
from tests.broker.connection.peer import TOPIC, a_server
from tests.broker.transaction.coordinator_world import ABORT, COMMIT, FakeParticipants, refusal
from wire.transactions import TxnId

HERE = Advertised("pulsar://here:1", "http://here:2")


class OneBrokersView:
    """Lookup of a broker for which every topic is at one other."""

    def __init__(self, port: int) -> None:
        self.advertised, self.neighbours = HERE, Neighbours()
        self.port, self.is_redirect = port, False

    async def find(self, topic: TopicName) -> Answer:
        return Answer(Advertised(f"pulsar://127.0.0.1:{self.port}", ""), is_redirect=self.is_redirect)


Scenario = Callable[[BrokerService, Listener, OneBrokersView, ParticipantsAnywhere], Coroutine[Any, Any, None]]


def play(scenario: Scenario) -> None:
    async def whole() -> None:
        coordinators = cast(Coordinators, object())  # there are transactions at that broker
        async with a_server(coordinators=coordinators) as (listener, _):
            service = listener.service
            await listener.listen("127.0.0.1", 0)
            view = OneBrokersView(listener.port)
            participants = ParticipantsAnywhere(cast(Lookup, view), FakeParticipants())
            try:
                await scenario(service, listener, view, participants)
            finally:
                await participants.close()

    asyncio.run(whole())


def test_many_at_once_are_ended_over_one_connection_also_where_a_lookup_has_to_come_first() -> None:
    async def scenario(
        service: BrokerService, listener: Listener, view: OneBrokersView, participants: ParticipantsAnywhere
    ) -> None:
        topic = cast(Any, await service.lifecycle.topic(TopicName.parse(TOPIC), may_create=True))
        ids = [TxnId(3, number) for number in range(50)]
        await asyncio.gather(*(participants.end_on_partition(TOPIC, each, COMMIT, -1) for each in ids))
        view.is_redirect = True
        await asyncio.gather(*(participants.end_on_partition(TOPIC, TxnId(4, n), ABORT, n - 1) for n in range(5)))
        assert len(topic.ended_transactions) == 55
        assert topic.ended_transactions[0][1:] == (COMMIT, -1), topic.ended_transactions[0]
        assert listener.connection_count == 1
        await participants.end_on_partition("persistent://public/default/deleted", ids[0], COMMIT, -1)

    play(scenario)


def test_a_refusal_is_told_with_its_code_and_a_connection_that_is_lost_is_made_again() -> None:
    async def scenario(
        service: BrokerService, listener: Listener, view: OneBrokersView, participants: ParticipantsAnywhere
    ) -> None:
        topic = cast(Any, await service.lifecycle.topic(TopicName.parse(TOPIC), may_create=True))
        sound = topic.end_transaction

        async def refuse(*_: Any) -> None:
            raise BrokerError(ServerError.TRANSACTION_CONFLICT, "it was aborted")

        topic.end_transaction = refuse
        told = await refusal(participants.end_on_partition(TOPIC, TxnId(3, 1), COMMIT, -1))
        assert told is ServerError.TRANSACTION_CONFLICT
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        begun = asyncio.Event()

        async def never(*_: Any) -> None:
            begun.set()
            await waiting

        topic.end_transaction = never
        asked = asyncio.create_task(refusal(participants.end_on_partition(TOPIC, TxnId(3, 1), COMMIT, -1)))
        await begun.wait()
        for connection in list(listener.server_port.connections):
            connection.close()
        assert await asked is ServerError.SERVICE_NOT_READY
        waiting.set_result(None)
        topic.end_transaction = sound
        await participants.end_on_partition(TOPIC, TxnId(3, 1), COMMIT, -1)

    play(scenario)


def test_a_broker_that_is_gone_is_told_as_not_ready() -> None:
    async def scenario(
        service: BrokerService, listener: Listener, view: OneBrokersView, participants: ParticipantsAnywhere
    ) -> None:
        await listener.close()
        assert await refusal(participants.end_on_partition(TOPIC, TxnId(3, 1), COMMIT, -1)) is ServerError.SERVICE_NOT_READY

    play(scenario)
