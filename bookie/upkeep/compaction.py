"""Compaction: copies the live entries of some entry logs into a new one, which then takes their place.

It is a transaction: the new log and its index are synced, then one checkpoint names it instead of the old ones, then these are
removed. A crash before the checkpoint leaves a file that no checkpoint names, which the next start removes; a crash after it
leaves the old ones in the same way. The new log stands where the last of the old ones stood: later writes still
overrule it, as they did them. A block whose checksum is wrong is not copied under a right one: its log is left alone.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from bookie.storage.block_v1 import BLOCK_BYTES_MAX, DamagedBlock
from bookie.storage.log_file import LogFile
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage
from ports.logs import line
from wire.run import EntryRun

log = logging.getLogger("bookie.compaction")


@dataclass(frozen=True, slots=True)
class Move:
    """Spans that are one span now."""

    ledger_id: int
    old: tuple[Span, ...]
    new: Span


@dataclass(slots=True)
class _Gathered:
    """Entries that follow one another and will share a block."""

    ledger_id: int = -1
    spans: list[Span] = field(default_factory=list)
    runs: list[EntryRun] = field(default_factory=list)
    size_bytes: int = 0

    def takes(self, ledger_id: int, run: EntryRun) -> bool:
        last = self.runs[-1]
        return (
            ledger_id == self.ledger_id
            and run.first_entry_id == last.last_entry_id + 1
            and self.size_bytes + run.size_bytes <= BLOCK_BYTES_MAX
        )

    def add(self, ledger_id: int, span: Span, run: EntryRun) -> None:
        self.ledger_id = ledger_id
        self.spans.append(span)
        self.runs.append(run)
        self.size_bytes += run.size_bytes


class Compaction:
    """Compaction of one ledger directory; one at a time. Reads and flushes go on meanwhile."""

    def __init__(self, storage: LedgerStorage, bytes_per_second: int) -> None:
        self._storage = storage
        self._bytes_per_second = bytes_per_second

    async def compact(self, log_ids: Sequence[int]) -> int:
        """Replace these logs by one; the bytes copied. OSError: they are as they were."""
        target = self._storage.new_log()
        try:
            moves = await self._copy(target, log_ids)
            extent = (await target.finish())[0] if moves else None
        except (OSError, asyncio.CancelledError):
            self._storage.abandon(target.names)
            raise
        finally:
            await target.close()
        commit = asyncio.ensure_future(self._storage.replace_logs(log_ids, extent, moves))
        try:
            await asyncio.shield(commit)
        except asyncio.CancelledError:
            await asyncio.wait([commit])  # a checkpoint is replaced wholly or not at all, also when the bookie stops
            raise
        return sum(move.new.size_bytes for move in moves)

    async def _copy(self, target: LogFile, log_ids: Sequence[int]) -> list[Move]:
        spans = self._storage.index.spans_in(log_ids)
        moves: list[Move] = []
        gathered = _Gathered()
        for ledger_id, span in spans:
            run = await self._read(ledger_id, span)
            if run is None:
                continue
            if gathered.runs and not gathered.takes(ledger_id, run):
                moves.append(await self._write(target, gathered, is_first=not moves))
                gathered = _Gathered()
            gathered.add(ledger_id, span, run)
        if gathered.runs:
            moves.append(await self._write(target, gathered, is_first=not moves))
        return moves

    async def _read(self, ledger_id: int, span: Span) -> EntryRun | None:
        """The span's entries; None: no ledger needs them any more."""
        if self._bytes_per_second > 0:
            await asyncio.sleep(span.size_bytes / self._bytes_per_second)
        index = self._storage.index
        if not index.holds(ledger_id, span):
            return None
        try:
            return await self._storage.read_checked(ledger_id, span)
        except (DamagedBlock, OSError) as error:
            if not index.holds(ledger_id, span):
                return None  # its ledger was deleted, and the log with it
            log.error(
                line("entry log is damaged, it is not compacted", log=f"{span.log_id:08x}", offset=span.offset, error=error)
            )
            self._storage.leave_alone(span.log_id)
            raise OSError(f"entry log {span.log_id:08x} offset {span.offset}: {error}") from error

    async def _write(self, target: LogFile, gathered: _Gathered, *, is_first: bool) -> Move:
        if is_first:
            await target.open()
        return Move(gathered.ledger_id, tuple(gathered.spans), await target.append(gathered.runs))
