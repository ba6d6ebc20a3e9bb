"""A reader's session: messages from a place on."""

import json
from typing import Any

from handlers.websocket.machines.message_ids import EARLIEST, text_of
from handlers.websocket.machines.options import ReaderOptions
from handlers.websocket.machines.reading import ReaderSession
from tests.handlers.websocket.machines.machine_peer import START, TOPIC, batch, ended, message, sent, told
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageIdData

ATTACHED = BaseCommand(type=BaseCommand.SUCCESS)


def session(**options: Any) -> ReaderSession:
    made = ReaderSession(ReaderOptions(**{"start": EARLIEST, **options}), [TOPIC], "reader-1")
    made.on_attached(0, ATTACHED, START)
    return made


def test_a_reader_begins_at_its_place_and_goes_on_behind_the_last_message_that_was_told() -> None:
    machine = session()
    subscribe = machine.introduction(0).subscribe
    assert (subscribe.subscription, subscribe.durable, subscribe.start_message_id) == ("reader-1", False, EARLIEST)
    assert told(machine.on_received(0, message(3), START))[0]["messageId"] == text_of(5, 3, -1)
    machine.on_lost(0)
    start = machine.introduction(0).subscribe.start_message_id
    assert (start.ledger_id, start.entry_id) == (5, 3)


def test_each_text_of_the_client_makes_room_for_one_message() -> None:
    machine = session(window=2)
    assert len(told(machine.on_received(0, batch(1, [b"a", b"b", b"c", b"d"]), START))) == 2
    assert len(told(machine.on_text(b'{"messageId":"any"}', START))) == 1
    assert told(machine.on_text(json.dumps({"type": "isEndOfTopic"}).encode(), START)) == [{"endOfTopic": False}]


def test_permits_of_a_client_in_pull_mode_make_room() -> None:
    machine = session(is_pulled=True)
    assert machine.on_text(b"{}", START) == []
    effects = machine.on_text(b'{"type":"permit","permitMessages":3}', START)
    assert [command.flow.message_permits for _, command, _ in sent(effects)] == [3]


def test_a_reader_that_begins_inside_a_batch_is_told_the_rest_of_it() -> None:
    machine = session(start=MessageIdData(ledger_id=5, entry_id=1, batch_index=1))
    found = told(machine.on_received(0, batch(1, [b"a", b"b", b"c"]), START))
    assert [each["messageId"] for each in found] == [text_of(5, 1, -1, 2, 3)]


def test_a_text_that_is_no_json_ends_the_session_with_1007() -> None:
    assert ended(session().on_text(b"hello", START)) == [1007]
