"""Frames of a broker for the machines of sessions, and what came of them, in tests."""

import json
from collections.abc import Sequence
from typing import Any

from handlers.websocket.machines.effects import Effect, End, Now, Send, Tell
from wire.client_end import Received
from wire.frames import next_frame
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandProducerSuccess,
    CommandSendReceipt,
    MessageIdData,
    MessageMetadata,
    SingleMessageMetadata,
)
from wire.payloads import payload_section

START = Now(100.0, 1_700_000_000_000)
TOPIC = "persistent://a/b/t"


def after(seconds: float) -> Now:
    return Now(START.seconds + seconds, START.ms + int(seconds * 1000))


def told(effects: Sequence[Effect]) -> list[Any]:
    return [json.loads(each.text) for each in effects if isinstance(each, Tell)]


def sent(effects: Sequence[Effect]) -> list[tuple[int, BaseCommand, bytes]]:
    """Place, command and payload section of each frame."""
    found = []
    for each in effects:
        if isinstance(each, Send):
            frame = next_frame(each.frame, 0, len(each.frame))
            assert frame is not None
            found.append((each.place, frame.command, bytes(frame.payload)))
    return found


def ended(effects: Sequence[Effect]) -> list[int]:
    return [each.code for each in effects if isinstance(each, End)]


def success(name: str = "p-1", last_sequence_id: int = -1) -> BaseCommand:
    answer = CommandProducerSuccess(request_id=1, producer_name=name, last_sequence_id=last_sequence_id)
    return BaseCommand(type=BaseCommand.PRODUCER_SUCCESS, producer_success=answer)


def receipt(place: int, sequence_id: int, entry: int) -> Received:
    about = CommandSendReceipt(producer_id=place, sequence_id=sequence_id)
    about.message_id.CopyFrom(MessageIdData(ledger_id=5, entry_id=entry))
    return Received(BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=about), b"")


def message(entry: int, payload: bytes = b"x", *, place: int = 0, redeliveries: int = 0) -> Received:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1_700_000_000_123)
    return _message(entry, payload_section(metadata, payload), place, redeliveries)


def batch(entry: int, payloads: Sequence[bytes], *, place: int = 0) -> Received:
    body = b""
    for payload in payloads:
        encoded = SingleMessageMetadata(payload_size=len(payload)).SerializeToString()
        body += len(encoded).to_bytes(4) + encoded + payload
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=7, num_messages_in_batch=len(payloads))
    return _message(entry, payload_section(metadata, body), place, 0)


def _message(entry: int, section: bytes, place: int, redeliveries: int) -> Received:
    about = CommandMessage(consumer_id=place, redelivery_count=redeliveries)
    about.message_id.CopyFrom(MessageIdData(ledger_id=5, entry_id=entry))
    return Received(BaseCommand(type=BaseCommand.MESSAGE, message=about), section)
