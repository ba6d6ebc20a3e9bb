"""SEND frames to runs, and runs to SEND_RECEIPT frames.

`take_sends` takes only what is plain and whole: anything else, above all anything malformed, is left where it is for
`wire.frames`, which says precisely what is wrong. Every number that a peer declared is compared with the frame before its use.
"""

from array import array
from collections.abc import Sequence
from typing import Protocol

import cython

from wire.run import FLAG_CHUNK, FLAG_MARKER, Buffer, EntryBatch, SendMix, SendRun

if not cython.compiled:
    from wire.kernels.octets import (
        bytes_of,
        clear_octets,
        copy_octets,
        counts_of,
        crc32c_of,
        length_of,
        new_room,
        octets_of,
        read_u16,
        read_u32,
        room_in,
        varint_end,
        varint_value,
        words_of,
        write_u32,
        write_varint,
    )

FRAME_BYTES_MAX = 5 * 1024 * 1024 + 10 * 1024
"""Apache's default: maxMessageSize and 10 KiB of padding, the frame's own length field included (as Netty counts)."""

MESSAGES_PER_ENTRY_MAX = 1 << 20
"""No batch of 5 MiB holds more messages than this (each has at least six bytes)."""

_RECEIPT_BYTES_MAX = 72
_FIELDS = 6
"""Places in `fields`: producer id, sequence id, highest sequence id, message count, flags, position of the payload."""

_chunk_flag = FLAG_CHUNK
_marker_flag = FLAG_MARKER
_messages_max = MESSAGES_PER_ENTRY_MAX
_all_bits = 0xFFFFFFFFFFFFFFFF
_WORD = array("Q", [0])
_COUNT = array("I", [0])
_BYTE = array("B", [0])


class StoredPart(Protocol):
    """Part `place` of `sends`, as consecutive entries of a ledger."""

    @property
    def sends(self) -> SendMix: ...
    @property
    def place(self) -> int: ...
    @property
    def ledger_id(self) -> int: ...
    @property
    def first_entry_id(self) -> int: ...


def _read_send(data: Buffer, at: int, end: int, frame_bytes_max: int, fields: "array[int]") -> int:
    """Parse the plain SEND frame at `at` into `fields`; the position after it, or 0 when it is not whole or not plain."""
    if end - at < 12:
        return 0
    total = read_u32(data, at)
    command = read_u32(data, at + 4)
    if total < 8 or total + 4 > frame_bytes_max or total > end - at - 4 or command < 4 or command > total - 8:
        return 0
    command_end = at + 8 + command
    if data[at + 8] != 0x08 or data[at + 9] != 6 or data[at + 10] != 0x32:
        return 0
    position = varint_end(data, at + 11, command_end)
    if position == 0 or varint_value(data, at + 11, position) != command_end - position:
        return 0
    seen = 0
    fields[2] = 0
    fields[3] = 1
    chunk = 0
    marker = 0
    while position < command_end:
        tag = data[position]
        after = varint_end(data, position + 1, command_end)
        if after == 0:
            return 0
        value = varint_value(data, position + 1, after)
        position = after
        if tag == 0x08:  # producer_id
            fields[0] = value
            seen |= 1
        elif tag == 0x10:  # sequence_id
            fields[1] = value
            seen |= 2
        elif tag == 0x18:  # num_messages
            if value < 1 or value > _messages_max:
                return 0
            fields[3] = value
        elif tag == 0x30:  # highest_sequence_id
            fields[2] = value
        elif tag == 0x38:  # is_chunk
            chunk = _chunk_flag if value else 0
        elif tag == 0x40:  # marker
            marker = _marker_flag if value else 0
        else:  # a transaction, a shadow topic's message id, or something unknown
            return 0
    if seen != 3:
        return 0
    fields[4] = chunk | marker
    fields[5] = command_end
    return at + 4 + total


def _payload_kind(data: Buffer, at: int, end: int) -> int:
    """Kind of the payload section in [at, end), at least four bytes: 0 acceptable, 1 wrong checksum, 2 not plain."""
    magic = read_u16(data, at)
    if magic == 0x0E02:
        return 2
    if magic != 0x0E01:
        return 0
    if end - at < 10:
        return 2
    return 0 if crc32c_of(data, at + 6, end, 0) == read_u32(data, at + 2) else 1


def take_sends(
    buffer: Buffer, start: int, end: int, header_bytes: int, entries_max: int, frame_bytes_max: int = FRAME_BYTES_MAX
) -> SendRun | None:
    """The leading whole, plain SEND frames of one producer in buffer[start:end], at most `entries_max`; None for none.

    Copies the payloads, so that the buffer may be reused at once. What follows a run may be a frame that this never takes:
    after a None it is the slow path's turn for one frame.
    """
    if start < 0 or end > length_of(buffer) or not 0 <= header_bytes <= 1024:
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes with {header_bytes} header bytes")
    data = octets_of(buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    at = start
    count = 0
    size = 0
    message_count = 0
    flags = 0
    producer_id = 0
    bad_checksum_index = -1
    while count < entries_max and bad_checksum_index < 0 and size < 0x40000000:
        after = _read_send(data, at, end, frame_bytes_max, fields)
        if after == 0 or (count and fields[0] != producer_id):
            break
        kind = _payload_kind(data, fields[5], after)
        if kind == 2 or (kind == 1 and count):
            break
        if kind == 1:
            bad_checksum_index = 0
        producer_id = fields[0]
        message_count += fields[3]
        flags |= fields[4]
        size += header_bytes + after - fields[5]
        count += 1
        at = after
    if count == 0:
        return None
    return _copied(data, start, count, size, header_bytes, message_count, flags, bad_checksum_index)


def _copied(
    data: Buffer, start: int, count: int, size: int, header_bytes: int, message_count: int, flags: int, bad_checksum_index: int
) -> SendRun:
    """The run of the `count` frames from `start`, which have been checked."""
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    sequences = _WORD * count
    highests = _WORD * count
    ends = _COUNT * (count + 1)
    entries = new_room(size)
    sequence_ids = words_of(sequences)
    highest_sequence_ids = words_of(highests)
    offsets = counts_of(ends)
    room = room_in(entries)
    at = start
    place = 0
    for index in range(count):
        after = _read_send(data, at, at + 4 + read_u32(data, at), 0x7FFFFFFF, fields)
        sequence_ids[index] = fields[1]
        highest_sequence_ids[index] = fields[2]
        clear_octets(room, place, place + header_bytes)
        place += header_bytes
        copy_octets(room, place, data, fields[5], after)
        place += after - fields[5]
        offsets[index + 1] = place
        at = after
    batch = EntryBatch(entries, ends, header_bytes, message_count)
    return SendRun(parsed[0], batch, sequences, highests, flags, at, bad_checksum_index)


def take_mix(
    buffer: Buffer, start: int, end: int, header_bytes: int, parts_max: int, entries_max: int, frame_bytes_max: int
) -> SendMix | None:
    """The leading whole, plain SEND frames of any producers in buffer[start:end], within both bounds; None for none.

    Copies the payloads, as `take_sends`, and takes no frame with a wrong checksum: `take_sends` says which one that is.
    """
    if start < 0 or end > length_of(buffer) or not 0 <= header_bytes <= 1024:
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes with {header_bytes} header bytes")
    data = octets_of(buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    at = start
    count = 0
    parts = 0
    size = 0
    producer_id = 0
    while count < entries_max and size < 0x40000000:
        after = _read_send(data, at, end, frame_bytes_max, fields)
        if after == 0:
            break
        if count == 0 or fields[0] != producer_id:
            if parts == parts_max:
                break
            parts += 1
        if _payload_kind(data, fields[5], after) != 0:
            if count == 0 or fields[0] != producer_id:
                parts -= 1
            break
        producer_id = fields[0]
        size += header_bytes + after - fields[5]
        count += 1
        at = after
    if count == 0:
        return None
    return _copied_mix(data, start, count, parts, size, header_bytes)


def _copied_mix(data: Buffer, start: int, count: int, parts: int, size: int, header_bytes: int) -> SendMix:
    """The `count` frames from `start`, which have been checked."""
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    producers = _WORD * parts
    places = _COUNT * (parts + 1)
    messages = _COUNT * parts
    part_flags = _BYTE * parts
    part_frames = _WORD * (parts + 1)
    sequences = _WORD * count
    highests = _WORD * count
    ends = _COUNT * (count + 1)
    entries = new_room(size)
    producer_ids = words_of(producers)
    starts = counts_of(places)
    message_counts = counts_of(messages)
    flags = bytes_of(part_flags)
    frames = words_of(part_frames)
    sequence_ids = words_of(sequences)
    highest_sequence_ids = words_of(highests)
    offsets = counts_of(ends)
    room = room_in(entries)
    at = start
    place = 0
    part = -1
    for index in range(count):
        after = _read_send(data, at, at + 4 + read_u32(data, at), 0x7FFFFFFF, fields)
        if part < 0 or producer_ids[part] != fields[0]:
            part += 1
            producer_ids[part] = fields[0]
            starts[part] = index
            message_counts[part] = 0
            flags[part] = 0
            frames[part] = at
        message_counts[part] += fields[3]
        flags[part] |= fields[4]
        sequence_ids[index] = fields[1]
        highest_sequence_ids[index] = fields[2]
        clear_octets(room, place, place + header_bytes)
        place += header_bytes
        copy_octets(room, place, data, fields[5], after)
        place += after - fields[5]
        offsets[index + 1] = place
        at = after
    starts[parts] = count
    frames[parts] = at
    return SendMix(entries, ends, header_bytes, producers, places, messages, part_flags, part_frames, sequences, highests)


def part_receipts(parts: Sequence[StoredPart]) -> bytes:
    """SEND_RECEIPT frames for stored parts, in order, in one buffer."""
    total = 0
    for part in parts:
        starts = counts_of(part.sends.starts)
        place = part.place
        total += starts[place + 1] - starts[place]
    receipts = new_room(_RECEIPT_BYTES_MAX * total)
    room = room_in(receipts)
    at = 0
    for part in parts:
        sends = part.sends
        place = part.place
        starts = counts_of(sends.starts)
        producer_id = words_of(sends.producer_ids)[place]
        sequence_ids = words_of(sends.sequence_ids)
        highest_sequence_ids = words_of(sends.highest_sequence_ids)
        ledger_id = part.ledger_id
        entry_id = part.first_entry_id
        for index in range(starts[place], starts[place + 1]):
            at = _write_receipt(room, at, producer_id, sequence_ids[index], highest_sequence_ids[index], ledger_id, entry_id)
            entry_id += 1
    return bytes(memoryview(receipts)[:at])


def send_receipts(run: SendRun, ledger_id: int, first_entry_id: int, have_one_id: bool = False) -> bytes:
    """SEND_RECEIPT frames for a stored run, in order, in one buffer.

    With -1 for the ledger and the first entry: each has the id (-1, -1), by which a client knows that its message was stored
    before. `have_one_id`: all have the id (ledger, first entry), of which nothing is kept.
    """
    count = len(run.sequence_ids)
    if len(run.highest_sequence_ids) != count:
        raise ValueError(f"{count} sequence ids, {len(run.highest_sequence_ids)} highest sequence ids")
    producer_id = run.producer_id
    sequence_ids = words_of(run.sequence_ids)
    highest_sequence_ids = words_of(run.highest_sequence_ids)
    receipts = new_room(_RECEIPT_BYTES_MAX * count)
    room = room_in(receipts)
    at = 0
    step = 0 if first_entry_id < 0 or have_one_id else 1
    for index in range(count):
        entry_id = first_entry_id + index * step
        at = _write_receipt(room, at, producer_id, sequence_ids[index], highest_sequence_ids[index], ledger_id, entry_id)
    return bytes(memoryview(receipts)[:at])


def _write_receipt(
    room: bytearray, frame: int, producer_id: int, sequence_id: int, highest: int, ledger_id: int, entry_id: int
) -> int:
    """Write one SEND_RECEIPT frame; where it ends."""
    room[frame + 8] = 0x08
    room[frame + 9] = 7
    room[frame + 10] = 0x3A  # send_receipt; its length, below 128, comes last
    room[frame + 12] = 0x08
    at = write_varint(room, frame + 13, producer_id)
    room[at] = 0x10
    at = write_varint(room, at + 1, sequence_id)
    room[at] = 0x1A  # message_id, and its length
    message_id = at + 2
    room[message_id] = 0x08
    at = write_varint(room, message_id + 1, ledger_id & _all_bits)
    room[at] = 0x10
    at = write_varint(room, at + 1, entry_id & _all_bits)
    room[message_id - 1] = at - message_id
    if highest:
        room[at] = 0x20
        at = write_varint(room, at + 1, highest)
    room[frame + 11] = at - frame - 12
    write_u32(room, frame, at - frame - 4)
    write_u32(room, frame + 4, at - frame - 8)
    return at
