"""Entries as clients write them, for tests: made by protobuf one message at a time, and the naive twin that reads them so."""

from typing import Any

import cramjam
import numpy

from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.sections import Block
from wire.generated.pulsar_api_pb2 import LZ4, BrokerEntryMetadata, KeyValue, MessageMetadata, SingleMessageMetadata
from wire.payloads import MAGIC_BROKER_ENTRY_METADATA, payload_section

PUBLISHED = 1_700_000_000_000


def metadata(sequence_id: int = 0, producer: str = "p-1", **values: Any) -> MessageMetadata:
    return MessageMetadata(producer_name=producer, sequence_id=sequence_id, publish_time=PUBLISHED + sequence_id, **values)


def single(payload: bytes, **values: Any) -> bytes:
    encoded = SingleMessageMetadata(payload_size=len(payload), **values).SerializeToString()
    return len(encoded).to_bytes(4) + encoded + payload


def pairs(**values: str) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in values.items()]


def batch(messages: list[bytes], sequence_id: int = 0, compressed: bool = False, **values: Any) -> bytes:
    payload = b"".join(messages)
    about = metadata(sequence_id, num_messages_in_batch=len(messages), **values)
    about.uncompressed_size = len(payload)
    if compressed:
        about.compression = LZ4
        payload = bytes(cramjam.lz4.compress_block(payload, store_size=False))
    return payload_section(about, payload)


def with_index(section: bytes, index: int) -> bytes:
    encoded = BrokerEntryMetadata(broker_timestamp=PUBLISHED, index=index).SerializeToString()
    return MAGIC_BROKER_ENTRY_METADATA + len(encoded).to_bytes(4) + encoded + section


def block(*sections: bytes, ledger_id: int = 7, first_entry_id: int = 0) -> Block:
    ends = numpy.cumsum([len(section) for section in sections], dtype=numpy.int64)
    starts = ends - numpy.array([len(section) for section in sections], numpy.int64)
    ids = numpy.arange(first_entry_id, first_entry_id + len(sections))
    return Block(padded(b"".join(sections)), starts, ends, numpy.full(len(sections), ledger_id), ids)
