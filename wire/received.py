"""The messages of one MESSAGE command: checksum, decompression, batches. Pure."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wire.compression import decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from wire.payloads import batch_messages, broker_entry_metadata, message_metadata, split_section, verify


class Message(NamedTuple):
    """One message. Times in milliseconds; key None for none; `batch_index` -1 for one that is in no batch. `key_text`: the key
    as it is stored, in base64 if its producer says so."""

    key: str | None
    properties: Mapping[str, str]
    publish_time: int
    event_time: int
    payload: bytes
    batch_index: int
    producer_name: str
    sequence_id: int
    ordering_key: bytes
    schema_version: bytes
    replicated_from: str
    message_index: int | None
    key_text: str | None = None


class Decoded(NamedTuple):
    """`permits`: how many messages the broker counts, whether they are shown or not."""

    messages: Sequence[Message]
    permits: int


class Opened(NamedTuple):
    """Messages that are decoded one by one, as they are taken; RemoteError at the first that cannot be. `message_count` of
    them are to come; `batch_size` 0: in no batch.
    """

    messages: Iterator[Message]
    permits: int
    message_count: int
    batch_size: int


class Undecodable(Exception):
    """A message that this client cannot read; the text says why."""


def decoded(section: bytes, unacknowledged: Sequence[int] = ()) -> Decoded:
    """Without those of a batch that are acknowledged already: `unacknowledged` has a bit for each that is not, in words of
    64; none at all when no message of it is acknowledged. Undecodable, RemoteError.
    """
    opened = opened_entry(section, unacknowledged)
    return Decoded(list(opened.messages), opened.permits)


def opened_entry(section: bytes, unacknowledged: Sequence[int] = ()) -> Opened:
    """Like `decoded`: a batch of very many messages takes its time only as its messages are taken."""
    split = split_section(section)
    verify(split)
    metadata = message_metadata(split)
    if metadata.encryption_keys:
        raise Undecodable("the message is encrypted, and this client has no keys")
    if metadata.num_chunks_from_msg > 1:
        raise Undecodable(f"the message is in {metadata.num_chunks_from_msg} chunks, which this client does not put together")
    payload = _uncompressed(metadata, bytes(split.payload))
    about = broker_entry_metadata(split)
    last_index = about.index if about is not None and about.HasField("index") else None
    if not metadata.HasField("num_messages_in_batch"):
        return Opened(iter([_message(metadata, metadata, payload, -1, last_index)]), 1, 1, 0)
    size = metadata.num_messages_in_batch
    count = sum(word.bit_count() for word in unacknowledged) if unacknowledged else size
    return Opened(_of_batch(metadata, payload, unacknowledged, last_index), size, min(count, size), size)


def _of_batch(
    metadata: MessageMetadata, payload: bytes, unacknowledged: Sequence[int], last_index: int | None
) -> Iterator[Message]:
    count = metadata.num_messages_in_batch
    for number, (single, body) in enumerate(batch_messages(payload, count)):
        is_there = not unacknowledged or (
            number >> 6 < len(unacknowledged) and unacknowledged[number >> 6] >> (number & 63) & 1
        )
        if is_there and not single.compacted_out:
            index = None if last_index is None else last_index - count + 1 + number
            yield _message(single, metadata, bytes(body), number, index)


def _message(
    about: MessageMetadata | SingleMessageMetadata,
    metadata: MessageMetadata,
    payload: bytes,
    batch_index: int,
    index: int | None,
) -> Message:
    key = key_text = about.partition_key if about.HasField("partition_key") else None
    if key is not None and about.partition_key_b64_encoded:
        key = base64.b64decode(key).decode(errors="replace")
    return Message(
        key,
        {pair.key: pair.value for pair in about.properties},
        metadata.publish_time,
        about.event_time,
        payload,
        batch_index,
        metadata.producer_name,
        about.sequence_id or metadata.sequence_id,
        about.ordering_key,
        metadata.schema_version,
        metadata.replicated_from,
        index,
        key_text,
    )


def _uncompressed(metadata: MessageMetadata, payload: bytes) -> bytes:
    try:
        return bytes(decompress(metadata.compression, payload, metadata.uncompressed_size))
    except MalformedPayload as error:
        raise Undecodable(f"the message {error}") from None
