"""Trimming: deletes the ledgers at the beginning that no cursor needs, one pass at a time.

The order of the steps: the ledgers leave the log and every cursor is told, the list is written with them marked, then they are
deleted (`deletion_driver`). `trimming` chooses the ledgers that can go.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from managed_ledger.errors import ManagedLedgerError
from ports.clock import Clock
from ports.logs import line
from wire.position import Position

from .deletion_driver import LedgerDeletion
from .metadata_driver import LogMetadata
from .trimming import NO_RETENTION, Retention, trimmable

_log = logging.getLogger(__name__)


class Trimming:
    """Trimming of one managed ledger. `slowest`: mark of the slowest cursor. `trimmed` notifies readers; `write` stores the
    list."""

    def __init__(
        self,
        metadata: LogMetadata,
        deletion: LedgerDeletion,
        retention: Retention,
        clock: Clock,
        slowest: Callable[[], Position | None],
        trimmed: Callable[[Sequence[int]], None],
        write: Callable[[], Awaitable[None]],
    ) -> None:
        self._metadata = metadata
        self._deletion = deletion
        self._retained = retention
        self._clock = clock
        self._slowest = slowest
        self._trimmed = trimmed
        self._write = write
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    def set_retention(self, retention: Retention) -> None:
        """Set the retention from now on; ledgers that it releases are trimmed soon."""
        if retention != self._retained:
            self._retained = retention
            self.trim_soon()

    async def trim(self, *, despite_retention: bool = False) -> list[int]:
        async with self._turn:
            ledger_ids = self._trimmable(NO_RETENTION if despite_retention else self._retained)
            if ledger_ids:
                await self._remove(ledger_ids)
                self._deletion.start()
            return ledger_ids

    def trim_soon(self) -> None:
        """Trim in the background, if there is something to trim."""
        if self._task is None and self._trimmable(self._retained):
            self._task = asyncio.get_running_loop().create_task(self._trim_in_background())

    async def remove_all(self) -> None:
        """The managed ledger is to be deleted: list every ledger as such. All must be closed."""
        async with self._turn:
            await self._remove([span.ledger_id for span in self._metadata.sequence])

    def stop(self) -> None:
        """Nothing is trimmed any more: the end begins, cursors leave, and without them everything would look consumed."""
        self._is_stopped = True

    async def finish(self) -> None:
        """Wait for the pass under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _trimmable(self, retention: Retention) -> list[int]:
        if self._is_stopped:
            return []
        is_terminated = self._metadata.terminated is not None
        mark = self._slowest()
        marks = () if mark is None else (mark,)
        return trimmable(self._metadata.sequence, marks, retention, self._clock.now_ms(), is_terminated=is_terminated)

    async def _remove(self, ledger_ids: Sequence[int]) -> None:
        for ledger_id in ledger_ids:
            self._metadata.mark_deleting(ledger_id)
        self._metadata.sequence.remove(ledger_ids)
        self._trimmed(ledger_ids)
        await self._write()

    async def _trim_in_background(self) -> None:
        try:
            await self.trim()
        except ManagedLedgerError as error:
            _log.warning(line("managed ledger not trimmed", managed_ledger=self._metadata.name, error=error))
        finally:
            self._task = None
