"""One stored entry as an HTTP answer: its payload is the body, its metadata are headers (PersistentTopicsBase). Pure.

A batch is answered whole, with X-Pulsar-num-batch-message; clients take it apart.
"""

import json
import re
from datetime import UTC, datetime

from starlette.responses import Response

from wire.compression import decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import BrokerEntryMetadata, MessageMetadata
from wire.int64 import signed
from wire.payloads import broker_entry_metadata, message_metadata, split_section
from wire.position import Position
from wire.run import EntryRun

from .answers import Refusal

_CONTROL = re.compile("[\x00-\x1f\x7f]")


def message_answer(run: EntryRun) -> Response:
    """The first entry of the run. Refusal(422) when it cannot be taken apart: so a client has sent it (Apache: 500)."""
    position = Position(run.ledger_id, run.first_entry_id)
    try:
        section = split_section(run.payload(run.first_entry_id))
        metadata = message_metadata(section)
        stamp = broker_entry_metadata(section) or BrokerEntryMetadata()
    except MalformedPayload as error:
        raise Refusal(422, f"entry {position} cannot be read: {error}") from error
    body = _plain(position, metadata, bytes(section.payload))
    headers = _headers(position, metadata, stamp, len(section.payload))
    return Response(body, headers=headers, media_type="application/octet-stream")


def _plain(position: Position, metadata: MessageMetadata, payload: bytes) -> bytes:
    """Uncompressed, unless it is encrypted: then it is nobody's but the client's."""
    if metadata.encryption_keys:
        return payload
    try:
        return bytes(decompress(metadata.compression, payload, metadata.uncompressed_size))
    except MalformedPayload as error:
        raise Refusal(422, f"entry {position} {error}") from error


def _headers(position: Position, metadata: MessageMetadata, stamp: BrokerEntryMetadata, stored_bytes: int) -> dict[str, str]:
    is_batch = metadata.HasField("num_messages_in_batch")
    found: dict[str, str | None] = {
        "X-Pulsar-Message-ID": str(position),
        "X-Pulsar-publish-time": _time(metadata.publish_time),
        "X-Pulsar-producer-name": metadata.producer_name,
        "X-Pulsar-sequence-id": str(signed(metadata.sequence_id)),
        "X-Pulsar-Is-Encrypted": str(bool(metadata.encryption_keys)).lower(),
        "X-Pulsar-event-time": _time(metadata.event_time) if metadata.event_time else None,
        "X-Pulsar-deliver-at-time": _time(metadata.deliver_at_time) if metadata.deliver_at_time else None,
        "X-Pulsar-partition-key": metadata.partition_key if metadata.HasField("partition_key") else None,
        "X-Pulsar-num-batch-message": str(metadata.num_messages_in_batch) if is_batch else None,
        "X-Pulsar-batch-size": str(stored_bytes) if is_batch else None,
        "X-Pulsar-uncompressed-size": str(metadata.uncompressed_size) if metadata.uncompressed_size else None,
        "X-Pulsar-Broker-Entry-METADATA-timestamp": _time(stamp.broker_timestamp) if stamp.broker_timestamp else None,
        "X-Pulsar-Broker-Entry-METADATA-index": str(stamp.index) if stamp.HasField("index") else None,
        "X-Pulsar-PROPERTY": json.dumps({pair.key: pair.value for pair in metadata.properties}),
    }
    return {name: _one_line(value) for name, value in found.items() if value is not None}


def _one_line(text: str) -> str:
    """What a client named itself must not become a header of its own."""
    return _CONTROL.sub(" ", text).strip().encode("latin-1", "replace").decode("latin-1")


def _time(word: int) -> str:
    """Clients may have written anything: of a time that no calendar has, its milliseconds are told."""
    milliseconds = signed(word)
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
