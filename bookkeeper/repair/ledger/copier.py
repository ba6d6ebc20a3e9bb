"""Copier: reads the entries of a fragment from bookies with sound copies, and stores them at the bookies that lack them.

Entries go as they are, bytes and digest, with the recovery flag: a bookie on which the ledger was fenced takes them
(BookKeeper issue 4163). They go in ascending order, and a batch begins when the one before it is stored: a copy whose last
entry is there has been made to its end, however often the copying was cut off before.
Bounds: a batch of rereplicationEntryBatchSize entries is held; every read and every add has a time limit.
"""

import asyncio
from collections.abc import Mapping, Sequence

from bookkeeper.ledger_metadata.codec import master_key
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerUnreadable
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import EntryReader, ReadPolicy
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.errors import RepairError
from bookkeeper.repair.ledger.fragments import CopyRun, Fragment, batches, copy_runs, quorum_of
from ports.loop.side_by_side import together
from wire.bookie.codes import BookieError
from wire.run import EntryRun

READ_BYTES_MAX = 1 << 20
SPECULATIVE_SECONDS = 2.0
"""After which the next replica is asked too: one that hangs costs no more than that."""


class ByteRate:
    """`bytes_per_second` not above 0: no limit. A copier waits after each copy for the bytes in it; time in which nothing was
    copied is not saved up."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._paid_until = 0.0

    def wait_after(self, size_bytes: int, now: float) -> float:
        """Seconds to wait, now that so many bytes were copied."""
        if self._rate <= 0:
            return 0.0
        self._paid_until = max(self._paid_until, now) + size_bytes / self._rate
        return self._paid_until - now


class TargetFailed(RepairError):
    """A bookie did not take a copy; another may."""

    def __init__(self, bookie: str, reason: object) -> None:
        super().__init__(f"{bookie} did not take its copy: {reason}")
        self.bookie = bookie


class Copier:
    """Copier of one worker: its rate is that of all its copies together."""

    def __init__(self, client: RepairClient, counters: RepairCounters) -> None:
        self._client, self._counters = client, counters
        self._rate = ByteRate(client.settings.replication_rate_by_bytes)

    async def copy(self, ledger: RegisteredLedger, fragment: Fragment, targets: Mapping[int, str]) -> None:
        """Every entry that the bookies at these indexes should have, to the bookie that takes the index.

        LedgerUnreadable when no replica gives an entry, TargetFailed when a bookie does not take one.
        """
        reader = self._reader(ledger)
        key = master_key(ledger.metadata.password)
        size = self._client.settings.rereplication_entry_batch_size
        runs = copy_runs(quorum_of(ledger.metadata), fragment, list(targets), size)
        for batch in batches(runs, size):
            copied = await together(*(self._copy_run(reader, key, run, targets) for run in batch))
            await asyncio.sleep(self._rate.wait_after(sum(copied), asyncio.get_running_loop().time()))

    def _reader(self, ledger: RegisteredLedger) -> EntryReader:
        client = self._client
        policy = ReadPolicy(speculative_seconds=min(SPECULATIVE_SECONDS, client.timeout_seconds / 2), is_reordered=True)
        return EntryReader(ledger.ledger_id, ledger.metadata, client.bookies, policy, client.candidates)

    async def _copy_run(self, reader: EntryReader, key: bytes, run: CopyRun, targets: Mapping[int, str]) -> int:
        """Bytes copied."""
        at, size_bytes = run.first_entry_id, 0
        while at < run.first_entry_id + run.count:
            found = await self._read(reader, at, run.first_entry_id + run.count - at)
            await self._store(found, key, [targets[index] for index in run.indexes])
            at += found.count
            size_bytes += found.size_bytes * len(run.indexes)
        return size_bytes

    async def _read(self, reader: EntryReader, first_entry_id: int, count_max: int) -> EntryRun:
        counters = self._counters
        try:
            async with asyncio.timeout(self._client.timeout_seconds * 4):
                found = await reader.read(first_entry_id, count_max, READ_BYTES_MAX)
        except (LedgerUnreadable, TimeoutError) as error:
            counters.replication_worker_num_entries_unable_to_read_for_replication += 1
            if isinstance(error, TimeoutError):
                raise LedgerUnreadable(f"entry {first_entry_id}: no replica gave it in time") from error
            raise
        counters.replication_worker_num_entries_read += found.count
        counters.replication_worker_num_bytes_read += found.size_bytes
        return found

    async def _store(self, run: EntryRun, key: bytes, bookies: Sequence[str]) -> None:
        await together(*(self._add(run, key, name) for name in bookies))

    async def _add(self, run: EntryRun, key: bytes, name: str) -> None:
        bookie: BookieClient | None = self._client.bookies.get(name)
        if bookie is None:
            raise TargetFailed(name, "it is not there")
        try:
            async with asyncio.timeout(self._client.timeout_seconds * 2):
                await bookie.add(run, key, recovery=True)
        except (BookieError, TimeoutError) as error:
            self._client.candidates.on_error(name)
            raise TargetFailed(name, repr(error) if isinstance(error, TimeoutError) else error) from error
        self._counters.replication_worker_num_entries_written += run.count
        self._counters.replication_worker_num_bytes_written += run.size_bytes
