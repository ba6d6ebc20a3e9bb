"""ACK frames to runs, or to a mix of several consumers'. Takes only plain individual acknowledgements; everything else is left
for `wire.frames`."""

from array import array

import cython

from wire.run import AckMix, AckRun, Buffer

if not cython.compiled:
    from wire.kernels.octets import length_of, octets_of, read_u32, varint_end, varint_value, words_of

_FIELDS = 2
"""Places in `fields`: consumer id, number of message ids."""
_WORD = array("Q", [0])


def _read_message_id(data: Buffer, at: int, end: int, ledger_ids: "array[int]", entry_ids: "array[int]", index: int) -> int:
    """Parse the MessageIdData in [at, end) into place `index`; 1, or 0 when it is malformed or names part of an entry."""
    seen = 0
    while at < end:
        tag = data[at]
        after = varint_end(data, at + 1, end)
        if after == 0:
            return 0
        if tag == 0x08:  # ledger_id
            ledger_ids[index] = varint_value(data, at + 1, after)
            seen |= 1
        elif tag == 0x10:  # entry_id
            entry_ids[index] = varint_value(data, at + 1, after)
            seen |= 2
        elif tag != 0x18 and tag != 0x20 and tag != 0x30:  # partition, batch_index and batch_size say nothing here
            return 0
        at = after
    return 1 if seen == 3 else 0


def _message_id_end(data: Buffer, at: int, end: int) -> int:
    """The end of the length-delimited field whose length is at `at`; 0 when it is not inside [at, end)."""
    after = varint_end(data, at, end)
    if after == 0:
        return 0
    size = varint_value(data, at, after)
    if size > end - after:
        return 0
    return after + size


def _read_ack(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """Check the frame of the plain ACK at `at` and count its message ids; the position after it, or 0."""
    if end - at < 12:
        return 0
    total = read_u32(data, at)
    if total < 8 or total > end - at - 4 or read_u32(data, at + 4) != total - 4:
        return 0
    frame_end = at + 4 + total
    if (
        data[at + 8] != 0x08
        or data[at + 9] != 10
        or data[at + 10] != 0x52
        or _message_id_end(data, at + 11, frame_end) != frame_end
    ):
        return 0
    position = varint_end(data, at + 11, frame_end)
    seen = 0
    fields[1] = 0
    while position < frame_end:
        tag = data[position]
        if tag == 0x1A:  # message_id
            after = _message_id_end(data, position + 1, frame_end)
            fields[1] += 1
        else:
            after = varint_end(data, position + 1, frame_end)
        if after == 0:
            return 0
        if tag == 0x08:  # consumer_id
            fields[0] = varint_value(data, position + 1, after)
            seen |= 1
        elif tag == 0x10 and varint_value(data, position + 1, after) == 0:  # ack_type Individual
            seen |= 2
        elif tag != 0x1A:
            return 0
        position = after
    return frame_end if seen == 3 and fields[1] else 0


def _read_message_ids(data: Buffer, at: int, end: int, ledger_ids: "array[int]", entry_ids: "array[int]", index: int) -> int:
    """Parse the message ids of the checked frame [at, end) from place `index` on; the place after the last, or -1."""
    position = varint_end(data, at + 11, end)
    while position < end:
        if data[position] != 0x1A:
            position = varint_end(data, position + 1, end)
            continue
        after = _message_id_end(data, position + 1, end)
        if not _read_message_id(data, varint_end(data, position + 1, end), after, ledger_ids, entry_ids, index):
            return -1
        index += 1
        position = after
    return index


def take_acks(buffer: Buffer, start: int, end: int) -> AckRun | None:
    """The leading whole, plain ACK frames of one consumer in buffer[start:end]; None when there is none."""
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    at = start
    ids = 0
    consumer_id = 0
    while True:
        after = _read_ack(data, at, end, fields)
        if after == 0 or (ids and fields[0] != consumer_id):
            break
        consumer_id = fields[0]
        ids += fields[1]
        at = after
    if ids == 0:
        return None
    return _collected(data, start, at, ids, consumer_id)


def _collected(data: Buffer, start: int, end: int, ids: int, consumer_id: int) -> AckRun | None:
    """The run of the frames in [start, end), up to the first one that acknowledges part of an entry."""
    ledgers = _WORD * ids
    entries = _WORD * ids
    ledger_ids = words_of(ledgers)
    entry_ids = words_of(entries)
    at = start
    count = 0
    while at < end:
        after = at + 4 + read_u32(data, at)
        filled = _read_message_ids(data, at, after, ledger_ids, entry_ids, count)
        if filled < 0:
            break
        count = filled
        at = after
    if count == 0:
        return None
    if count < ids:
        ledgers = ledgers[:count]
        entries = entries[:count]
    return AckRun(consumer_id, ledgers, entries, at)


def take_ack_mix(buffer: Buffer, start: int, end: int, frames_max: int) -> AckMix | None:
    """The leading whole, plain ACK frames in buffer[start:end] that are of one entry each and of changing consumers.

    None when there is none, or when several follow each other of one consumer: those are for `take_acks`.
    """
    if start < 0 or end > length_of(buffer):
        raise ValueError(f"[{start}:{end}] of {len(buffer)} bytes")
    data = octets_of(buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    at = start
    last = start
    count = 0
    consumer_id = 0
    while count <= frames_max:
        after = _read_ack(data, at, end, fields)
        if after == 0:
            break
        if count and fields[0] == consumer_id:
            count -= 1
            at = last
            break
        if fields[1] != 1 or count == frames_max:
            break
        consumer_id = fields[0]
        count += 1
        last = at
        at = after
    if count == 0:
        return None
    return _mixed(data, start, at, count)


def _mixed(data: Buffer, start: int, end: int, frames: int) -> AckMix | None:
    """The mix of the frames in [start, end), up to the first one that acknowledges part of an entry."""
    consumers = _WORD * frames
    ledgers = _WORD * frames
    entries = _WORD * frames
    consumer_ids = words_of(consumers)
    ledger_ids = words_of(ledgers)
    entry_ids = words_of(entries)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    at = start
    count = 0
    while at < end:
        after = _read_ack(data, at, end, fields)
        if _read_message_ids(data, at, after, ledger_ids, entry_ids, count) < 0:
            break
        consumer_ids[count] = fields[0]
        count += 1
        at = after
    if count == 0:
        return None
    if count < frames:
        consumers = consumers[:count]
        ledgers = ledgers[:count]
        entries = entries[:count]
    return AckMix(consumers, ledgers, entries, at)
