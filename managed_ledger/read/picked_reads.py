"""PickedReads: scattered entries of a log, as runs of them alone (`wire.picked_runs`), for callers that read some again.

Entries close together are fetched together and those between thrown away: a read costs more than the bytes between. Lone
entries are asked for all at once, of a store that can give them so; the rest is fetched several at a time, so that a far bookie
is not waited for once per entry. Nothing of this is kept in the cache, and no place is noted: the caller does not read on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from pyroaring import BitMap

from managed_ledger.errors import ManagedLedgerError
from wire.picked_runs import Picked, Picks, picked_runs
from wire.position import Position
from wire.run import EntryRun

GAP_BYTES = 16 << 10
"""Distance up to which two entries are still fetched together."""
FETCHED_OVER_PICKED = 4
"""Multiple of the bytes asked for that may be fetched with the entries between; these may be larger than the mean."""
FETCHES_MAX = 16
"""Concurrent fetches of one pick."""

Fetch = Callable[[Position, int], Awaitable[EntryRun | Position]]
"""The entries from a position on, at least one, at most so many; or where to go on, when it cannot be read and is skipped."""
FetchAll = Callable[[Sequence[Position], int], Awaitable[Sequence[EntryRun]]]
"""Fetch of those among the given entries that one turn can read, within about the given bytes, a run each; the others are left
out."""


class Group(NamedTuple):
    """Entries that are fetched together."""

    ledger_id: int
    first: int
    last: int


def groups(wanted: BitMap, gap_max: int) -> list[tuple[int, int]]:
    """First and last entry of each group fetched together: wanted ones with at most `gap_max` others between two of them."""
    ids = wanted.to_array()
    breaks = [place for place in range(1, len(ids)) if ids[place] - ids[place - 1] > gap_max + 1]
    return [(ids[start], ids[stop - 1]) for start, stop in zip([0, *breaks], [*breaks, len(ids)], strict=True)]


def within(wanted: Picks, entry_bytes: Sequence[int], bytes_max: int) -> Picks:
    """First entries that fit, by the mean size of an entry in each ledger; at least one."""
    found: list[tuple[int, BitMap]] = []
    for (ledger_id, entry_ids), size in zip(wanted, entry_bytes, strict=True):
        count = max(bytes_max // max(size, 1), not found)
        if count:
            found.append((ledger_id, entry_ids[:count]))
        if count < len(entry_ids):
            break
        bytes_max -= len(entry_ids) * size
    return found


class _Pick:
    """One pick at work: the fetched runs, by group."""

    def __init__(self, wanted: Picks, found: Sequence[Group], fetch: Fetch, bytes_max: int) -> None:
        self._wanted = wanted
        self._ids = dict(wanted)
        self._groups = found
        self._fetch = fetch
        self._next = 0
        self._bytes_left = bytes_max
        self._is_whole = [False] * len(found)
        self._parts: list[list[EntryRun]] = [[] for _ in found]
        self._failures: dict[int, ManagedLedgerError] = {}

    async def begin(self, fetch_all: FetchAll) -> int:
        """With those that lie alone. How many groups are left for `work`."""
        alone = {(ledger_id, first): index for index, (ledger_id, first, last) in enumerate(self._groups) if first == last}
        if len(alone) < 2:
            return len(self._groups)
        for run in await fetch_all([Position(*each) for each in alone], self._bytes_left):
            index = alone[run.ledger_id, run.first_entry_id]
            self._parts[index], self._is_whole[index] = [run], True
            self._bytes_left -= run.size_bytes
        return self._is_whole.count(False)

    async def work(self) -> None:
        """Fetch group after group, until all are taken, one has failed, or the bytes are enough."""
        while self._next < len(self._groups) and not self._failures and self._bytes_left > 0:
            index, self._next = self._next, self._next + 1
            if self._is_whole[index]:
                continue
            try:
                await self._fetch_group(index)
            except ManagedLedgerError as error:
                self._failures[index] = error

    async def _fetch_group(self, index: int) -> None:
        ledger_id, entry_id, last = self._groups[index]
        while entry_id <= last:
            if self._bytes_left <= 0 and self._parts[index]:
                return
            entry_id = self._ids[ledger_id].next_set_bit(entry_id)  # what nobody wants need not be readable
            found = await self._fetch(Position(ledger_id, entry_id), last + 1 - entry_id)
            if isinstance(found, EntryRun):
                self._parts[index].append(found)
                self._bytes_left -= found.size_bytes
                entry_id = found.last_entry_id + 1
            elif found.ledger_id == ledger_id:
                entry_id = found.entry_id
            else:
                break
        self._is_whole[index] = True

    def picked(self) -> Picked:
        """All entries before the first that was not fetched. ManagedLedgerError when the very first failed."""
        whole = next((index for index, is_whole in enumerate(self._is_whole) if not is_whole), len(self._groups))
        if not whole and 0 in self._failures and not self._parts[0]:
            raise self._failures[0]
        parts: dict[int, list[EntryRun]] = {}
        for group, fetched in zip(self._groups[: whole + 1], self._parts, strict=False):
            parts.setdefault(group.ledger_id, []).extend(fetched)
        runs: list[EntryRun] = []
        gone: list[tuple[int, BitMap]] = []
        for ledger_id, entry_ids in self._before(whole):
            theirs = parts.get(ledger_id, [])
            runs.extend(picked_runs(theirs, entry_ids))
            for part in theirs:
                entry_ids.remove_range(part.first_entry_id, part.last_entry_id + 1)
            if entry_ids:
                gone.append((ledger_id, entry_ids))
        return Picked(runs, gone)

    def _before(self, whole: int) -> Picks:
        """Wanted entries before the end of the fetched ones; copies."""
        if whole == len(self._groups):
            return [(ledger_id, entry_ids.copy()) for ledger_id, entry_ids in self._wanted]
        last, first, _ = self._groups[whole]
        fetched = self._parts[whole]
        end = fetched[-1].last_entry_id + 1 if fetched else first
        return [
            (ledger_id, entry_ids & BitMap(range(end)) if ledger_id == last else entry_ids.copy())
            for ledger_id, entry_ids in self._wanted
            if ledger_id <= last
        ]


async def pick(wanted: Picks, entry_bytes: Sequence[int], bytes_max: int, fetch: Fetch, fetch_all: FetchAll) -> Picked:
    """Wanted entries that can be had now: the first ones, in about `bytes_max`. `entry_bytes`: the mean by ledger.

    ManagedLedgerError when the first of them cannot be read.
    """
    chosen = within(wanted, entry_bytes, bytes_max)
    found = [
        Group(ledger_id, first, last)
        for (ledger_id, entry_ids), size in zip(chosen, entry_bytes, strict=False)
        for first, last in groups(entry_ids, GAP_BYTES // max(size, 1))
    ]
    work = _Pick(chosen, found, fetch, FETCHED_OVER_PICKED * bytes_max)
    left = await work.begin(fetch_all)
    if left == 1:
        await work.work()
    elif left:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(FETCHES_MAX, left)):
                tasks.create_task(work.work())
    return work.picked()
