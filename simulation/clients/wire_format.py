"""Pulsar's frames and entries as the simulation's client reads and writes them, apart from the server's code on purpose.

Only what the client needs: commands with and without a payload section, entries of one message or a batch, plain.
"""

from collections.abc import Iterator, Sequence

from crc32c import crc32c

from simulation.checks.history import Message, MessageKey
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata

MAGIC = b"\x0e\x01"
WORD = 0xFFFF_FFFF_FFFF_FFFF


def frame(command: BaseCommand, payload: bytes = b"") -> bytes:
    body = command.SerializeToString()
    return (4 + len(body) + len(payload)).to_bytes(4) + len(body).to_bytes(4) + body + payload


def take_frames(buffer: bytearray) -> Iterator[tuple[BaseCommand, bytes]]:
    """Every whole frame at the front of `buffer`, which loses it."""
    while len(buffer) >= 8:
        size = int.from_bytes(buffer[:4])
        if len(buffer) < 4 + size:
            return
        command_end = 8 + int.from_bytes(buffer[4:8])
        command, payload = BaseCommand.FromString(bytes(buffer[8:command_end])), bytes(buffer[command_end : 4 + size])
        del buffer[: 4 + size]
        yield command, payload


def signed(number: int) -> int:
    """Ids are unsigned on the wire, and -1 among them."""
    return number - (1 << 64) if number >> 63 else number


def encode_entry(producer_name: str, messages: Sequence[Message], publish_time_ms: int, deliver_at_ms: int = 0) -> bytes:
    """The payload section: magic, checksum, metadata, and the message or the batch. `deliver_at_ms` 0: at once."""
    first = messages[0]
    metadata = MessageMetadata(
        producer_name=producer_name, sequence_id=first.id.sequence, publish_time=publish_time_ms, partition_key=first.key
    )
    if deliver_at_ms:
        metadata.deliver_at_time = deliver_at_ms
    body = first.payload
    if first.batch_index >= 0:
        metadata.num_messages_in_batch = len(messages)
        metadata.highest_sequence_id = messages[-1].id.sequence
        body = b"".join(map(_encode_single, messages))
    head = metadata.SerializeToString()
    rest = len(head).to_bytes(4) + head + body
    return MAGIC + crc32c(rest).to_bytes(4) + rest


def _encode_single(message: Message) -> bytes:
    single = SingleMessageMetadata(
        payload_size=len(message.payload), sequence_id=message.id.sequence, partition_key=message.key
    ).SerializeToString()
    return len(single).to_bytes(4) + single + message.payload


def decode_entry(section: bytes) -> list[Message]:
    """The messages of an entry; ValueError when the bytes are not what `encode_entry` makes."""
    if section[:2] != MAGIC or int.from_bytes(section[2:6]) != crc32c(section[6:]):
        raise ValueError("wrong magic or checksum")
    start = 10 + int.from_bytes(section[6:10])
    metadata = MessageMetadata.FromString(section[10:start])
    if not metadata.HasField("num_messages_in_batch"):
        return [_message(-1, metadata.sequence_id, metadata.partition_key, section[start:])]
    messages = []
    for index in range(metadata.num_messages_in_batch):
        body = start + 4 + int.from_bytes(section[start : start + 4])
        single = SingleMessageMetadata.FromString(section[start + 4 : body])
        start = body + single.payload_size
        messages.append(_message(index, single.sequence_id, single.partition_key, section[body:start]))
    return messages


def _message(batch_index: int, sequence: int, key: str, payload: bytes) -> Message:
    """Payloads begin with the name of the producer in the history, see `payload_for`."""
    return Message(batch_index, MessageKey(payload.split(b":", 1)[0].decode(), sequence), key, payload)


def payload_for(producer: str, sequence: int, filler: bytes) -> bytes:
    return f"{producer}:{sequence}:".encode() + filler


def indexes_of(ack_set: Sequence[int], size: int) -> list[int]:
    """Indexes whose bit is 1: not acknowledged. An empty set: all of them."""
    if not ack_set:
        return list(range(size))
    return [index for index in range(size) if index // 64 < len(ack_set) and (ack_set[index // 64] >> (index % 64)) & 1]


def ack_set_of(indexes: Sequence[int], size: int) -> list[int]:
    """64-bit words, signed as the wire has them, with a 1 for each of `indexes`."""
    words = [0] * ((size + 63) // 64)
    for index in indexes:
        words[index // 64] |= 1 << (index % 64)
    return [signed(word & WORD) for word in words]
