"""Facts of each entry's MessageMetadata that dispatchers need, read without building objects.

A payload section is `[0x0e02 | size | broker entry metadata] [0x0e01 | crc32c] metadata size | metadata | payload`. Metadata
that protobuf would refuse, or that lacks a required field, counts as unparseable: one message, delivered as it is.
"""

from array import array

import cython

from wire.run import (
    FLAG_BATCH,
    FLAG_CHUNK,
    FLAG_DELAYED,
    FLAG_ENCRYPTED,
    FLAG_MARKER,
    FLAG_TRANSACTION,
    FLAG_UNPARSEABLE,
    Buffer,
    EntryBatch,
    EntryRun,
    RunMetadata,
)

if not cython.compiled:
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
        signed_words_of,
        varint_end,
        varint_value,
        words_of,
    )

MESSAGES_PER_ENTRY_MAX = 1 << 20

_FIELDS = 19
"""Places in `fields`, all positions in the buffer: 0-1 the metadata's start and end; then, 0 where the field is absent, start
and end of 2-3 producer name, 4-5 sequence id, 6-7 publish time, 8-9 partition key, 10-11 ordering key, 12-13 broker timestamp;
then 14 the flags, 15 the number of messages, 16 whether the partition key is in base 64; 17-18 as 2-3: the delivery time."""

_marker = FLAG_MARKER
_chunk = FLAG_CHUNK
_encrypted = FLAG_ENCRYPTED
_delayed = FLAG_DELAYED
_transaction = FLAG_TRANSACTION
_batch = FLAG_BATCH
_unparseable = FLAG_UNPARSEABLE
_messages_max = MESSAGES_PER_ENTRY_MAX
_no_key_hash = 504741539
# Named, because a literal beyond 31 bits would be a Python object in the compiled code.
_low_half = 0xFFFFFFFF
_all_bits = 0xFFFFFFFFFFFFFFFF
_signed_max = 0x7FFFFFFFFFFFFFFF
_c1 = 0xCC9E2D51
_c2 = 0x1B873593
_add = 0xE6546B64
_final_1 = 0x85EBCA6B
_final_2 = 0xC2B2AE35
_WORD = array("Q", [0])
_COUNT = array("I", [0])
_BYTE = array("B", [0])
_SIGNED_WORD = array("q", [0])


def _read_broker_timestamp(data: Buffer, at: int, end: int, fields: "array[int]") -> None:
    """Note where broker_timestamp (field 1) of the BrokerEntryMetadata in [at, end) is; nothing when it is malformed."""
    while at < end:
        after = varint_end(data, at, end)
        if after == 0:
            return
        key = varint_value(data, at, after)
        at = field_end(data, after, end, key & 7)
        if at == 0:
            return
        if key == 0x08:
            fields[12] = after
            fields[13] = at


def _locate(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """Find the metadata inside the payload section [at, end) and note its bounds; 1, or 0 when the sizes do not fit."""
    fields[12] = 0
    if end - at >= 6 and read_u16(data, at) == 0x0E02:
        size = read_u32(data, at + 2)
        if size > end - at - 6:
            return 0
        _read_broker_timestamp(data, at + 6, at + 6 + size, fields)
        at += 6 + size
    if end - at >= 6 and read_u16(data, at) == 0x0E01:
        at += 6
    if end - at < 4:
        return 0
    size = read_u32(data, at)
    if size > end - at - 4:
        return 0
    fields[0] = at + 4
    fields[1] = at + 4 + size
    return 1


def _read_metadata(data: Buffer, at: int, end: int, fields: "array[int]") -> int:
    """Parse the payload section [at, end) into `fields`; 1, or 0 when its metadata is unparseable."""
    for place in range(2, 12):
        fields[place] = 0
    fields[15] = 1
    fields[16] = fields[17] = 0
    if not _locate(data, at, end, fields):
        return 0
    at = fields[0]
    end = fields[1]
    flags = 0
    transaction = 0
    while at < end:
        after = varint_end(data, at, end)
        if after == 0:
            return 0
        key = varint_value(data, at, after)
        at = field_end(data, after, end, key & 7)
        if at == 0 or key < 8:
            return 0
        if key == 0x0A:  # producer_name
            fields[2] = varint_end(data, after, end)
            fields[3] = at
        elif key == 0x10:  # sequence_id
            fields[4] = after
            fields[5] = at
        elif key == 0x18:  # publish_time
            fields[6] = after
            fields[7] = at
        elif key == 0x32:  # partition_key
            fields[8] = varint_end(data, after, end)
            fields[9] = at
        elif key == 0x58:  # num_messages_in_batch
            fields[15] = varint_value(data, after, at)
            flags |= _batch
        elif key == 0x6A:  # encryption_keys
            flags |= _encrypted
        elif key == 0x88:  # partition_key_b64_encoded
            fields[16] = varint_value(data, after, at)
        elif key == 0x92:  # ordering_key
            fields[10] = varint_end(data, after, end)
            fields[11] = at
        elif key == 0x98:  # deliver_at_time
            flags |= _delayed
            fields[17] = after
            fields[18] = at
        elif key == 0xA0:  # marker_type
            flags |= _marker
        elif key == 0xB0:  # txnid_least_bits
            transaction |= 1
        elif key == 0xB8:  # txnid_most_bits
            transaction |= 2
        elif key == 0xD8 and varint_value(data, after, at) > 1:  # num_chunks_from_msg
            flags |= _chunk
    if not (fields[2] and fields[4] and fields[6]) or fields[15] < 1 or fields[15] > _messages_max:
        return 0
    if transaction == 3:
        flags |= _transaction
    fields[14] = flags
    return 1


def _check(run: EntryRun | EntryBatch) -> None:
    """Raise ValueError unless every entry of the run lies inside its buffer."""
    count = len(run.offsets) - 1
    offsets = counts_of(run.offsets)
    header_bytes = run.header_bytes
    size = length_of(run.buffer)
    for index in range(count):
        if offsets[index] + header_bytes > offsets[index + 1] or offsets[index + 1] > size:
            raise ValueError(f"entry {index} does not fit the buffer")


def scan(run: EntryRun) -> RunMetadata:
    """Number of messages and flags of each entry."""
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    message_counts = _COUNT * count
    entry_flags = _BYTE * count
    counts = counts_of(message_counts)
    flags = bytes_of(entry_flags)
    any_flags = 0
    message_count = 0
    for index in range(count):
        if _read_metadata(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            counts[index] = fields[15]
            flags[index] = fields[14]
        else:
            counts[index] = 1
            flags[index] = _unparseable
        message_count += counts[index]
        any_flags |= flags[index]
    return RunMetadata(message_counts, entry_flags, any_flags, message_count)


def publish_times(run: EntryRun) -> "array[int]":
    """Milliseconds since the epoch of each entry, -1 where unparseable.

    As Apache's seek by time sees it: the broker's timestamp where the entry has one, else the producer's publish time.
    """
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    times = _SIGNED_WORD * count
    found = signed_words_of(times)
    for index in range(count):
        if not _read_metadata(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            found[index] = -1
        elif fields[12]:
            found[index] = varint_value(data, fields[12], fields[13]) & _signed_max
        else:
            found[index] = varint_value(data, fields[6], fields[7]) & _signed_max
    return times


def _murmur(data: Buffer, at: int, end: int) -> int:
    """Murmur3 (x86, 32 bits, seed 0) of data[at:end], without the sign bit, as Apache's Murmur3_32Hash."""
    size = end - at
    state = 0
    while end - at >= 4:
        block = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        state ^= _mixed(block & _low_half)
        state = (state << 13 | state >> 19) & _low_half
        state = (state * 5 + _add) & _low_half
        at += 4
    block = 0
    shift = 0
    while at < end:
        block |= data[at] << shift
        shift += 8
        at += 1
    state ^= _mixed(block)
    state ^= size
    state = ((state ^ state >> 16) * _final_1) & _low_half
    state = ((state ^ state >> 13) * _final_2) & _low_half
    return (state ^ state >> 16) & 0x7FFFFFFF


def _mixed(block: int) -> int:
    block = (block * _c1) & _low_half
    block = (block << 15 | block >> 17) & _low_half
    return (block * _c2) & _low_half


def _sextet(octet: int) -> int:
    """The six bits that a letter of base 64 stands for, or -1."""
    if octet >= 65 and octet <= 90:
        return octet - 65
    if octet >= 97 and octet <= 122:
        return octet - 71
    if octet >= 48 and octet <= 57:
        return octet + 4
    if octet == 43:
        return 62
    return 63 if octet == 47 else -1


def _decode_base64(data: Buffer, at: int, end: int, room: bytearray) -> int:
    """Decode base 64 into `room` as Java's basic decoder does (padding may be missing); the size, or -1 where that refuses."""
    size = 0
    bits = 0
    pending = 0
    while at < end and data[at] != 61:
        sextet = _sextet(data[at])
        if sextet < 0:
            return -1
        bits = (bits << 6 | sextet) & 0xFFFFFF
        pending += 1
        at += 1
        if pending == 4:
            room[size] = bits >> 16
            room[size + 1] = bits >> 8 & 255
            room[size + 2] = bits & 255
            size += 3
            pending = 0
    padding = end - at
    if pending == 1 or padding > 2 or (padding and padding + pending != 4) or (padding == 2 and data[at + 1] != 61):
        return -1
    if pending == 2:
        room[size] = bits >> 4 & 255
        size += 1
    elif pending == 3:
        room[size] = bits >> 10 & 255
        room[size + 1] = bits >> 2 & 255
        size += 2
    return size


def _write_decimal(room: bytearray, at: int, value: int) -> int:
    """Write a 64-bit word as a signed decimal number; the position after it."""
    if value > _signed_max:
        room[at] = 45
        at += 1
        value = _all_bits - value + 1
    digits = 1
    rest = value // 10
    while rest:
        digits += 1
        rest //= 10
    for place in range(at + digits - 1, at - 1, -1):
        room[place] = 48 + value % 10
        value //= 10
    return at + digits


def _key_hash(data: Buffer, fields: "array[int]") -> int:
    """The hash of the sticky key of the parsed metadata."""
    if fields[10]:
        return _murmur(data, fields[10], fields[11])
    if fields[8] and not fields[16]:
        return _murmur(data, fields[8], fields[9])
    if fields[8]:
        scratch = bytearray(fields[9] - fields[8] + 3)
        room = room_in(scratch)
        size = _decode_base64(data, fields[8], fields[9], room)
        return _no_key_hash if size < 0 else _murmur(room, 0, size)
    name_bytes = fields[3] - fields[2]
    scratch = bytearray(name_bytes + 24)
    room = room_in(scratch)
    copy_octets(room, 0, data, fields[2], fields[3])
    room[name_bytes] = 45
    size = _write_decimal(room, name_bytes + 1, varint_value(data, fields[4], fields[5]))
    return _murmur(room, 0, size)


def key_hashes(run: EntryRun) -> "array[int]":
    """The 31-bit hash of each entry's sticky key; a dispatcher takes it modulo its range.

    The key is Apache's (Commands.resolveStickyKey): the ordering key, else the partition key (decoded where it is flagged as
    base 64), else "producer name-sequence id"; the hash of "NONE_KEY" for what cannot be read.
    """
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    hashes = _COUNT * count
    found = counts_of(hashes)
    for index in range(count):
        if _read_metadata(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            found[index] = _key_hash(data, fields)
        else:
            found[index] = _no_key_hash
    return hashes


def keyed_batches(run: EntryRun) -> bytearray:
    """1 for each entry that is a batch of several messages with a partition key: that of the first one, or of all of them."""
    _check(run)
    count = len(run.offsets) - 1
    header_bytes = run.header_bytes
    offsets = counts_of(run.offsets)
    data = octets_of(run.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    answer = bytearray(count)
    found = room_in(answer)
    for index in range(count):
        if _read_metadata(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            if fields[8] and fields[15] > 1:
                found[index] = 1
    return answer
