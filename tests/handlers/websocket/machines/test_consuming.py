"""A consumer's session: messages out, acknowledgements and permits in."""

import base64
import json
from typing import Any

import pytest

from handlers.websocket.machines.consuming import OLD_BATCH_MAX, TURN_MESSAGES, ConsumerSession
from handlers.websocket.machines.effects import Bury, Effect, Reattach, Unsubscribe
from handlers.websocket.machines.message_ids import message_id_of, text_of
from handlers.websocket.machines.options import ConsumerOptions
from tests.handlers.websocket.machines.machine_peer import START, TOPIC, after, batch, ended, message, sent, told
from wire.client_end import Received
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandCloseConsumer, CommandReachedEndOfTopic, CommandSubscribe
from wire.payloads import message_metadata, payload_section, split_section

ATTACHED = BaseCommand(type=BaseCommand.SUCCESS)


def session(topics: int = 1, **options: Any) -> tuple[ConsumerSession, list[Effect]]:
    names = [f"{TOPIC}-partition-{number}" for number in range(topics)] if topics > 1 else [TOPIC]
    made = ConsumerSession(ConsumerOptions(**options), names, "s", "c")
    return made, [effect for place in range(topics) for effect in made.on_attached(place, ATTACHED, START)]


def permits(effects: list[Effect]) -> list[tuple[int, int]]:
    found = [(place, command) for place, command, _ in sent(effects) if command.type == BaseCommand.FLOW]
    return [(place, command.flow.message_permits) for place, command in found]


def acked(effects: list[Effect]) -> list[int]:
    return [command.ack.message_id[0].entry_id for _, command, _ in sent(effects) if command.type == BaseCommand.ACK]


def redelivered(effects: list[Effect]) -> list[list[int]]:
    found = [c for _, c, _ in sent(effects) if c.type == BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES]
    return [[at.entry_id for at in command.redeliver_unacknowledged_messages.message_ids] for command in found]


def command(message_id: str | None = None, **members: Any) -> bytes:
    return json.dumps({"messageId": message_id, **members}).encode()


def test_a_message_is_told_in_apaches_form_and_acknowledged_by_its_id() -> None:
    machine, begun = session()
    assert permits(begun) == [(0, 1000)]
    found = told(machine.on_received(0, message(3, b"hi", redeliveries=2), START))
    assert found == [
        {
            "messageId": text_of(5, 3, -1),
            "payload": base64.b64encode(b"hi").decode(),
            "properties": {},
            "publishTime": "2023-11-14T22:13:20.123Z",
            "redeliveryCount": 2,
        }
    ]
    assert acked(machine.on_text(command(found[0]["messageId"]), START)) == [3]


def test_a_client_has_no_more_unacknowledged_messages_than_its_queue_is_large() -> None:
    machine, begun = session(window=4)
    assert permits(begun) == [(0, 4)]
    effects = [effect for entry in range(4) for effect in machine.on_received(0, message(entry), START)]
    assert len(told(effects)) == 4
    assert permits(effects) == []
    after_one = machine.on_text(command(told(effects)[0]["messageId"]), START)
    assert permits(after_one) == [(0, 1)]
    assert permits(machine.on_text(command(told(effects)[0]["messageId"]), START)) == [], "twice counts once"


def test_a_client_in_pull_mode_is_sent_as_many_messages_as_it_permits() -> None:
    machine, begun = session(is_pulled=True)
    assert begun == []
    effects = machine.on_text(command(type="permit", permitMessages=2), START)
    assert permits(effects) == [(0, 2)]
    assert len(told(machine.on_received(0, batch(1, [b"a", b"b", b"c"]), START))) == 2, "a batch may be larger"
    effects = machine.on_text(command(type="permit", permitMessages=5), START)
    assert len(told(effects)) == 1
    assert permits(effects) == [(0, 4)]
    assert machine.on_text(command(type="permit", permitMessages=-9), START) == []


def test_a_batch_is_acknowledged_once_all_its_messages_are() -> None:
    machine, _ = session()
    ids = [each["messageId"] for each in told(machine.on_received(0, batch(1, [b"a", b"b", b"c"]), START))]
    assert [acked(machine.on_text(command(ids[at]), START)) for at in (2, 0, 0, 1)] == [[], [], [], [1]]


@pytest.mark.parametrize(("topic", "partition"), [(f"{TOPIC}-partition-7", 7), (f"{TOPIC}-partition-x", -1), (TOPIC, -1)])
def test_the_partition_in_an_id_is_that_of_the_topic_name(topic: str, partition: int) -> None:
    """A name that ends in -partition-x, of no partition, made an error of the first message."""
    machine = ConsumerSession(ConsumerOptions(), [topic], "s", "c")
    machine.on_attached(0, ATTACHED, START)
    [first] = told(machine.on_received(0, message(3), START))
    found = message_id_of(first["messageId"])
    assert (found.partition, found.entry_id) == (partition, 3)


def test_a_message_of_an_earlier_session_is_acknowledged_by_its_id() -> None:
    machine, _ = session()
    assert acked(machine.on_text(command(text_of(9, 8, -1)), START)) == [8]
    assert acked(machine.on_text(command(text_of(9, 7, -1, 0, 2)), START)) == []
    assert acked(machine.on_text(command(text_of(9, 7, -1, 1, 2)), START)) == [7]


@pytest.mark.parametrize(("index", "size"), [(0, OLD_BATCH_MAX + 1), (5, 5), (0, 0), (2**31 - 1, 2**31 - 1)])
def test_ids_of_batches_that_cannot_be_are_not_remembered(index: int, size: int) -> None:
    machine, _ = session()
    assert acked(machine.on_text(command(text_of(9, 7, -1, index, size)), START)) == []
    assert machine._open_batches == {}


def test_indexes_beyond_a_batch_are_not_remembered() -> None:
    machine, _ = session()
    machine.on_received(0, batch(1, [b"a", b"b"]), START)
    for index in range(2, 100):
        assert acked(machine.on_text(command(text_of(5, 1, -1, index, 1000)), START)) == []
    [open_batch] = machine._open_batches.values()
    assert len(open_batch.done) == 0


def test_a_refused_message_comes_again_after_the_delay() -> None:
    machine, _ = session(subscription_type=CommandSubscribe.Shared, nack_delay_ms=500, window=1)
    first = told(machine.on_received(0, message(3), START))[0]
    effects = machine.on_text(command(first["messageId"], type="negativeAcknowledge"), START)
    assert redelivered(effects) == []
    assert permits(effects) == [(0, 1)]
    assert machine.due() == START.seconds + 0.5
    assert redelivered(machine.on_timer(after(0.5))) == [[3]]
    assert machine.due() is None


def test_an_exclusive_consumer_gets_everything_again_that_it_has_not_acknowledged() -> None:
    machine, _ = session(nack_delay_ms=0, window=3)
    ids = [told(machine.on_received(0, message(entry), START))[0]["messageId"] for entry in range(3)]
    machine.on_text(command(ids[1], type="negativeAcknowledge"), START)
    effects = machine.on_timer(START)
    assert redelivered(effects) == [[]]
    assert sum(count for _, count in permits(effects)) == 2, "the first permit was given at the refusal"


def test_a_message_that_the_client_keeps_too_long_comes_again() -> None:
    machine, _ = session(subscription_type=CommandSubscribe.Shared, ack_timeout_ms=1000)
    ids = [told(machine.on_received(0, message(entry), START))[0]["messageId"] for entry in range(2)]
    machine.on_text(command(ids[0]), START)
    assert redelivered(machine.on_timer(after(1))) == [[1]]


def test_a_lost_consumer_forgets_its_permits_and_what_waits() -> None:
    machine, _ = session(is_pulled=True)
    machine.on_text(command(type="permit", permitMessages=2), START)
    machine.on_received(0, batch(1, [b"a", b"b", b"c"]), START)
    machine.on_lost(0)
    assert machine.on_attached(0, ATTACHED, START) == []
    assert permits(machine.on_text(command(type="permit", permitMessages=1), START)) == [(0, 1)]


def test_partitions_share_the_permits_and_their_number_is_in_the_id() -> None:
    machine, begun = session(topics=2, window=10)
    assert permits(begun) == [(0, 5), (1, 5)]
    found = told(machine.on_received(1, message(3, place=1), START))[0]["messageId"]
    assert found == text_of(5, 3, 1)
    assert [(place, c.ack.consumer_id) for place, c, _ in sent(machine.on_text(command(found), START))] == [(1, 1)]


def test_the_end_of_a_topic_is_told_when_asked_for() -> None:
    machine, _ = session()
    assert told(machine.on_text(command(type="isEndOfTopic"), START)) == [{"endOfTopic": False}]
    reached = BaseCommand(type=BaseCommand.REACHED_END_OF_TOPIC, reached_end_of_topic=CommandReachedEndOfTopic(consumer_id=0))
    machine.on_received(0, Received(reached, b""), START)
    assert told(machine.on_text(command(type="isEndOfTopic"), START)) == [{"endOfTopic": True}]


def test_an_unsubscribed_session_stays_and_gets_nothing_more() -> None:
    machine, _ = session()
    closed = BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=CommandCloseConsumer(consumer_id=0, request_id=1))
    assert machine.on_received(0, Received(closed, b""), START) == [Reattach(0, is_closed=True)]
    assert machine.on_text(command(type="unsubscribe"), START) == [Unsubscribe(0)]
    assert machine.on_received(0, Received(closed, b""), START) == []


@pytest.mark.parametrize(
    "given", [b"{", b"[]", b"{}", b'{"messageId":5}', b'{"messageId":"%"}', b'{"type":"permit"}', b"\xff", b"[" * 100_000]
)
def test_a_command_that_cannot_be_read_ends_the_session_with_1007(given: bytes) -> None:
    machine, _ = session()
    assert ended(machine.on_text(given, START)) == [1007]


def test_a_message_that_cannot_be_read_is_left_out_and_stays_unacknowledged() -> None:
    machine, _ = session(window=2)
    broken = message(1)
    assert told(machine.on_received(0, Received(broken.command, broken.section[:-1] + b"?"), START)) == []
    assert len(told(machine.on_received(0, message(2), START))) == 1


def test_a_large_batch_is_sent_in_parts_and_decoded_as_it_is_sent() -> None:
    machine, _ = session(window=600)
    effects = machine.on_received(0, batch(1, [b"x"] * 1000), START)
    assert len(told(effects)) == TURN_MESSAGES
    assert machine.due() == 0.0
    count = len(told(effects))
    while machine.due() is not None:
        effects = machine.on_timer(START)
        assert len(told(effects)) <= TURN_MESSAGES
        count += len(told(effects))
    assert count == 600


def test_the_rest_of_a_batch_that_breaks_off_is_left_out() -> None:
    machine, _ = session()
    whole = batch(1, [b"a", b"b", b"c"])
    metadata = message_metadata(split_section(whole.section))
    metadata.num_messages_in_batch = 5
    section = payload_section(metadata, bytes(split_section(whole.section).payload))
    assert len(told(machine.on_received(0, Received(whole.command, section), START))) == 3
    assert len(told(machine.on_received(0, message(2), START))) == 1


def test_a_message_that_came_again_too_often_is_buried_and_acknowledged_once_it_is_stored() -> None:
    machine, _ = session(
        subscription_type=CommandSubscribe.Shared, redeliveries_max=2, dead_letter_topic="dead", nack_delay_ms=0
    )
    assert len(told(machine.on_received(0, message(3, redeliveries=2), START))) == 1
    effects = machine.on_received(0, message(3, b"hi", redeliveries=3), START)
    assert told(effects) == []
    (letter,) = [json.loads(each.text) for each in effects if isinstance(each, Bury)]
    assert base64.b64decode(letter["payload"]) == b"hi"
    assert letter["properties"] == {"REAL_TOPIC": TOPIC, "ORIGIN_MESSAGE_ID": "5:3:-1"}
    assert acked(machine.on_buried(letter["context"], START, is_stored=True)) == [3]
    assert machine.on_buried(letter["context"], START, is_stored=True) == [], "once"
    again = machine.on_received(0, message(4, redeliveries=3), START)
    (other,) = [json.loads(each.text) for each in again if isinstance(each, Bury)]
    assert machine.on_buried(other["context"], START, is_stored=False) == []
    assert redelivered(machine.on_timer(START)) == [[4]]
    assert machine.dead_letter_topic == "persistent://public/default/dead"
