"""Frames as clients send them, built with protobuf, and readers of the frames that the kernels build."""

from array import array
from collections.abc import Iterable, Sequence

import crc32c

from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata
from wire.run import EntryRun


def frame(command: BaseCommand, section: bytes = b"") -> bytes:
    encoded = command.SerializeToString()
    return (len(encoded) + 4 + len(section)).to_bytes(4, "big") + len(encoded).to_bytes(4, "big") + encoded + section


def section(metadata: bytes = b"", payload: bytes = b"", *, checksum: bool = True) -> bytes:
    body = len(metadata).to_bytes(4, "big") + metadata + payload
    return b"\x0e\x01" + crc32c.crc32c(body).to_bytes(4, "big") + body if checksum else body


def metadata(producer_name: str = "p", sequence_id: int = 0, publish_time: int = 1) -> MessageMetadata:
    return MessageMetadata(producer_name=producer_name, sequence_id=sequence_id, publish_time=publish_time)


def send(producer_id: int, sequence_id: int, body: bytes = section(), **fields: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = producer_id
    command.send.sequence_id = sequence_id
    for name, value in fields.items():
        setattr(command.send, name, value)
    return frame(command, body)


def ack(consumer_id: int, ids: Iterable[tuple[int, int]]) -> bytes:
    command = BaseCommand(type=BaseCommand.ACK)
    command.ack.consumer_id = consumer_id
    command.ack.ack_type = 0  # type: ignore[assignment]
    for ledger_id, entry_id in ids:
        command.ack.message_id.add(ledger_id=ledger_id, entry_id=entry_id)
    return frame(command)


def unframe(data: bytes) -> list[tuple[BaseCommand, bytes]]:
    """Commands with what follows them in their frames; the data must hold whole frames."""
    found = []
    while data:
        total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
        assert total + 4 <= len(data)
        assert size + 4 <= total
        found.append((BaseCommand.FromString(data[8 : 8 + size]), data[8 + size : 4 + total]))
        data = data[4 + total :]
    return found


def stored(payloads: Sequence[bytes], ledger_id: int = 1, first_entry_id: int = 0, header_bytes: int = 36) -> EntryRun:
    """A run with blank headers."""
    buffer = b"".join(bytes(header_bytes) + payload for payload in payloads)
    offsets = array("I", [0])
    for payload in payloads:
        offsets.append(offsets[-1] + header_bytes + len(payload))
    return EntryRun(ledger_id, first_entry_id, buffer, offsets, header_bytes)
