"""ReadAhead: entries of a ledger's tail that a recovery finds before it needs them.

Only found entries count: an entry is valid whenever it was read. A fenced bookie must say that an entry is absent when
the recovery asks for it (BookKeeper issue 2614), so absence is not remembered. Where entries are striped over the ensemble,
each is asked of one bookie, all of a window at once: otherwise a recovery gets on by as many entries as one bookie has in a
row. Bounds: one window at a time, of ENTRIES_MAX and about BYTES_MAX, as far as the sizes of entries before tell; given up
after SECONDS_MAX, so that a bookie that hangs holds no recovery up (issue 1067); it is not asked again where another one is.
"""

import asyncio
from collections.abc import Callable, Collection

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import DamagedEntry, sound_entries
from bookkeeper.write.quorum_tracker import Quorum
from wire.bookie.codes import BookieError
from wire.run import EntryRun
from wire.run_parts import join

ENTRIES_MAX = 512
FIRST_ENTRIES = 16
"""Before the size of an entry is known."""
BYTES_MAX = 4 * 1024 * 1024
SECONDS_MAX = 1.0


class ReadAhead:
    """Entries read ahead for one recovery. `client` gives the bookie at an index of the last ensemble; `entries_left` says how
    many entries it may have from one on. `client` raises BookieError."""

    def __init__(
        self,
        ledger_id: int,
        metadata: LedgerMetadata,
        client: Callable[[int], BookieClient],
        on_found: Callable[[], object],
        entries_left: Callable[[int, int], int],
    ) -> None:
        self._ledger_id, self._metadata, self._client, self._on_found = ledger_id, metadata, client, on_found
        self._entries_left = entries_left
        self._quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._entry_bytes = BYTES_MAX // FIRST_ENTRIES
        self._found: EntryRun | None = None
        self._failed: dict[int, None] = {}
        """Indexes of bookies that did not answer."""
        self._task: asyncio.Task[None] | None = None

    def start(self, first_entry_id: int, good: Collection[int]) -> None:
        """Start a read from this entry on, preferably of these bookies; nothing when it is under way or done."""
        if self._task is None and (self._found is None or self._found.last_entry_id < first_entry_id):
            self._found = None
            self._task = asyncio.create_task(self._read(first_entry_id, good), name=f"read ahead of {self._ledger_id}")

    def take(self, entry_id: int) -> EntryRun | None:
        """Entries found from this one on; None when there are none, or none yet."""
        found, self._found = self._found, None
        if found is None or not found.first_entry_id <= entry_id <= found.last_entry_id:
            return None
        return found.entries(entry_id, found.last_entry_id + 1 - entry_id)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _read(self, first_entry_id: int, good: Collection[int]) -> None:
        count = max(1, min(ENTRIES_MAX, BYTES_MAX // self._entry_bytes))
        entry_ids = range(first_entry_id, first_entry_id + (count if self._quorum.is_striped else 1))
        asked = [self._whom_to_ask(entry_id, good) for entry_id in entry_ids]
        reads = [asyncio.ensure_future(self._read_at(*each)) for each in zip(asked, entry_ids, strict=True)]
        try:
            await asyncio.wait(reads, timeout=SECONDS_MAX)
        finally:
            for read in reads:
                read.cancel()
            runs = await asyncio.gather(*reads, return_exceptions=True)
            self._task = None
        self._failed |= {index: None for index, run in zip(asked, runs, strict=True) if isinstance(run, asyncio.CancelledError)}
        self._keep(runs)

    def _whom_to_ask(self, entry_id: int, good: Collection[int]) -> int:
        write_set = self._quorum.write_set(entry_id)
        return min(write_set, key=lambda index: (index in self._failed, index not in good))

    async def _read_at(self, index: int, entry_id: int) -> EntryRun:
        count_max = 1 if self._quorum.is_striped else min(ENTRIES_MAX, self._entries_left(index, entry_id))
        run = await self._client(index).read(self._ledger_id, entry_id, count_max, BYTES_MAX)
        return sound_entries(run, self._ledger_id, entry_id, self._metadata)

    def _keep(self, runs: "list[EntryRun | BaseException]") -> None:
        """Keep the runs before the first that was not found."""
        found: list[EntryRun] = []
        for run in runs:
            if isinstance(run, BookieError | DamagedEntry | asyncio.CancelledError):
                break
            if isinstance(run, BaseException):
                raise run
            found.append(run)
        if found:
            self._found = join(found) if len(found) > 1 else found[0]
            self._entry_bytes = max(1, self._found.size_bytes // self._found.count)
            self._on_found()
