"""LogReads: reads of entries in entry logs, while these are written, compacted and removed. Says how a read fails.

Bound: maxReadsInProgressLimit reads at a time; more wait their turn.

An entry that is here and cannot be read is answered with an error, and never with ENOENTRY (apache/bookkeeper#2908).
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence

from bookie.adds.flusher import Flusher
from bookie.ledgers import LedgerState
from bookie.reads.reading import first_newer
from bookie.storage.block_v1 import DamagedBlock
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

log = logging.getLogger("bookie")
MOVED_READS_MAX = 4
"""Times that a read looks again for an entry whose log was compacted during the read."""
PASSING_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""Errors of a host that lacks something for the moment. They say nothing about the entry, so the answer is never EIO, which a
client may take for a loss."""


def unreadable(ledger_id: int, entry_id: int, why: str) -> BookieError:
    return BookieError(BookieCode.EIO, ledger_id, f"entry {entry_id} {why}")


def read_failure(ledger_id: int, entry_id: int, span: Span, error: OSError | DamagedBlock) -> BookieError:
    """Logged, too."""
    place = f"entry log {span.log_id:08x} offset {span.offset}: {error}"
    log.error(line("entry cannot be read", ledger=ledger_id, entry=entry_id, place=place))
    if isinstance(error, OSError) and error.errno in PASSING_ERRORS:
        return BookieError(BookieCode.ETOOMANYREQUESTS, ledger_id, f"entry {entry_id} {place}")
    return unreadable(ledger_id, entry_id, place)


class LogReads:
    """Reads of one bookie's entry logs. `need` raises when a ledger is not known any more."""

    def __init__(self, storage: LedgerStorage, reads_max: int, need: Callable[[int], object]) -> None:
        self._storage = storage
        self._reads = asyncio.Semaphore(reads_max)
        self._reads_max = reads_max
        self.under_way = 0
        """Reads, also those that wait for their turn."""
        self._need = need

    @property
    def waiting(self) -> int:
        """Number of reads that wait for their turn: maxReadsInProgressLimit."""
        return max(0, self.under_way - self._reads_max)

    async def read(self, state: LedgerState, flusher: Flusher, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Read up to the next entry with a newer write in a memtable. BookieError, never ENOENTRY for a lost entry."""
        ledger_id = state.ledger_id
        for attempt in range(MOVED_READS_MAX):
            span = self._storage.index.find(ledger_id, first_entry_id)
            if span is None:
                raise _missing(state, first_entry_id)
            ahead = min(span.last_entry_id + 1, first_newer(flusher.tables, ledger_id, first_entry_id))
            self.under_way += 1
            try:
                async with self._reads:
                    count = min(count_max, ahead - first_entry_id)
                    return await self._storage.read(ledger_id, span, first_entry_id, count, bytes_max)
            except (OSError, DamagedBlock) as error:
                self._need(ledger_id)  # deleted while it was read: ENOLEDGER
                has_moved = self._storage.index.find(ledger_id, first_entry_id) != span
                if not has_moved or attempt == MOVED_READS_MAX - 1:
                    raise read_failure(ledger_id, first_entry_id, span, error) from error
            finally:
                self.under_way -= 1
        raise AssertionError("the last attempt returns or raises")

    async def pick(self, wanted: Sequence[tuple[int, int]], bytes_max: int) -> list[EntryRun]:
        """Entries that can be read at once, within `bytes_max` in all; `read` gives the reason for the others."""
        places = [
            (ledger_id, span, entry_id)
            for ledger_id, entry_id in wanted
            if (span := self._storage.index.find(ledger_id, entry_id)) is not None
        ]
        if not places:
            return []
        self.under_way += 1
        try:
            async with self._reads:
                return await self._storage.pick(places, bytes_max)
        except OSError as error:  # of one of many: each is read by itself now, and fails by itself if it does
            log.warning(
                line("reading scattered entries together failed: they are read one by one", entries=len(places), error=error)
            )
            return []
        finally:
            self.under_way -= 1


def _missing(state: LedgerState, entry_id: int) -> BookieError:
    if state.suspect:
        return unreadable(state.ledger_id, entry_id, "may be in an entry log that could not be read")
    code = BookieCode.EUNKNOWNLEDGERSTATE if state.limbo else BookieCode.ENOENTRY
    return BookieError(code, state.ledger_id, f"entry {entry_id}")
