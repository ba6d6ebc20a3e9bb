"""Checks of a run against the slow path on the same bytes."""

import crc32c

from wire.frames import next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck
from wire.run import FLAG_CHUNK, FLAG_MARKER, AckRun, SendRun


def check_sends(data: bytes, run: SendRun) -> None:
    """Each entry of the run, against the frame that it came from."""
    at = 0
    messages = flags = 0
    for index in range(run.entries.count):
        one = next_frame(data, at, len(data))
        assert one is not None
        command = one.command.send
        assert (one.command.type, command.producer_id) == (BaseCommand.SEND, run.producer_id)
        assert not command.HasField("txnid_least_bits")
        assert (command.sequence_id, command.highest_sequence_id) == (run.sequence_ids[index], run.highest_sequence_ids[index])
        start, end = run.entries.offsets[index] + run.entries.header_bytes, run.entries.offsets[index + 1]
        assert run.entries.buffer[start:end] == one.payload
        assert sound(one.payload) == (run.bad_checksum_index != index)
        messages += command.num_messages
        flags |= (FLAG_CHUNK if command.is_chunk else 0) | (FLAG_MARKER if command.marker else 0)
        at = one.end
    assert (at, messages, flags) == (run.end, run.entries.message_count, run.flags)


def sound(payload: memoryview) -> bool:
    return bytes(payload[:2]) != b"\x0e\x01" or crc32c.crc32c(payload[6:]) == int.from_bytes(payload[2:6])


def check_acks(data: bytes, run: AckRun) -> None:
    """Each id of the run, against the frame that it came from."""
    at = 0
    ids = []
    while at < run.end:
        one = next_frame(data, at, len(data))
        assert one is not None
        command = one.command.ack
        assert (one.command.type, command.consumer_id) == (BaseCommand.ACK, run.consumer_id)
        assert command.ack_type == CommandAck.Individual
        assert not any(each.ack_set for each in command.message_id)
        ids += [(each.ledger_id, each.entry_id) for each in command.message_id]
        at = one.end
    assert at == run.end
    assert ids == list(zip(run.ledger_ids, run.entry_ids, strict=True))
