"""A producer's session: JSON in, SENDs and receipts out."""

import base64
import json
from typing import Any

import pytest

from handlers.websocket.machines.effects import Reattach
from handlers.websocket.machines.options import ProducerOptions
from handlers.websocket.machines.producing import PENDING_BYTES_MAX, ProducerSession
from tests.handlers.websocket.machines.machine_peer import START, TOPIC, after, receipt, sent, success, told
from wire.client_end import Received
from wire.generated.pulsar_api_pb2 import ZLIB, BaseCommand, CommandCloseProducer, CommandSendError, ServerError
from wire.payloads import message_metadata, split_section
from wire.received import decoded


def session(topics: int = 1, **options: Any) -> ProducerSession:
    names = [f"{TOPIC}-partition-{number}" for number in range(topics)] if topics > 1 else [TOPIC]
    made = ProducerSession(ProducerOptions(**options), names, 0)
    for place in range(topics):
        made.on_attached(place, success(), START)
    return made


def text(payload: bytes = b"x", **members: Any) -> bytes:
    return json.dumps({"payload": base64.b64encode(payload).decode(), **members}).encode()


def test_a_message_is_sent_with_all_its_members_and_its_receipt_is_told() -> None:
    machine = session()
    members = {
        "properties": {"a": "b", "n": 1, "t": True},
        "key": "k",
        "context": 7,
        "eventTime": "2026-01-31T12:00:00.005+01:00",
    }
    ((place, command, section),) = sent(machine.on_text(text(b"hello", **members), START))
    assert (place, command.send.sequence_id, command.send.num_messages) == (0, 0, 1)
    message = decoded(section).messages[0]
    assert (message.payload, message.key, message.properties) == (b"hello", "k", {"a": "b", "n": "1", "t": "true"})
    assert (message.event_time, message.publish_time, message.producer_name) == (1769857200005, START.ms, "p-1")
    assert told(machine.on_received(0, receipt(0, 0, 9), START)) == [{"result": "ok", "messageId": "CAUQCQ==", "context": "7"}]


def test_a_delayed_message_says_when_it_is_delivered() -> None:
    machine = session()
    for members, expected in (({"deliverAt": 77}, 77), ({"deliverAfterMs": 50}, START.ms + 50), ({"deliverAt": "78"}, 78)):
        ((_, _, section),) = sent(machine.on_text(text(**members), START))
        assert message_metadata(split_section(section)).deliver_at_time == expected


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (b"{", "send-error:3"),
        (b"[]", "send-error:3"),
        (b"\xff\xfe", "send-error:3"),
        (b'{"payload":["x"]}', "send-error:3"),
        (b'{"payload":"eA==","properties":{"a":{}}}', "send-error:3"),
        (b'{"payload":"eA==","extra":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "send-error:3"),
        (b"{}", "send-error:7"),
        (b'{"payload":null}', "send-error:7"),
        (b'{"payload":"%%"}', "send-error:7"),
        (b'{"payload":"eA==","eventTime":"noon"}', "send-error:7"),
        (b'{"payload":"eA==","eventTime":"2026-01-31T12:00:00"}', "send-error:7"),
        (b'{"payload":"eA==","deliverAfterMs":9223372036854775807}', "send-error:7"),
    ],
)
def test_a_message_that_cannot_be_read_is_answered_with_apaches_code_and_the_next_one_is_sent(
    given: bytes, result: str
) -> None:
    machine = session()
    effects = machine.on_text(given, START)
    assert [each["result"] for each in told(effects)] == [result]
    assert sent(effects) == []
    assert len(sent(machine.on_text(text(), START))) == 1


def test_the_context_of_a_refused_message_is_told() -> None:
    assert told(session().on_text(b'{"payload":"%","context":"c"}', START))[0]["context"] == "c"


def test_a_full_queue_and_a_message_that_is_too_large_are_answered_with_an_error() -> None:
    machine = session(pending_messages_max=2)
    effects = [effect for _ in range(3) for effect in machine.on_text(text(context="c"), START)]
    assert len(sent(effects)) == 2
    assert [(each["result"], each["context"]) for each in told(effects)] == [("send-error:8", "c")]
    machine = session()
    machine.message_bytes_max = 100
    assert told(machine.on_text(text(bytes(101)), START))[0]["result"] == "send-error:8"


def test_a_client_waits_while_too_many_bytes_have_no_receipt() -> None:
    machine = session()
    payload = text(bytes(PENDING_BYTES_MAX // 4))
    for number in range(4):
        assert not machine.is_full, number
        machine.on_text(payload, START)
    assert machine.is_full
    machine.on_received(0, receipt(0, 0, 0), START)
    assert not machine.is_full


def test_a_batch_goes_when_it_is_full_or_its_delay_is_over_and_each_message_has_its_receipt() -> None:
    machine = session(batches=True, batch_messages_max=3, batch_delay_ms=10, compression=ZLIB)
    effects = [effect for number in range(4) for effect in machine.on_text(text(b"%d" % number, context=number), START)]
    ((_, command, section),) = sent(effects)
    assert (command.send.sequence_id, command.send.highest_sequence_id, command.send.num_messages) == (0, 2, 3)
    assert [each.payload for each in decoded(section).messages] == [b"0", b"1", b"2"]
    assert machine.due() == pytest.approx(START.seconds + 0.01)
    ((_, command, _),) = sent(machine.on_timer(after(0.01)))
    assert (command.send.sequence_id, command.send.num_messages) == (3, 1)
    receipts = told(machine.on_received(0, receipt(0, 0, 4), START))
    assert [each["context"] for each in receipts] == ["0", "1", "2"]
    assert len({each["messageId"] for each in receipts}) == 3


def test_a_delayed_message_is_in_no_batch_and_comes_behind_those_before() -> None:
    machine = session(batches=True, batch_delay_ms=1000)
    machine.on_text(text(b"first"), START)
    frames = sent(machine.on_text(text(b"later", deliverAfterMs=5), START))
    assert [decoded(section).messages[0].payload for _, _, section in frames] == [b"first", b"later"]


def test_a_message_without_a_receipt_in_time_is_given_up() -> None:
    machine = session(send_timeout_ms=1000)
    machine.on_text(text(context="c"), START)
    assert machine.due() == START.seconds + 1
    assert told(machine.on_timer(after(1)))[0]["result"] == "send-error:8"
    assert told(machine.on_received(0, receipt(0, 0, 1), after(2))) == [], "a late receipt says nothing"
    assert machine.due() is None


def test_messages_without_a_receipt_are_sent_again_in_order_to_the_next_broker() -> None:
    machine = session()
    first = [effect for number in range(3) for effect in machine.on_text(text(b"%d" % number), START)]
    machine.on_received(0, receipt(0, 0, 0), START)
    machine.on_lost(0)
    assert sent(machine.on_text(text(b"3"), START)) == [], "nothing is sent to nobody"
    again = sent(machine.on_attached(0, success(), START))
    assert [command.send.sequence_id for _, command, _ in again] == [1, 2, 3]
    assert again[:2] == sent(first)[1:]
    assert machine.introduction(0).producer.producer_name == "p-1"


def test_a_closed_producer_is_made_again_and_a_missing_receipt_ends_the_connection() -> None:
    machine = session()
    machine.on_text(text(), START)
    closed = BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=CommandCloseProducer(producer_id=0, request_id=1))
    assert machine.on_received(0, Received(closed, b""), START) == [Reattach(0, is_closed=True)]
    assert machine.on_received(0, receipt(0, 5, 0), START) == [Reattach(0)]


@pytest.mark.parametrize(("code", "is_passing"), [(ServerError.NotAllowedError, False), (ServerError.PersistenceError, True)])
def test_a_refused_message_is_told_unless_another_try_may_help(code: ServerError, is_passing: bool) -> None:
    machine = session()
    machine.on_text(text(context="c"), START)
    error = CommandSendError(producer_id=0, sequence_id=0, error=code, message="no")
    effects = machine.on_received(0, Received(BaseCommand(type=BaseCommand.SEND_ERROR, send_error=error), b""), START)
    if is_passing:
        assert effects == [Reattach(0)]
    else:
        assert told(effects) == [{"result": "send-error:8", "errorMsg": "no", "context": "c"}]


def test_a_partition_is_chosen_by_the_key_and_stands_in_the_message_id() -> None:
    machine = session(topics=3)
    ((place, _, _),) = sent(machine.on_text(text(key="hello"), START))
    assert place == 99162322 % 3
    answer = told(machine.on_received(place, receipt(place, 0, 9), START))[0]
    assert base64.b64decode(answer["messageId"]) == bytes((8, 5, 16, 9, 24, place))


def test_an_initial_sequence_id_and_that_of_a_known_producer_are_continued() -> None:
    machine = ProducerSession(ProducerOptions(name="me"), [TOPIC], 0)
    machine.on_attached(0, success("me", 41), START)
    assert sent(machine.on_text(text(), START))[0][1].send.sequence_id == 42
    machine = session(initial_sequence_id=7)
    assert sent(machine.on_text(text(), START))[0][1].send.sequence_id == 8
