"""One stored entry as an HTTP answer: its payload is the body, its metadata are headers (PersistentTopicsBase). Pure.

A batch is answered whole, with X-Pulsar-num-batch-message; clients take it apart.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from starlette.responses import Response

from wire.compression import decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import BrokerEntryMetadata, CompressionType, MessageMetadata
from wire.int64 import signed
from wire.payloads import broker_entry_metadata, message_metadata, split_section
from wire.position import Position
from wire.run import EntryRun
from wire.transactions import TxnId

from ....topic.statistics.transaction_facts import BufferFacts, InBufferFacts
from ...rest.answers import Refusal

_CONTROL = re.compile("[\x00-\x1f\x7f]")


class TransactionFacts(Protocol):
    """Facts of a topic that say whether a message counts; the methods are `Topic`'s."""

    def transaction_buffer(self) -> BufferFacts: ...
    def transaction_in_buffer(self, txn_id: TxnId) -> InBufferFacts: ...


def message_answer(run: EntryRun, facts: TransactionFacts | None = None) -> Response:
    """The first entry of the run. Refusal(422) when it cannot be taken apart: so a client has sent it (Apache: 500)."""
    position = Position(run.ledger_id, run.first_entry_id)
    try:
        section = split_section(run.payload(run.first_entry_id))
        metadata = message_metadata(section)
        stamp = broker_entry_metadata(section) or BrokerEntryMetadata()
    except MalformedPayload as error:
        raise Refusal(422, f"entry {position} cannot be read: {error}") from error
    body = _plain(position, metadata, bytes(section.payload))
    headers = _headers(position, metadata, stamp, len(section.payload), facts)
    answer = Response(body, media_type="application/octet-stream")
    answer.raw_headers += [(name.encode(), _one_line(text).encode("latin-1")) for name, text in headers]
    return answer


def _plain(position: Position, metadata: MessageMetadata, payload: bytes) -> bytes:
    """Uncompressed, unless it is encrypted: then only the client can read it."""
    if metadata.encryption_keys:
        return payload
    try:
        return bytes(decompress(metadata.compression, payload, metadata.uncompressed_size))
    except MalformedPayload as error:
        raise Refusal(422, f"entry {position} {error}") from error


def _headers(
    position: Position, metadata: MessageMetadata, stamp: BrokerEntryMetadata, stored_bytes: int, facts: TransactionFacts | None
) -> Iterator[tuple[str, str]]:
    """Names as Apache writes them, capitals too: Java's client compares that of the properties letter by letter."""
    yield "X-Pulsar-Message-ID", str(position)
    yield "X-Pulsar-PROPERTY", json.dumps({pair.key: pair.value for pair in metadata.properties})
    if stamp.broker_timestamp:
        yield "X-Pulsar-Broker-Entry-METADATA-timestamp", _time(stamp.broker_timestamp)
    if stamp.HasField("index"):
        yield "X-Pulsar-Broker-Entry-METADATA-index", str(stamp.index)
    if metadata.HasField("num_messages_in_batch"):
        yield "X-Pulsar-batch-size", str(stored_bytes)
    if metadata.HasField("num_chunks_from_msg"):
        yield "X-Pulsar-PROPERTY-TOTAL-CHUNKS", str(metadata.num_chunks_from_msg)
        yield "X-Pulsar-PROPERTY-CHUNK-ID", str(metadata.chunk_id)
    yield "X-Pulsar-Is-Encrypted", str(bool(metadata.encryption_keys)).lower()
    for name, told in _WORDS.items():
        if metadata.HasField(name):
            yield f"X-Pulsar-{told[0]}", told[1](getattr(metadata, name))
    yield from (("X-Pulsar-replicated-to", cluster) for cluster in metadata.replicate_to)
    yield from (("X-Pulsar-Base64-encryption-keys", _base64(keys.SerializeToString())) for keys in metadata.encryption_keys)
    if facts is not None:
        yield from _of_transaction(position, metadata, facts)


def _of_transaction(position: Position, metadata: MessageMetadata, facts: TransactionFacts) -> Iterator[tuple[str, str]]:
    if metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits"):
        txn_id = TxnId(metadata.txnid_most_bits, metadata.txnid_least_bits)
        yield "X-Pulsar-txn-aborted", _word(facts.transaction_in_buffer(txn_id).is_aborted)
    buffer = facts.transaction_buffer()
    ledger_id, _, entry_id = buffer.max_read_position.partition(":")
    is_uncommitted = buffer.is_used and position > Position(int(ledger_id), int(entry_id))
    yield "X-Pulsar-txn-uncommitted", _word(is_uncommitted)


def _one_line(text: str) -> str:
    """Returns a header without line ends: a client's own name must not become a header."""
    return _CONTROL.sub(" ", text).strip().encode("latin-1", "replace").decode("latin-1")


def _time(word: int) -> str:
    """Clients may have written anything: a time beyond the calendar is shown in milliseconds."""
    milliseconds = signed(word)
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _word(value: bool) -> str:
    return "true" if value else "false"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _signed(word: int) -> str:
    return str(signed(word))


_WORDS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "publish_time": ("publish-time", _time),
    "event_time": ("event-time", _time),
    "deliver_at_time": ("deliver-at-time", _time),
    "num_messages_in_batch": ("num-batch-message", str),
    "null_value": ("null-value", _word),
    "producer_name": ("producer-name", str),
    "sequence_id": ("sequence-id", _signed),
    "replicated_from": ("replicated-from", str),
    "partition_key": ("partition-key", str),
    "compression": ("compression", CompressionType.Name),
    "uncompressed_size": ("uncompressed-size", str),
    "encryption_algo": ("encryption-algo", str),
    "encryption_param": ("Base64-encryption-param", _base64),
    "schema_version": ("Base64-schema-version", _base64),
    "partition_key_b64_encoded": ("partition-key-b64-encoded", _word),
    "ordering_key": ("Base64-ordering-key", _base64),
    "marker_type": ("marker-type", str),
    "txnid_least_bits": ("txnid-least-bits", _signed),
    "txnid_most_bits": ("txnid-most-bits", _signed),
    "highest_sequence_id": ("highest-sequence-id", _signed),
    "uuid": ("uuid", str),
    "num_chunks_from_msg": ("num-chunks-from-msg", str),
    "total_chunk_msg_size": ("total-chunk-msg-size", str),
    "chunk_id": ("chunk-id", str),
    "null_partition_key": ("null-partition-key", _word),
}
"""Header of each field of a message's metadata, less the leading `X-Pulsar-`, and the function that writes its value."""
