"""Frames of a consumer leave in the order of their events, also where a turn of the loop keeps runs for its end."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from bookkeeper.write.parts import NOT_TAKEN, Part
from broker.connection.consumers.consumer_handle import ConsumerHandle
from broker.connection.link import Link
from broker.topic.dispatch.deliveries import deliveries_of
from tests.simulation.worlds import run
from wire.frames import next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata
from wire.run import EntryBatch, EntryRun, batch_of

LEDGER = 7


class WrittenLink:
    """Connection that keeps what is written. `is_writable`: the peer reads."""

    protocol_version = 20
    gets_broker_entry_metadata = False

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_writable = True

    def deliver(self, frames: bytes) -> None:
        self.written += frames

    answer = deliver

    def events(self) -> list[str]:
        """Name of each frame, with its entry id where it is a message."""
        data, found, at = bytes(self.written), [], 0
        while at < len(data):
            frame = next_frame(data, at, len(data))
            assert frame is not None, "half a frame was written"
            command = frame.command
            is_message = command.HasField("message")
            name = f"message {command.message.message_id.entry_id}" if is_message else BaseCommand.Type.Name(command.type)
            found.append(name)
            at = frame.end
        return found


class Reader:
    def __init__(self) -> None:
        self.told = 0

    def delivered(self) -> None:
        self.told += 1


def one_entry() -> EntryBatch:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString()
    return batch_of([len(metadata).to_bytes(4) + metadata + b"body"])


def a_part(entry_id: int) -> Part:
    part = Part(one_entry(), 0, 1, NOT_TAKEN, None, 0.0)
    part.ledger_id, part.first_entry_id, part.last_entry_id = LEDGER, entry_id, entry_id
    return part


def a_run(entry_id: int) -> EntryRun:
    batch = one_entry()
    return EntryRun(LEDGER, entry_id, bytes(batch.buffer), batch.offsets)


def given_first(then: Callable[[ConsumerHandle], Any], link: WrittenLink, reader: Reader) -> None:
    """Entry 0 is given to the consumer and waits for the end of the turn; then something else happens to it."""

    async def scenario() -> None:
        handle = ConsumerHandle(cast(Link, link), 1, 0, lambda _handle, _reason: link.deliver(b""))
        deliveries = deliveries_of(asyncio.get_running_loop())
        deliveries.by_link[cast(Link, link)] = [(handle, a_part(0), None, reader)]
        deliveries.send_soon()
        then(handle)
        await asyncio.sleep(0)
        assert not deliveries.by_link

    run(lambda _: scenario())


def test_a_run_that_is_delivered_at_once_does_not_overtake_one_that_waits_for_the_end_of_the_turn() -> None:
    link, reader = WrittenLink(), Reader()
    given_first(lambda handle: handle.deliver(a_run(1), range(1), None, None, None), link, reader)
    assert link.events() == ["message 0", "message 1"]
    assert reader.told == 0


@pytest.mark.parametrize(
    ("then", "name"),
    [
        (lambda handle: handle.active_changed(True), "ACTIVE_CONSUMER_CHANGE"),
        (lambda handle: handle.reached_end_of_topic(), "REACHED_END_OF_TOPIC"),
    ],
)
def test_a_notice_does_not_overtake_a_run_that_waits_for_the_end_of_the_turn(
    then: Callable[[ConsumerHandle], Any], name: str
) -> None:
    link = WrittenLink()
    given_first(then, link, Reader())
    assert link.events() == ["message 0", name]


def test_the_end_of_a_consumer_does_not_overtake_a_run_that_waits_for_the_end_of_the_turn() -> None:
    link, at_end = WrittenLink(), list[list[str]]()

    async def scenario() -> None:
        handle = ConsumerHandle(cast(Link, link), 1, 0, lambda _handle, _reason: at_end.append(link.events()))
        deliveries_of(asyncio.get_running_loop()).by_link[cast(Link, link)] = [(handle, a_part(0), None, Reader())]
        handle.closed("the topic is being unloaded")

    run(lambda _: scenario())
    assert at_end == [["message 0"]]


def test_a_consumer_whose_peer_does_not_read_hears_of_it_when_its_run_is_sent_first() -> None:
    link, reader = WrittenLink(), Reader()
    link.is_writable = False
    given_first(lambda handle: handle.active_changed(True), link, reader)
    assert reader.told == 1
