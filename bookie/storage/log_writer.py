"""LogWriter: appends the blocks of each flush to the current entry log, and begins another when that is full.

After an error the current log is left as the checkpoint knows it, and the next flush begins another: an fsync that failed once
may claim success later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from bookie.storage.block_v1 import plan_blocks
from bookie.storage.files_v1 import LogExtent
from bookie.storage.log_file import LogFile, new_log
from bookie.storage.span import Span
from ports.disk.disk import Disk
from wire.run import EntryRun

LANE = "entry-log"
RUNS_PER_SLICE, RUNS_PER_BLOCK = 256, 8
"""Runs that are encoded in one turn of the loop, about a millisecond; what a block costs beside its runs, as runs."""

Pause: TypeAlias = Callable[[], Awaitable[None]]
"""Wait between two slices of a flush."""
Written = tuple[list[LogExtent], list[tuple[int, Span]]]
"""Logs as they are now, and where entries went."""


async def next_turn() -> None:
    """Shortest pause: others on the loop have one turn."""
    await asyncio.sleep(0)


class LogWriter:
    """The entry log that is written. One flush at a time."""

    def __init__(self, disk: Disk, directory: str, log_bytes_max: int, *, direct: bool) -> None:
        self._disk, self._directory, self._direct = disk, directory, direct
        self._log_bytes_max = log_bytes_max
        self._log: LogFile | None = None
        self._resumed: LogExtent | None = None
        self.next_log_id = 1

    def resume(self, next_log_id: int, last: LogExtent | None) -> None:
        """Go on after what the checkpoint names; the last log is opened when something is written."""
        self.next_log_id = next_log_id
        if last is not None and last.log_bytes < self._log_bytes_max:
            self._resumed = last

    def take_log_id(self) -> int:
        """The next log id, which is given out once."""
        log_id, self.next_log_id = self.next_log_id, self.next_log_id + 1
        return log_id

    async def write(self, ledgers: Iterable[tuple[int, Iterable[EntryRun]]], pause: Pause = next_turn) -> Written:
        """Sorted runs by ledger. OSError: nothing of it counts."""
        try:
            return await self._write(ledgers, pause)
        except OSError:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the log; later writes go to a new one. Closing twice is fine."""
        log, self._log, self._resumed = self._log, None, None
        if log is not None:
            await log.close()

    async def _write(self, ledgers: Iterable[tuple[int, Iterable[EntryRun]]], pause: Pause) -> Written:
        written: Written = ([], [])
        is_unfinished, slice_runs = False, 0
        for _, runs in ledgers:
            for together in plan_blocks(runs):
                slice_runs += RUNS_PER_BLOCK + len(together)
                if slice_runs > RUNS_PER_SLICE:
                    slice_runs = 0
                    await pause()
                log = self._log or await self._open()
                await log.append(together)
                is_unfinished = log.size_bytes < self._log_bytes_max
                if not is_unfinished:
                    await self._finish(log, written)
                    await self.close()
        if is_unfinished and self._log is not None:
            await self._finish(self._log, written)
        return written

    async def _finish(self, log: LogFile, written: Written) -> None:
        extent, batch = await log.finish()
        written[0].append(extent)
        written[1].extend(batch)

    async def _open(self) -> LogFile:
        extent = self._resumed or new_log(self.take_log_id())
        self._log = LogFile(self._disk, self._directory, extent, LANE, direct=self._direct)
        await self._log.open()
        return self._log
