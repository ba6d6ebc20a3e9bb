"""Frames of a connection leave in the order of their events, also where a turn of the loop keeps runs for its end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bookkeeper.write.parts import NOT_TAKEN, Part
from broker.connection.consumers.consumer_handle import ConsumerHandle
from broker.topic.dispatch.deliveries import deliveries_of
from tests.broker.connection.peer import Peer, a_peer, play, settle
from tests.broker.dispatchers.test_kernel_newest import entries_of
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.run import EntryRun

LEDGER = 7


class Reader:
    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.told = 0
        self._then = then

    def delivered(self) -> None:
        self.told += 1
        self._then()


def a_part(entry_id: int) -> Part:
    part = Part(entries_of([1], 0), 0, 1, NOT_TAKEN, None, 0.0)
    part.ledger_id, part.first_entry_id, part.last_entry_id = LEDGER, entry_id, entry_id
    return part


def a_run(entry_id: int) -> EntryRun:
    batch = entries_of([1], 0)
    return EntryRun(LEDGER, entry_id, bytes(batch.buffer), batch.offsets)


def events(peer: Peer) -> list[str]:
    """Name of each frame that was written, with its entry id where it is a message."""
    return [
        f"message {command.message.message_id.entry_id}" if command.HasField("message") else BaseCommand.Type.Name(command.type)
        for command in peer.answers()
    ]


def given(peer: Peer, reader: Reader) -> ConsumerHandle:
    """A consumer's handle: entry 0 is given to the consumer and waits for the end of the turn."""
    handle = ConsumerHandle(peer.connection, 1, 0, lambda _handle, _reason: None)
    deliveries = deliveries_of(asyncio.get_running_loop())
    deliveries.by_link[peer.connection] = [(handle, a_part(0), None, reader)]
    deliveries.send_soon()
    return handle


@pytest.mark.parametrize(
    ("then", "name"),
    [
        (lambda handle, _: handle.deliver(a_run(1), range(1), None, None, None), "message 1"),
        (lambda handle, _: handle.active_changed(True), "ACTIVE_CONSUMER_CHANGE"),
        (lambda handle, _: handle.reached_end_of_topic(), "REACHED_END_OF_TOPIC"),
        (
            lambda _, peer: peer.send(
                BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer={"consumer_id": 5, "request_id": 9})
            ),
            "SUCCESS",
        ),
    ],
)
def test_nothing_overtakes_a_run_that_waits_for_the_end_of_the_turn(
    then: Callable[[ConsumerHandle, Peer], Any], name: str
) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            reader = Reader()
            then(given(peer, reader), peer)
            await settle()
            assert events(peer) == ["message 0", name]
            assert reader.told == 0

    play(scenario)


def test_a_consumer_whose_peer_does_not_read_hears_of_it_when_its_run_is_sent_first() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            reader = Reader()
            handle = given(peer, reader)
            peer.connection.pause_writing()
            handle.active_changed(True)
            assert reader.told == 1

    play(scenario)


def test_a_run_of_another_connection_is_not_overtaken_while_the_turn_ends() -> None:
    """The first peer reads no more, so that the next run goes to the second one, whose earlier run is still to be sent."""

    async def scenario() -> None:
        async with a_peer() as first, a_peer() as second:
            handles = list[ConsumerHandle]()
            reader = Reader(lambda: handles[1].deliver(a_run(1), range(1), None, None, None))
            handles += [given(first, reader), given(second, Reader())]
            first.connection.pause_writing()
            await settle()
            assert reader.told == 1
            assert events(second) == ["message 0", "message 1"]

    play(scenario)
