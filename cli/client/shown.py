"""Forms in which a message is printed: Apache's form with `----- got message -----`, or one line of JSON. Pure."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cli.admin.output import dump, plain
from wire.received import Message

BOUNDARY = "----- got message -----"


class Origin(NamedTuple):
    """The place that a message came from. `partition`: -1 for a topic without partitions."""

    topic: str
    ledger_id: int
    entry_id: int
    partition: int
    redelivery_count: int

    def message_id(self, batch_index: int) -> str:
        """A message id as Apache prints one: ledger, entry, partition, and the place in the batch where there is one."""
        text = f"{self.ledger_id}:{self.entry_id}:{self.partition}"
        return text if batch_index < 0 else f"{text}:{batch_index}"


def as_json(message: Message, origin: Origin, content: Any, *, hide_content: bool) -> str:
    """`content`: the payload as it is to be shown. A payload that is no text is there in base64 too."""
    told: dict[str, Any] = {
        "message_id": origin.message_id(message.batch_index),
        "topic": origin.topic,
        "redelivery_count": origin.redelivery_count,
        "producer_name": message.producer_name,
        "sequence_id": message.sequence_id,
        "key": message.key,
        "properties": dict(message.properties),
        "publish_time": message.publish_time,
        "event_time": message.event_time,
    }
    if not hide_content:
        told["payload"] = content
        if not _is_text(message.payload) and isinstance(content, str):
            told["payload_base64"] = base64.b64encode(message.payload).decode()
    return json.dumps(told | _rare(message), ensure_ascii=False, default=str)


def _rare(message: Message) -> dict[str, Any]:
    """Members that most messages do not have."""
    found: dict[str, Any] = {
        "ordering_key": message.ordering_key.decode(errors="replace"),
        "schema_version": int.from_bytes(message.schema_version) if message.schema_version else None,
        "replicated_from": message.replicated_from,
        "index": message.message_index,
    }
    return {key: value for key, value in found.items() if value not in ("", None)}


def as_text(message: Message, origin: Origin, content: str, *, with_metadata: bool) -> str:
    """AbstractCmdConsume.interpretMessage."""
    pairs = ", ".join(f"{key}={value}" for key, value in message.properties.items())
    key = "null" if message.key is None else message.key
    about = f"publishTime:[{message.publish_time}], eventTime:[{message.event_time}], key:[{key}], properties:[{pairs}]"
    line = f"{about}, content:{content}"
    return f"{BOUNDARY}\n{line}{_metadata(message, origin) if with_metadata else ''}"


def _metadata(message: Message, origin: Origin) -> str:
    """The text that --print-metadata adds, as Apache does: nothing for what the message does not have."""
    parts = {
        "event-time": _time(message.event_time) if message.event_time else "",
        "message-id": origin.message_id(message.batch_index),
        "producer-name": message.producer_name,
        "sequence-id": str(message.sequence_id),
        "replicated-from": message.replicated_from,
        "redelivery-count": str(origin.redelivery_count),
        "ordering-key": message.ordering_key.decode(errors="replace"),
        "schema-version": str(int.from_bytes(message.schema_version)) if message.schema_version else "",
        "index": "" if message.message_index is None else str(message.message_index),
    }
    return "".join(f", {name}:{value}" for name, value in parts.items() if value)


def content_of(payload: bytes, *, hexadecimal: bool) -> str:
    return dump(payload) if hexadecimal else payload.decode(errors="replace")


def value_text(value: Any) -> str:
    """The text of a decoded value, as Java prints a map."""
    return plain(_printable(value))


def _printable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _printable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_printable(each) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "NULL" if value is None else value


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().isoformat(timespec="milliseconds")


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
