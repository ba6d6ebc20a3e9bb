"""Version 1 of the small files beside the entry logs. Pure; big-endian.

- The index of a log (`.index`): a batch of spans for each flush.
- The ledgers file: a batch of ledger states for each flush; the last state of a ledger counts.
- The checkpoint: what of all this is complete, and up to where the journal is not needed any more. It is replaced as a whole.

Index and ledgers file only grow, and the checkpoint says how far they are good: what stands behind is of an unfinished flush.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bookie.journal.format_v1 import JournalMark
from bookie.ledgers import LedgerState
from bookie.storage.span import Span
from wire.kernels.entries import checksum

VERSION = 1
INDEX_MAGIC = b"MGIX"
LEDGERS_MAGIC = b"MGLS"
CHECKPOINT_MAGIC = b"MGCP"

_BATCH = struct.Struct(">4sHHQII")  # magic, version, reserved, file id, body bytes, CRC of all of it with this field 0
_SPAN = struct.Struct(">qqIQI")  # ledger, first entry, count, offset, block bytes
_STATE = struct.Struct(">qBBQ")  # ledger, flags, key bytes, deleted at (ms); then the key
_CHECKPOINT = struct.Struct(">QQQBQQQI")  # mark: sequence, file, offset; journal ended; next log; ledgers file, its bytes; logs
_LOG = struct.Struct(">QQQ")  # log, its bytes, its index's bytes
_FENCED, _GONE, _LIMBO, _MAY_RETURN = 1, 2, 4, 8
STATE_BYTES = _STATE.size + 20
"""Size of a ledger's state, with a master key as BookKeeper makes it (SHA-1)."""


class DamagedFile(Exception):
    """The bytes are not what was written."""


@dataclass(frozen=True, slots=True)
class LogExtent:
    """Extent of an entry log and of its index that is good."""

    log_id: int
    log_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that is stored for good. Journal frames up to `mark` are in it."""

    mark: JournalMark = field(default_factory=JournalMark)
    journal_ended: bool = False
    """The bookie was stopped here: the mark's file has no frame after the mark, and never will."""
    next_log_id: int = 1
    ledgers_file_id: int = 0
    ledgers_bytes: int = 0
    logs: tuple[LogExtent, ...] = ()


def encode_index(log_id: int, spans: Sequence[tuple[int, Span]]) -> bytes:
    """A batch of (ledger id, span)."""
    body = b"".join(
        _SPAN.pack(ledger_id, span.first_entry_id, span.count, span.offset, span.size_bytes) for ledger_id, span in spans
    )
    return _encode_batch(INDEX_MAGIC, log_id, body)


def decode_index(data: bytes, log_id: int) -> Iterator[tuple[int, Span]]:
    for body in _batches(data, INDEX_MAGIC, log_id):
        for ledger_id, first_entry_id, count, offset, size_bytes in _SPAN.iter_unpack(body):
            yield ledger_id, Span(first_entry_id, count, log_id, offset, size_bytes)


def encode_ledgers(file_id: int, states: Iterable[LedgerState], gone: Iterable[int] = ()) -> bytes:
    """A batch of states, and of ledgers that are there no more."""
    parts = []
    for state in states:
        flags = (_FENCED if state.fenced else 0) | (_LIMBO if state.limbo else 0)
        flags |= _MAY_RETURN if state.may_return else 0
        parts.append(_STATE.pack(state.ledger_id, flags, len(state.master_key), state.deleted_ms) + state.master_key)
    parts += [_STATE.pack(ledger_id, _GONE, 0, 0) for ledger_id in gone]
    return _encode_batch(LEDGERS_MAGIC, file_id, b"".join(parts))


def decode_ledgers(data: bytes, file_id: int) -> list[LedgerState]:
    states: dict[int, LedgerState] = {}
    for body in _batches(data, LEDGERS_MAGIC, file_id):
        position = 0
        while position < len(body):
            ledger_id, flags, key_bytes, deleted_ms = _STATE.unpack_from(body, position)
            position += _STATE.size + key_bytes
            if flags & _GONE:
                states.pop(ledger_id, None)
            else:
                key = bytes(body[position - key_bytes : position])
                state = LedgerState(ledger_id, key, bool(flags & _FENCED), deleted_ms)
                state.limbo, state.may_return = bool(flags & _LIMBO), bool(flags & _MAY_RETURN)
                states[ledger_id] = state
    return list(states.values())


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    mark = checkpoint.mark
    numbers = (checkpoint.next_log_id, checkpoint.ledgers_file_id, checkpoint.ledgers_bytes, len(checkpoint.logs))
    body = _CHECKPOINT.pack(mark.sequence, mark.file_id, mark.offset, checkpoint.journal_ended, *numbers)
    body += b"".join(_LOG.pack(log.log_id, log.log_bytes, log.index_bytes) for log in checkpoint.logs)
    return _encode_batch(CHECKPOINT_MAGIC, 0, body)


def decode_checkpoint(data: bytes) -> Checkpoint:
    bodies = list(_batches(data, CHECKPOINT_MAGIC, 0))
    if len(bodies) != 1:
        raise DamagedFile("a checkpoint is exactly one record")
    sequence, file_id, offset, ended, next_log_id, ledgers_file_id, ledgers_bytes, count = _CHECKPOINT.unpack_from(bodies[0])
    logs = tuple(LogExtent(*found) for found in _LOG.iter_unpack(bodies[0][_CHECKPOINT.size :]))
    if len(logs) != count:
        raise DamagedFile(f"{len(logs)} logs instead of {count}")
    return Checkpoint(JournalMark(sequence, file_id, offset), bool(ended), next_log_id, ledgers_file_id, ledgers_bytes, logs)


def _encode_batch(magic: bytes, file_id: int, body: bytes) -> bytes:
    crc = checksum(body, checksum(_BATCH.pack(magic, VERSION, 0, file_id, len(body), 0)))
    return _BATCH.pack(magic, VERSION, 0, file_id, len(body), crc) + body


def _batches(data: bytes, magic: bytes, file_id: int) -> Iterator[memoryview]:
    view = memoryview(data)
    position = 0
    while position < len(data):
        if len(data) - position < _BATCH.size:
            raise DamagedFile(f"cut at {position}")
        found_magic, version, reserved, found_id, size, crc = _BATCH.unpack_from(data, position)
        if (found_magic, found_id) != (magic, file_id):
            raise DamagedFile(f"not a record of this file at {position}")
        if version != VERSION:
            raise DamagedFile(f"version {version}; this bookie knows {VERSION}")
        body = view[position + _BATCH.size : position + _BATCH.size + size]
        head = checksum(_BATCH.pack(magic, version, reserved, file_id, size, 0))
        if len(body) != size or checksum(body, head) != crc:
            raise DamagedFile(f"wrong checksum at {position}")
        yield body
        position += _BATCH.size + size
