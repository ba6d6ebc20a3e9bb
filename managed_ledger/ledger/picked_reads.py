"""PickedReads: entries that are scattered over a ledger, as one run (`wire.picked_runs`), for who reads some of them again.

What lies close together is fetched together and the rest of it thrown away: a read costs more than the bytes between. Several
fetches are under way at once, so that a far bookie is not waited for once per entry. Nothing of this is kept in the cache, and
no place is noted: who picks does not read on.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pyroaring import BitMap

from managed_ledger.errors import ManagedLedgerError
from wire.picked_runs import picked_run
from wire.position import Position
from wire.run import EntryRun

GAP_BYTES = 16 << 10
"""So far apart, two entries are still fetched together."""
FETCHED_OVER_PICKED = 4
"""So many times the bytes asked for may be fetched for what lies between; large entries may be where the mean is small."""
FETCHES_MAX = 8
"""At a time, for one pick."""

Fetch = Callable[[Position, int], Awaitable[EntryRun | Position]]
"""The entries from a position on, at least one, at most so many; or where to go on, when it cannot be read and is skipped."""


def groups(wanted: BitMap, gap_max: int) -> list[tuple[int, int]]:
    """First and last entry of what is fetched together: wanted ones with at most `gap_max` others between two of them."""
    ids = wanted.to_array()
    breaks = [place for place in range(1, len(ids)) if ids[place] - ids[place - 1] > gap_max + 1]
    return [(ids[start], ids[stop - 1]) for start, stop in zip([0, *breaks], [*breaks, len(ids)], strict=True)]


def within(wanted: BitMap, entry_bytes: int, bytes_max: int) -> BitMap:
    """As many of the first as fit, going by the mean size of an entry; at least one."""
    return wanted[: max(1, bytes_max // max(entry_bytes, 1))]


class _Pick:
    """One at work: what was fetched, by group."""

    def __init__(self, ledger_id: int, wanted: BitMap, fetch: Fetch, gap_max: int, bytes_max: int) -> None:
        self._ledger_id = ledger_id
        self._wanted = wanted
        self._fetch = fetch
        self._spans = spans = groups(wanted, gap_max)
        self._next = 0
        self._bytes_left = bytes_max
        self._is_whole = [False] * len(spans)
        self.parts: list[list[EntryRun]] = [[] for _ in spans]
        self.failures: dict[int, ManagedLedgerError] = {}

    async def work(self) -> None:
        """Group after group, until there is none left that nobody works at, one has failed, or it is enough."""
        while self._next < len(self._spans) and not self.failures and self._bytes_left > 0:
            index, self._next = self._next, self._next + 1
            try:
                await self._fetch_group(index)
            except ManagedLedgerError as error:
                self.failures[index] = error

    async def _fetch_group(self, index: int) -> None:
        entry_id, last = self._spans[index]
        while entry_id <= last:
            if self._bytes_left <= 0 and self.parts[index]:
                return
            entry_id = self._wanted.next_set_bit(entry_id)  # what nobody wants need not be readable
            found = await self._fetch(Position(self._ledger_id, entry_id), last + 1 - entry_id)
            if isinstance(found, EntryRun):
                self.parts[index].append(found)
                self._bytes_left -= found.size_bytes
                entry_id = found.last_entry_id + 1
            elif found.ledger_id == self._ledger_id:
                entry_id = found.entry_id
            else:
                break
        self._is_whole[index] = True

    def fetched(self) -> list[EntryRun]:
        """All that comes before the first that was not fetched. ManagedLedgerError: that failed, and there is nothing else."""
        whole = next((index for index, is_whole in enumerate(self._is_whole) if not is_whole), len(self.parts))
        found = [part for parts in self.parts[: whole + 1] for part in parts]
        if not found and whole in self.failures:
            raise self.failures[whole]
        return found


async def pick(ledger_id: int, wanted: BitMap, entry_bytes: int, bytes_max: int, fetch: Fetch) -> EntryRun | None:
    """Those of the wanted entries that can be had now: the first ones, in about `bytes_max`. None: they are not there any more.

    ManagedLedgerError when the first of them cannot be read.
    """
    if not wanted:
        return None
    chosen = within(wanted, entry_bytes, bytes_max)
    work = _Pick(ledger_id, chosen, fetch, GAP_BYTES // max(entry_bytes, 1), FETCHED_OVER_PICKED * bytes_max)
    workers = min(FETCHES_MAX, len(work.parts))
    if workers == 1:
        await work.work()
    else:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(work.work())
    return picked_run(work.fetched(), chosen)
