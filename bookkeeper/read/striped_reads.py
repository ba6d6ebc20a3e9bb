"""StripedReads: runs of entries of a ledger that is striped over more bookies than hold each entry.

No bookie has more than a write quorum of consecutive entries. Such a stripe is asked of the one bookie that has all of it,
and the stripes of a window side by side: one after the other a reader would wait for a bookie every few entries, and a request
for more would bring the entries behind the gaps, to be thrown away. The caller chooses another bookie when that one fails.
Bounds: a window is ENTRIES_MAX, and about as many bytes as are asked for, going by the entries read before.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bookkeeper.ledgers import LedgerError
from wire.run import EntryRun
from wire.run_parts import cut, join

ENTRIES_MAX = 512
FIRST_ENTRY_BYTES = 64 * 1024
"""Assumed size of an entry before any was read."""

ReadStripe = Callable[[int, int, int], Awaitable[EntryRun]]
"""Read of entries that one bookie has: first entry id, entries and bytes at most; returns at least one. LedgerUnreadable."""


class StripedReads:
    """Striped reads of one ledger."""

    def __init__(self, write_quorum: int) -> None:
        self._stripe = write_quorum
        self._entry_bytes = FIRST_ENTRY_BYTES

    async def read(self, read: ReadStripe, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Entries without gap from the first on; a failure behind them fails the read that goes on there. LedgerUnreadable."""
        end = first_entry_id + max(1, min(count_max, bytes_max // self._entry_bytes, ENTRIES_MAX))
        starts = [first_entry_id, *range(self._stripe_end(first_entry_id), end, self._stripe)]
        stripes = [self._read_stripe(read, start, min(end, self._stripe_end(start)), bytes_max) for start in starts]
        whole = _unbroken(await asyncio.gather(*stripes, return_exceptions=True))
        self._entry_bytes = max(1, whole.size_bytes // whole.count)
        return cut(whole, first_entry_id, whole.count, bytes_max)

    def _stripe_end(self, entry_id: int) -> int:
        return entry_id - entry_id % self._stripe + self._stripe

    async def _read_stripe(self, read: ReadStripe, start: int, end: int, bytes_max: int) -> list[EntryRun]:
        """The whole stripe: another bookie than the first may have a part. Runs read before a failure count."""
        runs: list[EntryRun] = []
        while start < end:
            try:
                runs.append(await read(start, end - start, bytes_max))
            except LedgerError:
                if not runs:
                    raise
                break
            start = runs[-1].last_entry_id + 1
        return runs


def _unbroken(stripes: list[list[EntryRun] | BaseException]) -> EntryRun:
    """LedgerUnreadable when that is the first."""
    runs: list[EntryRun] = []
    for stripe in stripes:
        if isinstance(stripe, BaseException):
            if not runs or not isinstance(stripe, LedgerError):
                raise stripe
            break
        if runs and stripe[0].first_entry_id != runs[-1].last_entry_id + 1:
            break
        runs += stripe
    return join(runs) if len(runs) > 1 else runs[0]
