"""Batches without some of the ids between their first and their last: batches by key, of the C++ client and its kin. Pure. Such
a client gives a batch its first sequence id alone. A batch by key has the ids of the messages of that key, and those of the
next batch lie between them: counted as first + number - 1, the next one would be taken for a repeat and lost. Java's client and
others give the last id of each batch, and are never checked here. All ids are read of a batch whose first message has a key; of
others the metadata alone.
"""

from array import array

from google.protobuf.message import DecodeError

from wire.compression import decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from wire.int64 import signed
from wire.kernels.columns import COLUMNS, HAS_SEQUENCE_ID, take_messages
from wire.payloads import message_metadata, split_section
from wire.run import Buffer

_LENGTH_BYTES = 4
_ID_MAX = (1 << 63) - 1
_WITH_IDS = bytes(flags for flags in range(256) if flags & HAS_SEQUENCE_ID)


def has_gaps(section: Buffer, metadata: MessageMetadata | None = None) -> bool:
    """Whether ids between its first and its last may be those of another batch. True also for an unreadable batch: its
    first id alone is certain.
    """
    try:
        parts = split_section(section)
        metadata = metadata or message_metadata(parts)
        if metadata.num_messages_in_batch < 2 or not metadata.HasField("partition_key"):
            return False
        if metadata.encryption_keys:
            return True
        payload = memoryview(decompress(metadata.compression, parts.payload, metadata.uncompressed_size))
        return not _follow(payload, metadata.num_messages_in_batch, signed(metadata.sequence_id))
    except MalformedPayload:
        return True


def _follow(payload: memoryview, count: int, first: int) -> bool:
    """Whether the ids of the messages follow one another. In a batch as clients write it, each message states its id: one call
    of the kernel takes them all out."""
    ids = _stated_ids(payload, count) if 0 <= first <= _ID_MAX - count else None
    return _is_without_gaps(payload, count, first) if ids is None else ids == array("q", range(first, first + count))


def _stated_ids(payload: memoryview, count: int) -> "array[int] | None":
    if count * _LENGTH_BYTES > len(payload):
        return None
    columns, flags = array("q", bytes(8 * COLUMNS * count)), bytearray(count)
    start, end, counts = (memoryview(array("q", [place])) for place in (0, len(payload), count))
    if not take_messages(payload, start, end, counts, memoryview(columns), memoryview(flags)):
        return None
    return None if flags.translate(None, _WITH_IDS) else columns[(COLUMNS - 1) * count :]


def _is_without_gaps(payload: memoryview, count: int, first: int) -> bool:
    """Messages that say no ids are taken to follow one another."""
    at = 0
    for expected in range(first, first + count):
        start = at + _LENGTH_BYTES
        end = start + int.from_bytes(payload[at:start])
        if not start < end <= len(payload):
            raise MalformedPayload(f"a batch of {count} messages is cut off at {at}")
        message = _message(payload[start:end])
        if message.HasField("sequence_id") and signed(message.sequence_id) != expected:
            return False
        at = end + message.payload_size
    return True


def _message(data: memoryview) -> SingleMessageMetadata:
    try:
        return SingleMessageMetadata.FromString(bytes(data))
    except DecodeError as error:
        raise MalformedPayload(f"metadata of a message in a batch: {error}") from error
