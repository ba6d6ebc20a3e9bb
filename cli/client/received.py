"""The messages of one MESSAGE command: checksum, decompression, batches. Pure."""

import base64
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import cramjam

from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD, MessageMetadata, SingleMessageMetadata
from wire.payloads import batch_messages, message_metadata, split_section, verify


class Message(NamedTuple):
    """One message. Times in milliseconds; key None for none."""

    key: str | None
    properties: Mapping[str, str]
    publish_time: int
    event_time: int
    payload: bytes


class Undecodable(Exception):
    """A message that this client cannot read; the text says why."""


def messages_of(section: bytes) -> Iterator[Message]:
    """Undecodable, RemoteError."""
    split = split_section(section)
    verify(split)
    metadata = message_metadata(split)
    if metadata.encryption_keys:
        raise Undecodable("the message is encrypted, and this client has no keys")
    if metadata.num_chunks_from_msg > 1:
        raise Undecodable(f"the message is in {metadata.num_chunks_from_msg} chunks, which this client does not put together")
    payload = _uncompressed(metadata, bytes(split.payload))
    if not metadata.HasField("num_messages_in_batch"):
        yield _message(metadata, metadata, payload)
        return
    for single, body in batch_messages(payload, metadata.num_messages_in_batch):
        if not single.compacted_out:
            yield _message(single, metadata, bytes(body))


def _message(about: MessageMetadata | SingleMessageMetadata, metadata: MessageMetadata, payload: bytes) -> Message:
    key = about.partition_key if about.HasField("partition_key") else None
    if key is not None and about.partition_key_b64_encoded:
        key = base64.b64decode(key).decode(errors="replace")
    properties = {pair.key: pair.value for pair in about.properties}
    return Message(key, properties, metadata.publish_time, about.event_time, payload)


def _uncompressed(metadata: MessageMetadata, payload: bytes) -> bytes:
    size = metadata.uncompressed_size
    try:
        match metadata.compression:
            case _ if metadata.compression == NONE:
                return payload
            case _ if metadata.compression == LZ4:
                return bytes(cramjam.lz4.decompress_block(payload, output_len=size))
            case _ if metadata.compression == ZLIB:
                return bytes(cramjam.zlib.decompress(payload))
            case _ if metadata.compression == ZSTD:
                return bytes(cramjam.zstd.decompress(payload))
            case _ if metadata.compression == SNAPPY:
                return bytes(cramjam.snappy.decompress_raw(payload))
    except cramjam.DecompressionError as error:
        raise Undecodable(f"cannot be decompressed: {error}") from None
    raise Undecodable(f"compression {metadata.compression} is not known")
