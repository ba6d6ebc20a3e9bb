"""IndexLoading: the stored delays of a subscription go to its dispatcher, before that reads any entry. Acknowledged entries are
left out. The result is the rest for the dispatcher to read: every unacknowledged entry, before the last one found, whose delay
was not found. An unreadable bucket is skipped.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerError, LedgerStore, NoSuchLedger
from broker.dispatchers.contract import Event, IndexFound
from broker.dispatchers.delays.delay_buckets import START, Bucket
from broker.dispatchers.delays.delayed_part import Facts
from managed_ledger.contract import ManagedLedger, ManagedLedgerError
from ports.logs import line
from wire.kernels.delayed_index import by_ledger
from wire.position import Position

from ..dispatch.dispatch_ports import ReadPlace
from .storage import DamagedBucket, StoredBucket, open_bucket

_STEP_SECONDS_MAX = 20.0
_FAILURES_MAX = 3

_log = logging.getLogger(__name__)


class IndexLoader:
    """One load. `good` and `useless` are known at its end; a bucket in neither may be readable another time."""

    def __init__(
        self,
        ledgers: LedgerStore,
        log: ManagedLedger,
        place: ReadPlace,
        handle: Callable[[Event], None],
        wall_ms: Callable[[], int],
        label: str,
    ) -> None:
        self.good: list[Bucket] = []
        self.useless: dict[str, int] = {}
        """Ledgers of buckets that are gone or damaged, by key."""
        self.end: Position | None = None
        """Position after the last entry that was found."""
        self.entries = 0
        self.seconds: dict[str, float] = {}
        """Seconds that opening and reading each bucket took, by key."""
        self._ledgers = ledgers
        self._log = log
        self._place = place
        self._handle = handle
        self._wall_ms = wall_ms
        self._label = label
        self._ends: dict[str, tuple[Position, Position]] = {}
        self._failures = 0

    async def load(self, names: Mapping[str, int]) -> None:
        """Loads the buckets, entries that are due already first."""
        opened = [bucket for key, ledger_id in names.items() if (bucket := await self._open(key, ledger_id)) is not None]
        failed: set[str] = set()
        for until in (self._wall_ms(), None):
            for bucket in opened:
                with self._timed(bucket.key):
                    if bucket.key not in failed and not await self._read(bucket, until):
                        failed.add(bucket.key)
        for bucket in opened:
            if bucket.key not in failed:
                self._judge(bucket)

    @contextmanager
    def _timed(self, key: str) -> Iterator[None]:
        began = asyncio.get_running_loop().time()
        yield
        self.seconds[key] = self.seconds.get(key, 0.0) + asyncio.get_running_loop().time() - began

    async def _open(self, key: str, ledger_id: int) -> StoredBucket | None:
        try:
            async with self._limit():
                return await open_bucket(self._ledgers, key, ledger_id)
        except (NoSuchLedger, DamagedBucket) as error:
            self.useless[key] = ledger_id
            self._tell(key, error)
        except (LedgerError, TimeoutError) as error:
            self._failures += 1
            self._tell(key, error)
        return None

    def _limit(self) -> asyncio.Timeout:
        """Time limit for one read: other dispatchers wait, too. After some failures no read is tried."""
        return asyncio.timeout(_STEP_SECONDS_MAX if self._failures < _FAILURES_MAX else 0)

    def _tell(self, key: str, error: Exception) -> None:
        _log.warning(
            line(
                "bucket of delayed messages cannot be read: its messages are read from the log",
                of=self._label,
                bucket=key,
                error=error,
            )
        )

    async def _read(self, bucket: StoredBucket, until_ms: int | None) -> bool:
        try:
            while True:
                async with self._limit():
                    facts = await bucket.next_facts(until_ms)
                if facts is None:
                    return True
                await self._take(bucket.key, facts)
        except ValueError as error:
            self.useless[bucket.key] = bucket.ledger_id
            self._tell(bucket.key, error)
        except (LedgerError, TimeoutError) as error:
            self._failures += 1
            self._tell(bucket.key, error)
        return False

    async def _take(self, key: str, facts: Facts) -> None:
        found: dict[int, tuple[BitMap, Sequence[int], Sequence[int]]] = {}
        acknowledged: dict[int, BitMap] = {}
        for ledger_id, (entry_ids, times) in by_ledger(*facts).items():
            known = BitMap(entry_ids)
            await self._load_acknowledged(ledger_id, known.min(), known.max())
            found[ledger_id] = known, entry_ids, times
            self._reach(key, Position(ledger_id, known.min()), Position(ledger_id, known.max()))
        for ledger_id in found:
            acknowledged[ledger_id] = self._acknowledged(ledger_id)
        self.entries += len(facts[0])
        self._handle(IndexFound(found, acknowledged, self._wall_ms()))  # type: ignore[arg-type]  # arrays they are
        await asyncio.sleep(0)

    async def _load_acknowledged(self, ledger_id: int, first: int, last: int) -> None:
        """Loads acknowledged entries; where that fails, they are looked at once more."""
        if self._place.is_loaded(ledger_id, first, last):
            return
        try:
            await self._place.load_acknowledged(ledger_id, first, last)
        except ManagedLedgerError as error:
            _log.warning(line("acknowledged entries of a ledger not loaded", of=self._label, ledger=ledger_id, error=error))

    def _acknowledged(self, ledger_id: int) -> BitMap:
        """Acknowledged entries of a ledger; up to mark-delete all."""
        mark = self._place.mark_delete
        if ledger_id > mark.ledger_id:
            return self._place.acknowledged_in(ledger_id)
        last = mark.entry_id if ledger_id == mark.ledger_id else _LAST_ENTRY
        return self._place.acknowledged_in(ledger_id) | BitMap(range(last + 1))

    def _reach(self, key: str, first: Position, last: Position) -> None:
        known = self._ends.get(key, (first, last))
        self._ends[key] = min(known[0], first), max(known[1], last)
        after = Position(last.ledger_id, last.entry_id + 1)
        self.end = after if self.end is None else max(self.end, after)

    def _judge(self, bucket: StoredBucket) -> None:
        if not bucket.is_whole or bucket.key not in self._ends:
            self.useless[bucket.key] = bucket.ledger_id
            return
        first, last = self._ends[bucket.key]
        self.good.append(Bucket(bucket.ledger_id, bucket.key, first, last, bucket.size_bytes))

    @property
    def stored_to(self) -> Position:
        return max((bucket.end for bucket in self.good), default=START)

    async def unacknowledged(self) -> list[tuple[int, BitMap]]:
        """Unacknowledged entries before `end`."""
        found: list[tuple[int, BitMap]] = []
        if self.end is None:
            return found
        for ledger in self._log.ledgers():
            ledger_id = ledger.ledger_id
            stop = min(ledger.entries, self.end.entry_id) if ledger_id == self.end.ledger_id else ledger.entries
            if self._place.mark_delete.ledger_id <= ledger_id <= self.end.ledger_id and stop > 0:
                await self._load_acknowledged(ledger_id, 0, stop - 1)
                found.append((ledger_id, BitMap(range(stop)) - self._acknowledged(ledger_id)))
        return found


_LAST_ENTRY = (1 << 32) - 2
