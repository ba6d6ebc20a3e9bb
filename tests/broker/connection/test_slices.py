"""However much a client sends at once, a turn of the event loop handles a bounded part of it, in the order of the client."""

import asyncio
from collections.abc import Callable

import pytest

from broker.connection.consumers.consumers import IDS_PER_SLICE, RUN_IDS_PER_SLICE
from ports.loop.starts import STARTS_PER_TURN
from ports.network.rest import FRAMES_PER_TURN
from tests.broker.connection.peer import (
    TOPIC,
    Peer,
    a_peer,
    a_server,
    ack,
    flow,
    ping,
    play_for_real,
    producer,
    reasons,
    redeliver,
    settle,
    subscribe,
)
from tests.broker.fake_topics import FakeTopic
from tests.cost import Counter
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

SHARED = api.CommandSubscribe.Shared
STEPS_PER_TURN = 300_000
"""Some 5 milliseconds of bytecodes; in the first turn most are bytes that were read."""


def _of_many_ledgers(count: int) -> list[tuple[int, int]]:
    return [(ledger_id, 0) for ledger_id in range(count)]


MANY: dict[str, Callable[[int], bytes]] = {
    "flows": lambda n: encode(flow(1, 1)) * n,
    "pings": lambda n: encode(ping()) * n,
    "acknowledgements, a frame each": lambda n: b"".join([encode(ack(1, (1, each), request_id=each)) for each in range(n)]),
    "an acknowledgement of many ledgers": lambda n: encode(ack(1, *_of_many_ledgers(n))),
    "an acknowledgement that wants an answer": lambda n: encode(ack(1, *_of_many_ledgers(n), request_id=7)),
    "a redelivery": lambda n: encode(redeliver(1, *_of_many_ledgers(n))),
}


@pytest.mark.parametrize("what", MANY)
def test_a_turn_of_the_loop_handles_a_bounded_part(what: str) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.consume(sub_type=SHARED)
            sent = MANY[what](6000)
            with Counter() as counter:
                peer.feed(sent)
                await _caught_up(peer)
            assert not peer.transport.is_paused()
            assert counter.longest <= STEPS_PER_TURN, f"of {counter.steps} in all"

    play_for_real(scenario)


async def _caught_up(peer: Peer) -> None:
    while peer.connection._rest.is_behind:
        await settle()
    for _ in range(4):
        await settle()


@pytest.mark.parametrize("frames", [FRAMES_PER_TURN - 1, FRAMES_PER_TURN, FRAMES_PER_TURN + 1, 3 * FRAMES_PER_TURN])
@pytest.mark.parametrize("piece", [7, 1 << 30])
def test_frames_that_are_put_off_are_handled_in_their_order(frames: int, piece: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.consume()
            sent = b"".join([encode(ack(1, (1, each), request_id=each)) for each in range(frames)])
            peer.feed(sent[:-5], piece)
            await _caught_up(peer)
            peer.feed(sent[-5:])
            await _caught_up(peer)
            assert [each.ack_response.request_id for each in peer.answers()] == list(range(frames))

    play_for_real(scenario)


def test_commands_behind_a_sliced_command_wait_for_its_end() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume(sub_type=SHARED)
            count = 10 * IDS_PER_SLICE
            peer.feed(encode(ack(1, *_of_many_ledgers(count), request_id=7)) + encode(redeliver(1, (1, 1))) + encode(ping()))
            assert peer.transport.is_paused(), "nothing is read until then"
            assert (len(consumer.acks), consumer.redeliveries, peer.answers()) == (1, [], [])
            await _caught_up(peer)
            assert sum(len(each.positions) for each in consumer.acks) == count
            assert [position.ledger_id for each in consumer.acks for position in each.positions] == list(range(count))
            assert consumer.redeliveries == [([(1, 1)], None)]
            assert sorted(each.type for each in peer.answers()) == [BaseCommand.PONG, BaseCommand.ACK_RESPONSE]

    play_for_real(scenario)


def test_an_acknowledgement_of_very_many_entries_of_one_ledger_is_handed_on_in_parts() -> None:
    """One of 5 MB took 54 ms."""

    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume(sub_type=SHARED)
            count = 3 * RUN_IDS_PER_SLICE + 1
            peer.send(ack(1, *[(7, entry_id) for entry_id in range(count)]))
            assert peer.transport.is_paused(), "nothing is read until then"
            await _caught_up(peer)
            assert not peer.transport.is_paused()
            assert [len(run.entry_ids) for run in consumer.ack_runs] == [*[RUN_IDS_PER_SLICE] * 3, 1]
            assert [entry_id for run in consumer.ack_runs for entry_id in run.entry_ids] == list(range(count))

    play_for_real(scenario)


def test_a_command_longer_than_a_megabyte_is_refused_by_name(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(redeliver(1, *[(1 << 40, 1 << 40)] * 80_000))
            await settle()
            assert peer.transport.closed
            assert "REDELIVER_UNACKNOWLEDGED_MESSAGES of 1280009 bytes without its payload" in reasons(caplog)[-1]

    play_for_real(scenario)


def test_an_acknowledgement_in_a_transaction_is_handed_on_as_a_whole() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume(sub_type=SHARED)
            count = 3 * IDS_PER_SLICE + 1
            peer.send(ack(1, *_of_many_ledgers(count), request_id=7, txnid_most_bits=1, txnid_least_bits=2))
            await _caught_up(peer)
            [(txn_id, acknowledgement)] = consumer.acknowledged_in
            assert (txn_id, len(acknowledgement.positions)) == ((1, 2), count)

    play_for_real(scenario)


def test_a_consumer_that_has_everything_is_asked_once_to_redeliver() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.send(redeliver(1, *_of_many_ledgers(4 * IDS_PER_SLICE), consumer_epoch=3))
            await _caught_up(peer)
            [(_, epoch)] = consumer.redeliveries
            assert epoch == 3

    play_for_real(scenario)


def test_a_connection_that_ends_leaves_the_rest() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume(sub_type=SHARED)
            peer.send(ack(1, *_of_many_ledgers(4 * IDS_PER_SLICE), request_id=7))
            peer.connection.end("of the test")
            await settle()
            assert len(consumer.acks) == 1
            assert not peer.connection._rest.is_behind

    play_for_real(scenario)


MAKING: dict[str, Callable[[int], BaseCommand]] = {
    "producers": lambda number: producer(number, request_id=number),
    "consumers": lambda number: subscribe(number, subscription=f"s-{number}", request_id=number),
}


@pytest.mark.parametrize("what", MAKING)
def test_few_requests_that_make_something_begin_in_a_turn_over_all_connections(what: str) -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            peers = [Peer(listener, topics) for _ in range(3)]
            for peer in peers:
                await peer.connect()
            made = getattr(topics.topics.setdefault(TOPIC, await _opened(peers[0])), what)
            del made[:]
            for peer in peers:
                peer.feed(b"".join([encode(MAKING[what](number)) for number in range(100, 200)]))
            await _each_turn_makes_few(made, 300)
            assert [len(peer.answers()) for peer in peers] == [100] * 3
            for peer in peers:
                peer.transport.close()

    play_for_real(scenario)


async def _opened(peer: Peer) -> FakeTopic:
    await peer.produce()
    return peer.topic()


async def _each_turn_makes_few(made: list[object], count: int) -> None:
    while len(made) < count:
        before = len(made)
        await asyncio.sleep(0)
        assert len(made) - before <= STARTS_PER_TURN
    for _ in range(4):
        await settle()


def test_one_request_does_not_wait_for_all_those_of_another_connection() -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            crowd, other = Peer(listener, topics), Peer(listener, topics)
            await crowd.connect()
            await other.connect()
            await _opened(crowd)
            crowd.feed(b"".join([encode(producer(number, request_id=number)) for number in range(2, 102)]))
            other.send(producer(1))
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(other.answers()) == 1
            assert len(crowd.answers()) < 10 * STARTS_PER_TURN + STARTS_PER_TURN
            crowd.transport.close()
            other.transport.close()

    play_for_real(scenario)


def test_requests_that_have_not_begun_when_their_connection_ends_never_do() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await _opened(peer)
            peer.feed(b"".join([encode(producer(number, request_id=number)) for number in range(2, 102)]))
            peer.connection.end("of the test")
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(peer.topic().producers) <= 1 + STARTS_PER_TURN
            assert not peer.connection._requests._tasks

    play_for_real(scenario)
