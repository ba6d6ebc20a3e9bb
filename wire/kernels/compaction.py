"""Topic compaction's loops over messages: note the newest message of each key, then choose which entries and messages stay.

Numbers of entries, marks and `counts` are the key table's (`wire.kernels.key_table`). What is of a single message: a message
without a payload removes its key; one without a key stays where `retains_null_key` is 1; markers go; what cannot be read
stays. (Apache: PublishingOrderCompactor, RawBatchConverter.)
"""

from array import array

import cython

from wire.run import Buffer, EntryRun

if not cython.compiled:
    from wire.kernels.key_table import _is_newest, _note
    from wire.kernels.octets import (
        bytes_of,
        copy_octets,
        counts_of,
        field_end,
        length_of,
        octets_of,
        read_u16,
        read_u32,
        room_in,
        varint_end,
        varint_value,
        words_of,
        write_u32,
    )

DROP = 0
KEEP = 1
REWRITE = 2
"""A batch of which some messages stay."""
DECOMPRESS = 3
"""A compressed batch: see `note_batch` and `rebatch`."""
CHUNK = 4
"""A part of a message in chunks: the caller knows of the others."""

MESSAGES_PER_BATCH_MAX = 1 << 20
"""A larger batch is not looked into: it stays."""

_messages_max = MESSAGES_PER_BATCH_MAX
_keep = KEEP
_rewrite = REWRITE
_decompress = DECOMPRESS
_chunk = CHUNK

_FIELDS = 16
"""Places in `fields`: 0-1 start and end of the payload; 2-3 of the partition key (0: none); 4 messages in the batch, or 0; 5
encrypted, 6 a marker, 7 compression, 8 uncompressed size plus one (0: not said), 9 chunks, 10-11 of a single message."""

_compacted_out = 0x18002001
"""SingleMessageMetadata: payload_size 0, compacted_out."""
_BYTE = array("B", [0])
_WORD = array("Q", [0])


def _read(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """Parse the payload section [at, end) into `fields`; 1, or 0 when it is not readable."""
    for place in range(2, 10):
        fields[place] = 0
    if end - at >= 6 and read_u16(data, at) == 0x0E02:
        size = read_u32(data, at + 2)
        if size > end - at - 6:
            return 0
        at += 6 + size
    if end - at >= 6 and read_u16(data, at) == 0x0E01:
        at += 6
    if end - at < 4:
        return 0
    size = read_u32(data, at)
    if size > end - at - 4:
        return 0
    fields[0] = at + 4 + size
    fields[1] = end
    end = at + 4 + size
    at += 4
    while at < end:
        after = varint_end(data, at, end)
        if after == 0:
            return 0
        key = varint_value(data, at, after)
        at = field_end(data, after, end, key & 7)
        if at == 0 or key < 8:
            return 0
        if key == 0x32:  # partition_key
            fields[2] = varint_end(data, after, end)
            fields[3] = at
        elif key == 0x40:  # compression
            fields[7] = varint_value(data, after, at)
        elif key == 0x48:  # uncompressed_size
            fields[8] = varint_value(data, after, at) + 1
        elif key == 0x58:  # num_messages_in_batch
            fields[4] = varint_value(data, after, at)
        elif key == 0x6A:  # encryption_keys
            fields[5] = 1
        elif key == 0xA0:  # marker_type
            fields[6] = 1
        elif key == 0xD8:  # num_chunks_from_msg
            fields[9] = varint_value(data, after, at)
    return 1


def _next_single(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """The end of a message of a batch, 0 when it is malformed. 2-3: its key, 10: its payload size, 11: compacted out."""
    fields[2] = 0
    fields[10] = 0
    fields[11] = 0
    if end - at < 4:
        return 0
    size = read_u32(data, at)
    at += 4
    if size > end - at:
        return 0
    stop = at + size
    while at < stop:
        after = varint_end(data, at, stop)
        if after == 0:
            return 0
        key = varint_value(data, at, after)
        at = field_end(data, after, stop, key & 7)
        if at == 0 or key < 8:
            return 0
        if key == 0x12:  # partition_key
            fields[2] = varint_end(data, after, stop)
            fields[3] = at
        elif key == 0x18:  # payload_size
            fields[10] = varint_value(data, after, at)
        elif key == 0x20:  # compacted_out
            fields[11] = varint_value(data, after, at)
    if fields[10] > end - stop:
        return 0
    return stop + fields[10]


def _is_batch(data: Buffer, at: int, end: int, count: int, fields: "array[int]") -> int:
    """Whether all its messages are there, and not too many for a mark."""
    if count > _messages_max:
        return 0
    for _index in range(count):
        at = _next_single(data, at, end, fields)
        if at == 0:
            return 0
    return 1


def _note_singles(
    data: Buffer,
    at: int,
    end: int,
    count: int,
    slots: "array[int]",
    capacity: int,
    counts: "array[int]",
    number: int,
    retains: int,
    fields: "array[int]",
    scratch: "array[int]",
) -> None:
    """Note the single messages of a batch that is whole."""
    for index in range(count):
        at = _next_single(data, at, end, fields)
        if fields[11]:
            continue
        if fields[2] == 0:
            counts[2] += 1 - retains
        elif fields[10] == 0:
            _note(slots, capacity, counts, data, fields[2], fields[3], 0, scratch)
        else:
            _note(slots, capacity, counts, data, fields[2], fields[3], number << 20 | index, scratch)


def note_batch(
    payload: Buffer, count: int, table: "array[int]", counts: "array[int]", number: int, retains_null_key: int
) -> bool:
    """Note the messages of a decompressed batch. False, and nothing is noted, when they are not all there."""
    parsed = _WORD * _FIELDS
    other = _WORD * 2
    fields = words_of(parsed)
    data = octets_of(payload)
    size = length_of(payload)
    if not _is_batch(data, 0, size, count, fields):
        return False
    slots = words_of(table)
    _note_singles(
        data, 0, size, count, slots, len(table) // 3, words_of(counts), number, retains_null_key, fields, words_of(other)
    )
    return True


def messages_in(run: EntryRun) -> int:
    """Largest number of messages that `note_run` may note."""
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    data = octets_of(run.buffer)
    offsets = counts_of(run.offsets)
    header_bytes = run.header_bytes
    found = 0
    for index in range(len(run.offsets) - 1):
        at = offsets[index] + header_bytes
        end = offsets[index + 1]
        if at < end and _read(data, at, end, fields):
            found += fields[4] if 0 < fields[4] <= _messages_max else 1
    return found


def note_run(
    run: EntryRun,
    start: int,
    skipped: Buffer,
    table: "array[int]",
    counts: "array[int]",
    first_number: int,
    retains_null_key: int,
) -> int:
    """Note the messages of the entries from index `start` on, until one that the caller has to look into: its index, or the
    count. Entry i has the number `first_number + i`. Those that are empty or where `skipped` is not 0 are left out."""
    parsed = _WORD * _FIELDS
    other = _WORD * 2
    fields = words_of(parsed)
    scratch = words_of(other)
    data = octets_of(run.buffer)
    offsets = counts_of(run.offsets)
    skips = octets_of(skipped)
    slots = words_of(table)
    capacity = len(table) // 3
    found = words_of(counts)
    header_bytes = run.header_bytes
    count = len(run.offsets) - 1
    for index in range(start, count):
        at = offsets[index] + header_bytes
        end = offsets[index + 1]
        if at >= end or skips[index]:
            continue
        if not _read(data, at, end, fields):
            continue
        number = first_number + index
        if fields[6]:
            found[2] += 1
        elif fields[9] > 1:
            return index
        elif fields[4] == 0 or fields[5]:
            if fields[4]:
                continue  # an encrypted batch: nobody here can tell
            size = fields[8] - 1 if fields[8] else end - fields[0]
            if fields[2] == 0:
                found[2] += 1 - retains_null_key
            elif size == 0:
                _note(slots, capacity, found, data, fields[2], fields[3], 0, scratch)
            else:
                _note(slots, capacity, found, data, fields[2], fields[3], number << 20, scratch)
        elif fields[7]:
            return index
        else:
            at = fields[0]
            messages = fields[4]
            if _is_batch(data, at, end, messages, fields):
                _note_singles(data, at, end, messages, slots, capacity, found, number, retains_null_key, fields, scratch)
    return count


def _kept_singles(
    data: Buffer,
    at: int,
    end: int,
    count: int,
    slots: "array[int]",
    capacity: int,
    number: int,
    retains: int,
    fields: "array[int]",
    scratch: "array[int]",
) -> int:
    """Number of messages of a whole batch that stay, of those not compacted before; all of them: count."""
    kept = 0
    for index in range(count):
        at = _next_single(data, at, end, fields)
        if fields[11]:
            kept += 0
        elif fields[2] == 0:
            kept += retains
        elif fields[10]:
            kept += _is_newest(slots, capacity, data, fields[2], fields[3], number << 20 | index, scratch)
    return kept


def choose(run: EntryRun, skipped: Buffer, table: "array[int]", first_number: int, retains_null_key: int) -> "array[int]":
    """Fate of each entry ("B"): DROP, KEEP, REWRITE, DECOMPRESS, CHUNK. Numbers and `skipped` as in `note_run`."""
    parsed = _WORD * _FIELDS
    other = _WORD * 2
    fields = words_of(parsed)
    scratch = words_of(other)
    data = octets_of(run.buffer)
    offsets = counts_of(run.offsets)
    skips = octets_of(skipped)
    slots = words_of(table)
    capacity = len(table) // 3
    header_bytes = run.header_bytes
    count = len(run.offsets) - 1
    chosen = _BYTE * count
    verdicts = bytes_of(chosen)
    for index in range(count):
        at = offsets[index] + header_bytes
        end = offsets[index + 1]
        if at >= end or skips[index]:
            continue
        if not _read(data, at, end, fields):
            verdicts[index] = _keep
            continue
        number = first_number + index
        if fields[6]:
            continue
        if fields[9] > 1:
            verdicts[index] = _chunk
        elif fields[4] and fields[5]:
            verdicts[index] = _keep
        elif fields[4] == 0:
            if fields[2] == 0:
                verdicts[index] = retains_null_key
            else:
                verdicts[index] = _is_newest(slots, capacity, data, fields[2], fields[3], number << 20, scratch)
        elif fields[7]:
            verdicts[index] = _decompress
        else:
            at = fields[0]
            messages = fields[4]
            if not _is_batch(data, at, end, messages, fields):
                verdicts[index] = _keep
                continue
            kept = _kept_singles(data, at, end, messages, slots, capacity, number, retains_null_key, fields, scratch)
            if kept == messages:
                verdicts[index] = _keep
            elif kept:
                verdicts[index] = _rewrite
    return chosen


def rebatch(payload: Buffer, count: int, table: "array[int]", number: int, retains_null_key: int) -> "tuple[int, bytearray]":
    """The messages of a decompressed batch with those compacted out that do not stay, and how many stay; -1: not readable.

    What is compacted out keeps its place, so that the others keep their index (Apache: RawBatchConverter.rebatchMessage).
    """
    parsed = _WORD * _FIELDS
    other = _WORD * 2
    fields = words_of(parsed)
    scratch = words_of(other)
    data = octets_of(payload)
    size = length_of(payload)
    if not _is_batch(data, 0, size, count, fields):
        return -1, bytearray()
    slots = words_of(table)
    capacity = len(table) // 3
    result = bytearray(size + 8 * count)
    room = room_in(result)
    at = 0
    place = 0
    kept = 0
    for index in range(count):
        after = _next_single(data, at, size, fields)
        stays = 0
        if fields[11]:
            stays = 0
        elif fields[2] == 0:
            stays = retains_null_key
        elif fields[10]:
            stays = _is_newest(slots, capacity, data, fields[2], fields[3], number << 20 | index, scratch)
        if stays:
            copy_octets(room, place, data, at, after)
            place += after - at
            kept += 1
        else:
            write_u32(room, place, 4)
            write_u32(room, place + 4, _compacted_out)
            place += 8
        at = after
    del result[place:]
    return kept, result
