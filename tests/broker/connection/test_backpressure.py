"""Bounds of requests and messages under way, in both directions, and resumption after a stop."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from broker.connection.producers.publish_gate import SHARED_BYTES_MAX, PublishGate, PublishMemory
from broker.connection.requests.under_way import REQUESTS_MAX
from broker.connection.settings import ConnectionSettings
from ports.network.outbox import FLUSH_BYTES, HIGH_WATER_BYTES
from tests.broker.connection.peer import TOPIC, Peer, a_peer, a_server, ack, message, play, send, settle
from tests.broker.fake_topics import entry_run
from wire.frames import encode


def sends(count: int, size: int = 10) -> bytes:
    payload = message(b"x" * size)
    return b"".join(encode(send(1, index), payload) for index in range(count))


def test_reading_stops_at_the_limit_of_messages_and_goes_on_at_half_of_it() -> None:
    async def scenario() -> None:
        async with a_peer(settings=ConnectionSettings(max_pending_publish_requests_per_connection=100)) as peer:
            taken = await peer.produce()
            taken.is_held = True
            for index in range(99):
                peer.send(send(1, index), message())
            assert not peer.transport.is_paused()
            peer.send(send(1, 99), message())
            assert peer.transport.is_paused()
            taken.release(49)
            assert peer.transport.is_paused()
            taken.release(1)
            assert not peer.transport.is_paused()
            taken.release()

    play(scenario)


def test_reading_stops_at_the_limit_of_bytes() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            one = SHARED_BYTES_MAX // 8
            for index in range(7):
                peer.send(send(1, index), message(b"x" * one))
            assert not peer.transport.is_paused()
            peer.send(send(1, 100), message(b"x" * one))
            assert peer.transport.is_paused()
            taken.release(len(taken.unanswered) // 2 + 1)
            assert not peer.transport.is_paused()
            taken.release()

    play(scenario)


def test_a_connection_that_holds_the_memory_of_the_server_stops_those_that_send_more() -> None:
    async def scenario() -> None:
        settings = ConnectionSettings(max_message_publish_buffer_size_in_mb=1)
        async with a_server(settings=settings) as (listener, topics):
            one, two = Peer(listener, topics), Peer(listener, topics)
            for peer in (one, two):
                await peer.connect()
                (await peer.produce()).is_held = True
            first, second = topics.topics[TOPIC].producers
            one.send(send(1, 0), message(b"x" * 600_000))
            assert not one.transport.is_paused()
            two.send(send(1, 0), message(b"x" * 600_000))
            assert (one.transport.is_paused(), two.transport.is_paused()) == (False, True)
            first.release()
            assert two.transport.is_paused()
            second.release()
            assert not two.transport.is_paused()

    play(scenario)


def test_messages_in_flight_of_a_client_that_left_count_until_they_are_stored() -> None:
    async def scenario() -> None:
        settings = ConnectionSettings(max_message_publish_buffer_size_in_mb=1)
        async with a_server(settings=settings) as (listener, topics):
            gone = Peer(listener, topics)
            await gone.connect()
            taken = await gone.produce()
            taken.is_held = True
            gone.send(send(1, 0), message(b"x" * 900_000))
            gone.transport.close()
            await settle()
            peer = Peer(listener, topics)
            await peer.connect()
            await peer.produce()
            topics.topics[TOPIC].producers[-1].is_held = True
            peer.send(send(1, 0), message(b"x" * 200_000))
            assert peer.transport.is_paused()
            taken.release()
            assert not peer.transport.is_paused()
            topics.topics[TOPIC].producers[-1].release()

    play(scenario)


def test_too_many_requests_under_way_stop_reading() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.acknowledgements_gate.clear()
            peer.feed(b"".join(encode(ack(1, (1, index), request_id=index)) for index in range(REQUESTS_MAX - 1)))
            await settle()
            assert not peer.transport.is_paused()
            peer.send(ack(1, (1, 0), request_id=REQUESTS_MAX))
            assert peer.transport.is_paused()
            consumer.acknowledgements_gate.set()
            await settle()
            assert len(peer.answers()) == REQUESTS_MAX
            assert not peer.transport.is_paused()

    play(scenario)


def test_consumers_are_stopped_while_the_peer_does_not_read_and_told_when_it_does() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.transport.is_stuck = True
            run = entry_run(7, 0, [message(b"x" * FLUSH_BYTES)])
            delivered = 0
            while consumer.sink.is_writable:
                consumer.sink.deliver(run, range(1), None, None, None)
                delivered += FLUSH_BYTES
                assert delivered <= HIGH_WATER_BYTES + 2 * FLUSH_BYTES
            assert delivered > HIGH_WATER_BYTES - FLUSH_BYTES
            assert consumer.writable_count == 0
            peer.transport.read_all()
            assert (consumer.sink.is_writable, consumer.writable_count) == (True, 1)

    play(scenario)


def test_a_publisher_that_reads_late_is_not_given_up() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            peer.transport.is_stuck = True
            for _ in range(20):
                peer.feed(sends(1000))
                await settle()
            assert not peer.transport.closed
            peer.transport.read_all()
            assert len(peer.answers()) == 20_000
            assert len(taken.payloads) == 20_000

    play(scenario)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60), st.integers(1, 400)), max_size=60))
def test_a_gate_is_shut_only_while_something_is_in_flight(steps: list[tuple[int, int, int]]) -> None:
    """Each step: a connection publishes; now and then the oldest of a connection's runs is answered. At the end all are."""
    memory = PublishMemory(2000)
    told = [0, 0, 0]

    def teller(index: int) -> Callable[[], None]:
        return lambda: told.__setitem__(index, told[index] + 1)

    gates = [PublishGate(memory, 100, teller(index)) for index in range(3)]
    in_flight: list[list[tuple[int, int]]] = [[], [], []]
    for index, messages, size in steps:
        if gates[index].is_shut and in_flight[index]:
            gates[index].ended(*in_flight[index].pop(0))
        else:
            in_flight[index].append((messages, size))
            gates[index].began(messages, size)
        for gate, runs in zip(gates, in_flight, strict=True):
            if sum(count for count, _ in runs) >= 100:
                assert gate.is_shut
    for gate, runs in zip(gates, in_flight, strict=True):
        for run in runs:
            gate.ended(*run)
    assert [gate.is_shut for gate in gates] == [False] * 3
    assert all(count % 2 == 0 for count in told)
