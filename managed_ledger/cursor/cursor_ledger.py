"""Entries of a cursor ledger: their recovery, saves of segments with a marker, and a ledger's end. Owns nothing.

The order is the promise: the marker is appended when all entries in it were answered, so a save counts whole or not at all.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerStore, LedgerWriter
from ports.logs import line
from wire.run import batch_of

from ..errors import ManagedLedgerError
from .holes.segment_format_v1 import EntryKind, decode_segment, encode_marker
from .holes.segment_save import SavePlan, Segment
from .recovery import CursorRecovery, ReadBack, Recovered

_READ_BYTES_MAX = 8 << 20
_APPEND_BYTES_MAX = 1 << 20
_APPEND_ENTRIES_MAX = 512

_log = logging.getLogger(__name__)

Holes = dict[int, BitMap]


class CopyFailed(ManagedLedgerError):
    """A roll-over could not read an entry of a segment that is on disk only."""


@dataclass(slots=True)
class SegmentRead:
    """Contents of a segment's entry and of its addition; `errors`: unreadable ones, with the reason."""

    stored: Holes = field(default_factory=dict)
    added: Holes = field(default_factory=dict)
    errors: list[tuple[int, Exception]] = field(default_factory=list)


async def recover_state(name: str, reader: LedgerReader, last_entry_id: int) -> Recovered | None:
    """The state that counts, as if `last_entry_id` were the last entry; None when there is none."""
    machine = CursorRecovery(name, last_entry_id)
    found = machine.begin()
    while isinstance(found, ReadBack):
        found = machine.entries_read(found.first, await read_entries(reader, found.first, found.last))
    return found if isinstance(found, Recovered) else None


async def read_entries(source: LedgerReader | LedgerWriter, first: int, last: int) -> list[bytes]:
    """The payloads of the entries `first` to `last`."""
    entries: list[bytes] = []
    while first <= last:
        run = await source.read(first, last - first + 1, _READ_BYTES_MAX)
        entries += (bytes(run.payload(entry_id)) for entry_id in range(first, run.last_entry_id + 1))
        first = run.last_entry_id + 1
    return entries


async def read_segment(name: str, source: LedgerReader | LedgerWriter | None, segment: Segment) -> SegmentRead:
    """Each of the two entries for itself: what one has does not need the other."""
    found = SegmentRead()
    places = ((EntryKind.SEGMENT, segment.entry_id, found.stored), (EntryKind.ADDITION, segment.addition_id, found.added))
    for kind, entry_id, holes in places:
        if entry_id < 0:
            continue
        assert source is not None, "what names an entry was read from a ledger or written to one"
        try:
            [entry] = await read_entries(source, entry_id, entry_id)
            holes.update(decode_segment(name, kind, segment.start, entry))
        except (LedgerError, ManagedLedgerError) as error:
            found.errors.append((entry_id, error))
    return found


async def append_save(
    name: str, writer: LedgerWriter, plan: SavePlan, old: LedgerReader | LedgerWriter | None
) -> tuple[list[int], int]:
    """The entry ids of the writes, and how many bytes were written with the marker. `old`: where copies come from."""
    entry_ids: list[int] = []
    written = waiting_bytes = 0
    waiting: list[bytes] = []
    for write in plan.writes:
        payload = write.payload
        if payload is None:
            assert old is not None, "a copy needs a ledger to come from"
            payload = await _copied(name, old, write.copy_of)
        waiting.append(payload)
        waiting_bytes += len(payload)
        if waiting_bytes >= _APPEND_BYTES_MAX or len(waiting) >= _APPEND_ENTRIES_MAX:
            entry_ids += await append_entries(writer, waiting)
            written += waiting_bytes
            waiting, waiting_bytes = [], 0
    if waiting:
        entry_ids += await append_entries(writer, waiting)
    marker = encode_marker(name, plan.state, plan.rows(entry_ids))
    await append_entries(writer, [marker])
    return entry_ids, written + waiting_bytes + len(marker)


async def _copied(name: str, old: LedgerReader | LedgerWriter, entry_id: int) -> bytes:
    try:
        [payload] = await read_entries(old, entry_id, entry_id)
    except LedgerError as error:
        raise CopyFailed(f"{name}: entry {entry_id} of its cursor ledger cannot be copied: {error}") from error
    return payload


async def append_entries(writer: LedgerWriter, payloads: Sequence[bytes]) -> list[int]:
    """Append entries in one batch; their ids."""
    run = await writer.append(batch_of(payloads))
    return list(range(run.first_entry_id, run.last_entry_id + 1))


async def close_writer(path: str, writer: LedgerWriter) -> None:
    """Close the ledger; a failure is logged, and the next open recovers the ledger."""
    try:
        await writer.close()
    except LedgerError as error:
        _log.warning(line("cursor ledger not closed", cursor=path, ledger=writer.ledger_id, error=error))


async def delete_ledger(path: str, ledgers: LedgerStore, ledger_id: int) -> None:
    """Delete the ledger; a failure is logged, and the ledger has the cursor's name in its custom metadata."""
    try:
        await ledgers.delete(ledger_id)
    except LedgerError as error:
        _log.warning(line("ledger of a cursor not deleted", cursor=path, ledger=ledger_id, error=error))
