"""JSON of WebSocket sessions: Apache's ProducerMessage, ProducerAck, ConsumerCommand, ConsumerMessage, EndOfTopicResponse.
Pure.

A scalar stands for its text where a text is expected, and unknown members are left out, as Jackson does it for Apache.
"""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..errors import WebSocketError

Scalar = str | int | float | bool | None


class BadJson(Exception):
    """A text that is not the JSON that was expected."""


class BadPayload(Exception):
    """A message with a member that cannot be used. `context`: of its receipt."""

    def __init__(self, reason: str, context: str | None) -> None:
        super().__init__(reason)
        self.context = context


class ProducerMessage(msgspec.Struct, rename="camel"):
    """Message from a producer. Times in milliseconds; `event_time` in ISO 8601."""

    payload: Scalar = None
    properties: dict[str, Scalar] | None = None
    context: Scalar = None
    key: Scalar = None
    replication_clusters: list[str] | None = None
    event_time: str | None = None
    deliver_at: int = 0
    deliver_after_ms: int = 0


class ConsumerCommand(msgspec.Struct, rename="camel"):
    """Command from a consumer or reader; without a known `type` it acknowledges `message_id`."""

    type: Scalar = None
    message_id: str | None = None
    permit_messages: int | None = None


_producer_messages = msgspec.json.Decoder(ProducerMessage, strict=False)
_consumer_commands = msgspec.json.Decoder(ConsumerCommand, strict=False)


def read_message(text: bytes) -> ProducerMessage:
    """BadJson."""
    return _read(_producer_messages, text)  # type: ignore[no-any-return]  # the decoder's type


def read_command(text: bytes) -> ConsumerCommand:
    """BadJson."""
    return _read(_consumer_commands, text)  # type: ignore[no-any-return]  # the decoder's type


def _read(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadJson(str(error) or "JSON that is nested too deeply") from None


def text_of(value: Scalar) -> str | None:
    """Text that a scalar stands for."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            return msgspec.json.encode(value).decode()


def payload_of(message: ProducerMessage) -> bytes:
    """BadPayload."""
    context = text_of(message.context)
    text = text_of(message.payload)
    if text is None:
        raise BadPayload("the member payload is missing", context)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4) if "=" not in text else text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadPayload(f"Invalid Base64 message-payload error={error}", context) from None


def event_time_of(message: ProducerMessage) -> int:
    """Milliseconds; 0 for none. BadPayload."""
    text = message.event_time
    if text is None:
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or (milliseconds := round(moment.timestamp() * 1000)) < 0:
        reason = f"eventTime: expected a time such as 2026-01-31T12:00:00.000Z, not {text[:60]!r}"
        raise BadPayload(reason, text_of(message.context))
    return milliseconds


def time_text(milliseconds: int) -> str:
    """Apache's form of times, of UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{rest:03d}Z"
    except (OverflowError, ValueError, OSError):
        return "9999-12-31T23:59:59.999Z"  # a producer may state any time


def ack_text(message_id: str, context: str | None) -> str:
    return _encoded({"result": "ok", "messageId": message_id, "context": context})


def send_error_text(error: WebSocketError, reason: str, context: str | None) -> str:
    return _encoded({"result": f"send-error:{error.value}", "errorMsg": reason, "context": context})


def end_of_topic_text(*, has_ended: bool) -> str:
    return _encoded({"endOfTopic": has_ended})


def message_text(message_id: str, payload: bytes, about: Mapping[str, Any]) -> str:
    """ConsumerMessage. `about`: its other members; those that are None are left out."""
    return _encoded({"messageId": message_id, "payload": base64.b64encode(payload).decode("ascii"), **about})


def _encoded(members: Mapping[str, Any]) -> str:
    return msgspec.json.encode({name: value for name, value in members.items() if value is not None}).decode()
