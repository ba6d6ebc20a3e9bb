"""SEND frames to runs, and runs to SEND_RECEIPT frames.

`take_sends` takes only what is plain and whole: anything else, above all anything malformed, is left where it is for
`wire.frames`, which says precisely what is wrong. Every number that a peer declared is compared with the frame before its use.
"""

from array import array

import cython

from wire.run import FLAG_CHUNK, FLAG_MARKER, Buffer, EntryBatch, SendRun

if not cython.compiled:
    from wire.kernels.octets import (
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
    """Of the payload section in [at, end), at least four bytes: 0 acceptable, 1 wrong checksum, 2 not plain."""
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
        frame = at
        room[at + 8] = 0x08
        room[at + 9] = 7
        room[at + 10] = 0x3A  # send_receipt; its length, below 128, comes last
        room[at + 12] = 0x08
        at = write_varint(room, at + 13, producer_id)
        room[at] = 0x10
        at = write_varint(room, at + 1, sequence_ids[index])
        room[at] = 0x1A  # message_id, and its length
        message_id = at + 2
        room[message_id] = 0x08
        at = write_varint(room, message_id + 1, ledger_id & _all_bits)
        room[at] = 0x10
        at = write_varint(room, at + 1, (first_entry_id + index * step) & _all_bits)
        room[message_id - 1] = at - message_id
        if highest_sequence_ids[index]:
            room[at] = 0x20
            at = write_varint(room, at + 1, highest_sequence_ids[index])
        room[frame + 11] = at - frame - 12
        write_u32(room, frame, at - frame - 4)
        write_u32(room, frame + 4, at - frame - 8)
    return bytes(memoryview(receipts)[:at])
