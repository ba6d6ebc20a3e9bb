"""Version 1 of the journal's bytes. Pure; big-endian but for the offset arrays, which are little-endian as in memory.

A file is a header block and then frames; each begins on a multiple of the alignment and is padded to one. One frame is one
write with its fsync, and the next is written only after it: so a frame that cannot be read is the torn end of the journal,
unless a later one of the same file exists. Frames carry the key of their file (`file_key`), which clients cannot guess:
neither the earlier bytes of a recycled file nor the bytes of a client's payload pass for a frame.

A frame is header | table | data | padding. The table has a record for each run, mix, master key or fence; the data are the
sealed entries of runs and mixes in the same order. Both are covered by `body_crc`, the header by its own CRC32C.
"""

import hashlib
import struct
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from wire.kernels.entries import checksum
from wire.run import Buffer, EntryMix, EntryRun

VERSION = 1
FILE_MAGIC = b"MGJL"
FRAME_MAGIC = b"MGJF"

_FILE = struct.Struct(">4sHHIQQQ")  # magic, version, reserved, alignment, file id, file key, first sequence
_FRAME = struct.Struct(">4sHHQQIIII")  # magic, version, reserved, file key, sequence, records, table, data, body CRC
_CRC = struct.Struct(">I")
FILE_HEADER_BYTES = _FILE.size + _CRC.size
FRAME_HEADER_BYTES = _FRAME.size + _CRC.size

_RUN = struct.Struct(">BBHqqIII")  # kind, reserved, entry header bytes, ledger, first entry, count, offsets[0], data bytes
_MIX = struct.Struct(">BBHII")  # kind, reserved, reserved, count, data bytes; then the offsets
_KEY = struct.Struct(">BBHq")  # kind, reserved, key bytes, ledger; then the key
_FENCE = struct.Struct(">BBHq")  # kind, reserved, reserved, ledger
RUN_KIND, KEY_KIND, FENCE_KIND, MIX_KIND = 1, 2, 3, 4
NO_FRAME_YET = 0
"""First sequence of a file that is prepared. The first frame is written together with the header that replaces this one."""


@dataclass(frozen=True, slots=True, order=True)
class JournalMark:
    """After frame `sequence`, which ends at `offset` of file `file_id`. Sequence 0: before the first frame ever written."""

    sequence: int = 0
    file_id: int = 0
    offset: int = 0


class BadRecord(Exception):
    """A record whose checksum is right and whose content is not: written by a version that this one does not know."""


@dataclass(frozen=True, slots=True)
class MasterKeySet:
    """The ledger exists on this bookie, with this key."""

    ledger_id: int
    master_key: bytes


@dataclass(frozen=True, slots=True)
class LedgerFenced:
    """The ledger takes no adds but those of a recovery."""

    ledger_id: int


Record = EntryRun | EntryMix | MasterKeySet | LedgerFenced


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Header in the first block of a journal file."""

    alignment: int
    file_id: int
    first_sequence: int


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """Header before a frame's body."""

    sequence: int
    record_count: int
    table_bytes: int
    data_bytes: int
    body_crc: int

    @property
    def size_bytes(self) -> int:
        return FRAME_HEADER_BYTES + self.table_bytes + self.data_bytes


def file_key(secret: bytes, file_id: int) -> int:
    """The key that marks the frames of one file."""
    return int.from_bytes(hashlib.blake2b(file_id.to_bytes(8, "big"), key=secret, digest_size=8).digest(), "big")


def aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def encode_file_header(header: FileHeader, key: int) -> bytes:
    """Exactly one alignment block."""
    plain = _FILE.pack(FILE_MAGIC, VERSION, 0, header.alignment, header.file_id, key, header.first_sequence)
    return (plain + _CRC.pack(checksum(plain))).ljust(header.alignment, b"\0")


def decode_file_header(block: bytes, file_id: int, key: int) -> FileHeader | None:
    """None when the block is not the header of the file with this id and key (a file prepared, recycled or torn)."""
    if len(block) < FILE_HEADER_BYTES or block[:4] != FILE_MAGIC:
        return None
    if checksum(block[: _FILE.size]) != _CRC.unpack_from(block, _FILE.size)[0]:
        return None
    _, version, _, alignment, found_id, found_key, first_sequence = _FILE.unpack_from(block)
    if version != VERSION:
        raise BadRecord(f"journal format version {version}; this bookie knows {VERSION}")
    if (found_id, found_key) != (file_id, key):
        return None
    return FileHeader(alignment, file_id, first_sequence)


def encode_frame(records: Sequence[Record], key: int, sequence: int, alignment: int) -> tuple[list[Buffer], int]:
    """The frame as buffers to write one after the other, and its padded size. Entries are not copied."""
    table_parts: list[bytes] = []
    data: list[Buffer] = []
    data_bytes = 0
    for record in records:
        if isinstance(record, EntryMix):
            offsets = record.offsets
            size = offsets[-1]
            table_parts += (_MIX.pack(MIX_KIND, 0, 0, len(offsets) - 1, size), _little_endian(offsets))
            data.append(record.buffer)
            data_bytes += size
        elif isinstance(record, EntryRun):
            offsets = record.offsets
            first, count = record.first_entry_id, len(offsets) - 1
            start, end = offsets[0], offsets[-1]
            table_parts.append(_RUN.pack(RUN_KIND, 0, record.header_bytes, record.ledger_id, first, count, start, end - start))
            table_parts.append(_little_endian(offsets))
            buffer = record.buffer
            data.append(buffer if start == 0 and end == len(buffer) else memoryview(buffer)[start:end])
            data_bytes += end - start
        elif isinstance(record, MasterKeySet):
            table_parts.append(_KEY.pack(KEY_KIND, 0, len(record.master_key), record.ledger_id) + record.master_key)
        else:
            table_parts.append(_FENCE.pack(FENCE_KIND, 0, 0, record.ledger_id))
    table = b"".join(table_parts)
    crc = checksum(table)
    for piece in data:
        crc = checksum(piece, crc)
    header = _FRAME.pack(FRAME_MAGIC, VERSION, 0, key, sequence, len(records), len(table), data_bytes, crc)
    head = header + _CRC.pack(checksum(header)) + table
    size = len(head) + data_bytes
    padding = -size % alignment
    return [head, *data, bytes(padding)], size + padding


def decode_frame_header(view: Buffer, offset: int, key: int) -> FrameHeader | None:
    """None when no frame of the file with this key begins at `offset`."""
    if len(view) - offset < FRAME_HEADER_BYTES or view[offset : offset + 4] != FRAME_MAGIC:
        return None
    plain = bytes(view[offset : offset + _FRAME.size])
    if checksum(plain) != _CRC.unpack_from(view, offset + _FRAME.size)[0]:
        return None
    _, version, _, found_key, sequence, record_count, table_bytes, data_bytes, body_crc = _FRAME.unpack(plain)
    if found_key != key:
        return None
    if version != VERSION:
        raise BadRecord(f"journal format version {version}; this bookie knows {VERSION}")
    return FrameHeader(sequence, record_count, table_bytes, data_bytes, body_crc)


def decode_body(header: FrameHeader, body: memoryview) -> list[Record] | None:
    """The records, or None when the checksum is wrong. `body` is the table and the data; runs get copies of their bytes."""
    if checksum(body) != header.body_crc:
        return None
    records: list[Record] = []
    position, data = 0, header.table_bytes
    for _ in range(header.record_count):
        kind = body[position]
        if kind == RUN_KIND:
            run, position = _decode_run(body, position, data)
            data += run.size_bytes
            records.append(run)
        elif kind == MIX_KIND:
            mix, position = _decode_mix(body, position, data)
            data += mix.size_bytes
            records.append(mix)
        elif kind == KEY_KIND:
            _, _, size, ledger_id = _KEY.unpack_from(body, position)
            position += _KEY.size + size
            records.append(MasterKeySet(ledger_id, bytes(body[position - size : position])))
        elif kind == FENCE_KIND:
            records.append(LedgerFenced(_FENCE.unpack_from(body, position)[3]))
            position += _FENCE.size
        else:
            raise BadRecord(f"unknown journal record {kind}")
    if position != header.table_bytes or data != len(body):
        raise BadRecord("a journal frame's records do not fill it")
    return records


def _decode_run(body: memoryview, position: int, data: int) -> tuple[EntryRun, int]:
    _, _, header_bytes, ledger_id, first_entry_id, count, start, size = _RUN.unpack_from(body, position)
    offsets, position = _decode_offsets(body, position + _RUN.size, count)
    if start:
        offsets = array("I", [offset - start for offset in offsets])
    return EntryRun(ledger_id, first_entry_id, bytes(body[data : data + size]), offsets, header_bytes), position


def _decode_mix(body: memoryview, position: int, data: int) -> tuple[EntryMix, int]:
    _, _, _, count, size = _MIX.unpack_from(body, position)
    offsets, position = _decode_offsets(body, position + _MIX.size, count)
    return EntryMix(bytes(body[data : data + size]), offsets), position


def _decode_offsets(body: memoryview, position: int, count: int) -> "tuple[array[int], int]":
    """Offsets, and the position after them."""
    after = position + 4 * (count + 1)
    offsets = array("I")
    offsets.frombytes(body[position:after])
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets, after


def _little_endian(offsets: "array[int]") -> bytes:
    if sys.byteorder == "little":
        return offsets.tobytes()
    swapped = array("I", offsets)
    swapped.byteswap()
    return swapped.tobytes()
