"""A peer that is asked whether it is there: on virtual time, then over real sockets with topics behind them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.connection.listener import Listener, serve
from broker.connection.liveness import Liveness
from broker.connection.settings import ConnectionSettings
from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from broker.topic.opening import PersistentTopics
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.admin.admin_world import StoredMemoryLedgers
from tests.broker.connection.peer import (
    ADVERTISED,
    a_peer,
    connect,
    message,
    play,
    play_for_real,
    producer,
    send,
    subscribe,
)
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

PONG = BaseCommand(type=BaseCommand.PONG, pong=api.CommandPong())


class Line:
    """Record of the effects of a check on its connection."""

    def __init__(self, timeout_ms: int = 5000) -> None:
        self.did: list[str] = []
        self.is_listening = True
        self.liveness = Liveness(self.ping, self.end, lambda: self.is_listening, timeout_ms)

    def ping(self) -> None:
        self.did.append("ping")

    def end(self, reason: str) -> None:
        self.did.append("end")
        self.liveness.ended()


def test_simultaneous_liveness_checks_share_one_ping_and_its_answer() -> None:
    async def scenario() -> None:
        line = Line()
        asking = [asyncio.create_task(line.liveness.check()) for _ in range(3)]
        await asyncio.sleep(1)
        asking[0].cancel()
        line.liveness.heard()
        assert await asyncio.gather(*asking[1:]) == [True, True]
        assert line.did == ["ping"]
        assert (await asyncio.gather(line.liveness.check(), asyncio.sleep(9)))[0] is False, "the next time it is asked again"
        assert line.did == ["ping", "ping", "end"]

    play(scenario)


def test_a_peer_that_says_nothing_in_time_has_ended_when_the_answer_is_no() -> None:
    async def scenario() -> None:
        line, began = Line(5000), asyncio.get_running_loop().time()
        assert await line.liveness.check() is False
        assert line.did == ["ping", "end"]
        assert asyncio.get_running_loop().time() - began == pytest.approx(5)
        assert await line.liveness.check() is False
        assert line.did == ["ping", "end"], "who has ended is not asked"

    play(scenario)


def test_a_connection_that_ends_by_itself_answers_at_once() -> None:
    async def scenario() -> None:
        line = Line()
        asking = asyncio.create_task(line.liveness.check())
        await asyncio.sleep(1)
        line.liveness.ended()
        assert await asking is False
        await asyncio.sleep(9)
        assert line.did == ["ping"]

    play(scenario)


def test_a_peer_that_we_do_not_listen_to_is_taken_to_be_there() -> None:
    async def scenario() -> None:
        line = Line()
        line.is_listening = False
        assert await line.liveness.check() is True
        assert line.did == ["ping"]

    play(scenario)


def test_with_the_timeout_at_zero_nobody_is_asked() -> None:
    async def scenario() -> None:
        line = Line(0)
        assert await line.liveness.check() is True
        assert line.did == []

    play(scenario)


def test_a_connection_is_asked_with_ping_and_any_byte_is_an_answer() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            owner = await peer.produce()
            for answer in (encode(PONG), encode(send(1, 0), message())[:3]):
                asking = asyncio.create_task(owner.sink.is_alive())
                await asyncio.sleep(1)
                assert peer.answers() == [BaseCommand(type=BaseCommand.PING, ping=api.CommandPing())]
                peer.feed(answer)
                assert await asking

    play(scenario)


def test_a_connection_that_does_not_answer_closes_everything_on_it_before_the_answer() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            owner, consumer = await peer.produce(), await peer.consume()
            asking = [asyncio.create_task(member.sink.is_alive()) for member in (owner, consumer)]
            await asyncio.sleep(4)
            assert not owner.is_closed
            assert await asyncio.gather(*asking) == [False, False]
            assert (owner.is_closed, consumer.is_closed, peer.transport.closed) == (True, True, True)

    play(scenario)


def test_a_peer_too_old_for_ping_is_not_asked() -> None:
    async def scenario() -> None:
        async with a_peer(version=0) as peer:
            assert await (await peer.produce()).sink.is_alive()
            assert peer.frames() == []

    play(scenario)


# ---- Over real sockets


class Client:
    """A client of our own whose machine can go away: it then neither reads nor answers, and its socket stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._answers: asyncio.Queue[BaseCommand] = asyncio.Queue()
        self.pings = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, listener: Listener) -> "Client":
        client = cls(*await asyncio.open_connection("127.0.0.1", listener.port))
        assert (await client.ask(connect())).type == BaseCommand.CONNECTED
        return client

    async def ask(self, command: BaseCommand) -> BaseCommand:
        self.writer.write(encode(command))
        return await self._answers.get()

    async def _read(self) -> None:
        while True:
            size = await self._reader.readexactly(4)
            frame = next_frame(size + await self._reader.readexactly(int.from_bytes(size)), 0, 1 << 30)
            assert frame is not None
            if frame.command.type == BaseCommand.PING:
                self.pings += 1
                self.writer.write(encode(PONG))
            else:
                self._answers.put_nowait(frame.command)

    async def vanish(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])


@asynccontextmanager
async def a_broker(settings: ConnectionSettings) -> AsyncIterator[Listener]:
    clock = RealClock()
    store = MemoryStore(clock)
    topics = PersistentTopics(StoredMemoryLedgers(store), TopicSettings(), DispatcherSettings(), clock)
    service = BrokerService(BrokerSettings(), store, clock, topics, FakeLedgerStore(FakeLedgers()))
    await service.bootstrap_standalone(ADVERTISED)
    await service.start(ADVERTISED)
    listener = await serve(service, settings, "127.0.0.1", 0)
    try:
        yield listener
    finally:
        listener.stop_accepting()
        await service.close()
        await listener.close()


def sticky(start: int, end: int) -> BaseCommand:
    meta = api.KeySharedMeta(key_shared_mode=api.STICKY, hash_ranges=[api.IntRange(start=start, end=end)])
    return subscribe(sub_type=api.CommandSubscribe.Key_Shared, key_shared_meta=meta)


REQUESTS = {
    "a producer's name": (producer(producer_name="n"), producer(producer_name="n"), api.ProducerBusy),
    "an exclusive producer's topic": (
        producer(producer_access_mode=api.Exclusive),
        producer(producer_access_mode=api.Exclusive),
        api.ProducerFenced,
    ),
    "an exclusive subscription": (subscribe(), subscribe(), api.ConsumerBusy),
    "hash ranges": (sticky(0, 100), sticky(100, 200), api.ConsumerAssignError),
}


@pytest.mark.parametrize(("old", "new", "refusal"), REQUESTS.values(), ids=REQUESTS.keys())
def test_a_client_gets_what_a_vanished_one_held_and_not_what_a_living_one_holds(
    old: BaseCommand, new: BaseCommand, refusal: api.ServerError
) -> None:
    async def scenario() -> None:
        async with a_broker(ConnectionSettings(connection_liveness_check_timeout_millis=250)) as listener:
            holder, comer = await Client.connect(listener), await Client.connect(listener)
            assert (await holder.ask(old)).type in (BaseCommand.PRODUCER_SUCCESS, BaseCommand.SUCCESS)
            refused = await comer.ask(new)
            assert (refused.type, refused.error.error, holder.pings) == (BaseCommand.ERROR, refusal, 1)
            await holder.vanish()
            accepted = await comer.ask(new)
            assert accepted.type in (BaseCommand.PRODUCER_SUCCESS, BaseCommand.SUCCESS), accepted
            assert listener.connection_count == 1
            for client in (holder, comer):
                await client.vanish()
                client.writer.close()

    play_for_real(scenario)


def test_without_the_check_the_newcomer_is_refused_as_long_as_the_connection_stays() -> None:
    async def scenario() -> None:
        async with a_broker(ConnectionSettings(connection_liveness_check_timeout_millis=0)) as listener:
            holder, comer = await Client.connect(listener), await Client.connect(listener)
            await holder.ask(producer(producer_name="n"))
            await holder.vanish()
            assert (await comer.ask(producer(producer_name="n"))).error.error == api.ProducerBusy
            for client in (holder, comer):
                await client.vanish()
                client.writer.close()

    play_for_real(scenario)
