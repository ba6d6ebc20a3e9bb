"""A bookie behind its port on this machine, with a real disk, in a thread of its own: for clients that block."""

import asyncio
import dataclasses
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bookie.bookie import Bookie
from bookie.server.listener import BookieListener
from bookie.server.local_reads import LocalReads
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.runs import KEY
from wire.run import EntryRun


def small_settings(directory: Path) -> BookieSettings:
    """A few runs fill several entry logs. However full the disk of this machine is, nothing rests for it."""
    settings = BookieSettings((f"{directory}/journal",), (f"{directory}/ledgers",), journal_max_size_mb=16)
    return dataclasses.replace(
        settings,
        log_size_limit=300_000,
        compaction_rate_by_bytes=0,
        disk_usage_threshold=1.0,
        disk_usage_lwm_threshold=1.0,
        disk_usage_warn_threshold=1.0,
    )


class RealBookie:
    """Serves from `with` on, with `small_settings`."""

    def __init__(self, directory: Path, *, hands_over_files: bool = True) -> None:
        self._directory, self._hands_over_files = directory, hands_over_files
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._start)
        return self

    def call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """On the bookie's loop; returns what it returns."""

        async def run() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=60)

    async def _start(self) -> None:
        self.disk = RealDisk()
        self.bookie = Bookie(self.disk, small_settings(self._directory), RealClock(), RealRng())
        await self.bookie.start()
        self.listener = BookieListener(self.bookie, BookieServerSettings())
        await self.listener.listen("127.0.0.1", 0)
        self.address = f"127.0.0.1:{self.listener.port}"
        self.local_reads = LocalReads(self.bookie, self.listener.stats)
        if self._hands_over_files:
            self.local_reads.listen()
            self.listener.operations.local_reads = self.local_reads.told

    async def close_local_reads(self) -> None:
        await self.local_reads.close()

    def add(self, runs: Sequence[EntryRun], *, flush: bool = True) -> None:
        async def work() -> None:
            await asyncio.gather(*[self.bookie.add(run, KEY) for run in runs])
            if flush:
                await self.bookie.flush()

        self.call(work)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        async def stop() -> None:
            await self.listener.close()
            await self.local_reads.close()
            await self.bookie.stop()
            self.disk.close()

        self.call(stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
