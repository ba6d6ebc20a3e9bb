"""Version 1 of an entry log's bytes. Pure; big-endian but for the offset arrays, which are little-endian as in memory.

A log is a header of LOG_ALIGNMENT bytes, then the blocks of each flush; a flush begins on a multiple of LOG_ALIGNMENT, so that
it never shares a sector with what was durable before. A block is header | offsets | entries: consecutive entries of one ledger.
The offsets count from the block's first byte, so that a block read from disk is a run as it is. The header's CRC32C covers
header and offsets, `data_crc` the entries: a log can be scanned, and checked, without its index.
"""

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wire.kernels.entries import checksum
from wire.run import Buffer, EntryRun

VERSION = 1
LOG_MAGIC = b"MGEL"
BLOCK_MAGIC = b"MGEB"
LOG_ALIGNMENT = 4096
BLOCK_BYTES_MAX = 2 << 20
"""Total size of the entries that share a block; a larger entry has a block of its own. A catch-up reads a block at once."""

_LOG = struct.Struct(">4sHHQ")  # magic, version, reserved, log id
_BLOCK = struct.Struct(">4sHHqqIII")  # magic, version, entry header bytes, ledger, first entry, count, data bytes, data CRC
_CRC = struct.Struct(">I")
_EXTENT = struct.Struct("<II")
EXTENT_BYTES = _EXTENT.size
BLOCK_HEADER_BYTES = _BLOCK.size + _CRC.size


class DamagedBlock(Exception):
    """The bytes are not the block that they should be."""


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Header and offsets of a block. `offsets` count from the block's first byte."""

    ledger_id: int
    first_entry_id: int
    offsets: "array[int]"
    header_bytes: int
    """Size of the header of an entry."""

    @property
    def last_entry_id(self) -> int:
        return self.first_entry_id + len(self.offsets) - 2


def encode_log_header(log_id: int) -> bytes:
    plain = _LOG.pack(LOG_MAGIC, VERSION, 0, log_id)
    return (plain + _CRC.pack(checksum(plain))).ljust(LOG_ALIGNMENT, b"\0")


def plan_blocks(runs: Iterable[EntryRun]) -> Iterator[list[EntryRun]]:
    """Sorted runs of one ledger, those that follow one another put together up to BLOCK_BYTES_MAX."""
    together: list[EntryRun] = []
    size = 0
    for whole in runs:
        for run in _cut(whole):
            last = together[-1] if together else None
            if last and not (run.first_entry_id == last.last_entry_id + 1 and size + run.size_bytes <= BLOCK_BYTES_MAX):
                yield together
                together, size = [], 0
            together.append(run)
            size += run.size_bytes
    if together:
        yield together


def _cut(run: EntryRun) -> Iterator[EntryRun]:
    """A run larger than a block, as several."""
    while run.size_bytes > BLOCK_BYTES_MAX and run.count > 1:
        count = max(1, bisect_right(run.offsets, run.offsets[0] + BLOCK_BYTES_MAX) - 1)
        if count == run.count:
            break
        yield run.entries(run.first_entry_id, count)
        run = run.entries(run.first_entry_id + count, run.count - count)
    yield run


def encode_block(runs: Sequence[EntryRun]) -> tuple[list[Buffer], int]:
    """The block as buffers to write one after the other, and its size. Entries are not copied."""
    first = runs[0]
    count = sum(run.count for run in runs)
    header_bytes = min(run.header_bytes for run in runs)  # by the way an entry came it is known or not what its digest takes
    base = head_size(count)
    offsets = array("I", [base])
    data: list[Buffer] = []
    crc, position = 0, base
    for run in runs:
        start, end = run.offsets[0], run.offsets[-1]
        shift = position - start
        offsets.extend([offset + shift for offset in run.offsets[1:]])
        piece = memoryview(run.buffer)[start:end]
        crc = checksum(piece, crc)
        data.append(piece)
        position += end - start
    header = _BLOCK.pack(BLOCK_MAGIC, VERSION, header_bytes, first.ledger_id, first.first_entry_id, count, position - base, crc)
    table = _little_endian(offsets)
    head = header + _CRC.pack(checksum(table, checksum(header))) + table
    return [head, *data], position


def block_size(head: Buffer, offset: int = 0) -> int:
    """Size of the block whose header is at `offset`. DamagedBlock when the bytes there cannot be a header."""
    if len(head) - offset < BLOCK_HEADER_BYTES or head[offset : offset + 4] != BLOCK_MAGIC:
        raise DamagedBlock("no block begins here")
    _, version, _, _, _, count, data_bytes, _ = _BLOCK.unpack_from(head, offset)
    if version != VERSION:
        raise DamagedBlock(f"version {version}; this bookie knows {VERSION}")
    return head_size(count) + int(data_bytes)


def head_size(count: int) -> int:
    """Bytes before the entries of a block of so many."""
    return BLOCK_HEADER_BYTES + 4 * (count + 1)


def offsets_at(index: int) -> int:
    """Place in a block of the offset of the entry with this index; the offset of its end follows."""
    return BLOCK_HEADER_BYTES + 4 * index


def entry_extent(offsets: bytes) -> tuple[int, int]:
    """Begin and end of an entry in the block, read at `offsets_at`. Not checked: the entry has a checksum of its own."""
    begin, end = _EXTENT.unpack(offsets)
    return begin, end


def entry_count(head: Buffer) -> int:
    """Number of entries of the block that begins with `head`; not checked yet. DamagedBlock when no block begins so."""
    block_size(head)
    count: int = _BLOCK.unpack_from(head)[5]
    return count


def decode_table(head: Buffer) -> BlockTable:
    """Table from the first bytes of a block, `head_size` of them or more. DamagedBlock."""
    base = head_size(entry_count(head))
    view = memoryview(head)
    table = view[BLOCK_HEADER_BYTES:base]
    if len(head) < base or checksum(table, checksum(view[: _BLOCK.size])) != _CRC.unpack_from(head, _BLOCK.size)[0]:
        raise DamagedBlock("the header's checksum is wrong")
    offsets = array("I")
    offsets.frombytes(table)
    if sys.byteorder == "big":
        offsets.byteswap()
    _, _, header_bytes, ledger_id, first_entry_id, _, _, _ = _BLOCK.unpack_from(head)
    return BlockTable(ledger_id, first_entry_id, offsets, header_bytes)


def decode_block(block: bytes, *, check_data: bool = False) -> EntryRun:
    """The run; it shares `block`. With `check_data` the entries' checksum is verified too, not the header's alone."""
    if block_size(block) != len(block):
        raise DamagedBlock(f"{len(block)} bytes instead of {block_size(block)}")
    table = decode_table(block)
    if check_data and checksum(memoryview(block)[table.offsets[0] :]) != _BLOCK.unpack_from(block)[7]:
        raise DamagedBlock("the entries' checksum is wrong")
    return EntryRun(table.ledger_id, table.first_entry_id, block, table.offsets, table.header_bytes)


def _little_endian(offsets: "array[int]") -> bytes:
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets.tobytes()
