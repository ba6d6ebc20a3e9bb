"""Entries as bookies store them and as clients write them: whether they are sound, and where each batch of messages is.

For whoever makes tables of topics (`pipeline`). Columns are memoryviews of words of eight bytes, as numpy's `data` is. Only
plain batches are taken by `take_batches`: of anything else it says so, and whoever asked looks at those in another way.
"""

import cython

from wire.run import Buffer

if not cython.compiled:
    from wire.kernels.octets import (
        crc32c_joined,
        crc32c_of,
        length_of,
        octets_in_room,
        octets_of,
        read_u16,
        read_u32,
        read_u64,
        signed_words_in,
        varint_end,
        varint_value,
    )

IS_COMPILED = cython.compiled
COLUMNS = 3
"""Columns that `take_batches` fills: begin of the messages of the entry, their number, their publish time."""
_HEADER_BYTES = 36
"""Before a stored section: ledger id, entry id, last add confirmed and length, and the digest."""


def _after_broker_metadata(data: Buffer, at: int, end: int) -> int:
    """Begin of the checksum or of the metadata; -1: not in the section."""
    if end - at < 6:
        return -1
    if read_u16(data, at) != 0x0E02:
        return at
    size = read_u32(data, at + 2)
    return at + 6 + size if size <= end - at - 6 else -1


def check_stored(
    data: Buffer, starts: memoryview, ends: memoryview, ledger_id: int, entry_ids: memoryview, is_sound: memoryview
) -> bool:
    """Check stored entries with the digest CRC32C; `is_sound`: it is that entry of that ledger, with the right digest.

    Also whether all are, and have the right checksum inside where they have one. The digest covers what that does, and more:
    one pass over an entry yields both.
    """
    count = len(is_sound)
    size = length_of(data)
    octets = octets_of(data)
    firsts = signed_words_in(starts)
    lasts = signed_words_in(ends)
    ids = signed_words_in(entry_ids)
    marks = octets_in_room(is_sound)
    fits = 1
    for index in range(count):
        start = firsts[index]
        end = lasts[index]
        marks[index] = 0
        if start < 0 or end > size or end - start < 36:
            fits = 0
            continue
        if read_u64(octets, start) != ledger_id or read_u64(octets, start + 8) != ids[index]:
            fits = 0
            continue
        digest = crc32c_of(octets, start, start + 32, 0)
        at = _after_broker_metadata(octets, start + 36, end)
        if at >= 0 and end - at >= 6 and read_u16(octets, at) == 0x0E01:
            inside = crc32c_of(octets, at + 6, end, 0)
            digest = crc32c_joined(crc32c_of(octets, start + 36, at + 6, digest), inside, end - at - 6)
            if inside != read_u32(octets, at + 2):
                fits = 0
        else:
            digest = crc32c_of(octets, start + 36, end, digest)
        if digest == read_u32(octets, start + 32):
            marks[index] = 1
        else:
            fits = 0
    return fits != 0


def _is_passed_over(tag: int) -> int:
    """1 for a field of the metadata that changes nothing of where a batch's messages are."""
    # sequence id, properties, replication, key and what is said of it, times, schema version, highest sequence id
    if tag == 0x10 or tag == 0x22 or tag == 0x2A or tag == 0x32 or tag == 0x3A or tag == 0x48 or tag == 0x60:
        return 1
    return 1 if tag == 0x82 or tag == 0x88 or tag == 0x92 or tag == 0x98 or tag == 0xC0 else 0


def _read_batch(data: Buffer, at: int, end: int, into: "memoryview[int]", row: int, total: int) -> int:
    """The MessageMetadata [at, end) of a batch that is neither compressed, encrypted nor of a transaction; 0: not for us."""
    count = -1
    time = -1
    is_named = 0
    while at < end:
        after = varint_end(data, at, end)
        if after == 0:
            return 0
        tag = varint_value(data, at, after)
        at = after
        after = varint_end(data, at, end)
        if after == 0:
            return 0
        value = varint_value(data, at, after)
        at = after
        if tag & 7 == 2:
            if value > end - at:
                return 0
            at += value
        elif tag & 7 != 0:
            return 0
        if tag == 0x0A:
            is_named = 1
        elif tag == 0x18:
            if value >> 62:
                return 0
            time = value
        elif tag == 0x58:
            if value >> 31:
                return 0
            count = value
        elif tag == 0x40:
            if value:
                return 0
        elif _is_passed_over(tag) == 0:
            return 0
    if is_named == 0 or time < 0 or count < 0:
        return 0
    into[row + total] = count
    into[row + 2 * total] = time
    return 1


def take_batches(data: Buffer, starts: memoryview, ends: memoryview, verifies: bool, columns: memoryview) -> bool:
    """Columns of the sections `data[start:end]`: COLUMNS of all, one column behind the other.

    False where one is not a plain batch, or (`verifies`) has a wrong checksum; then what was filled does not count.
    """
    total = len(starts)
    size = length_of(data)
    octets = octets_of(data)
    firsts = signed_words_in(starts)
    lasts = signed_words_in(ends)
    into = signed_words_in(columns)
    for row in range(total):
        end = lasts[row]
        if firsts[row] < 0 or end > size:
            return False
        at = _after_broker_metadata(octets, firsts[row], end)
        if at < 0:
            return False
        if end - at >= 6 and read_u16(octets, at) == 0x0E01:
            if verifies and crc32c_of(octets, at + 6, end, 0) != read_u32(octets, at + 2):
                return False
            at += 6
        if end - at < 4:
            return False
        length = read_u32(octets, at)
        at += 4
        if length > end - at or _read_batch(octets, at, at + length, into, row, total) == 0:
            return False
        into[row] = at + length
    return True
