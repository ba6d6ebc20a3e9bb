"""DelayedIndex: stores the delayed entries of a subscription in buckets, and loads them with the topic.

Owns the buckets' ledgers and the cursor properties that name them. `delay_buckets` chooses the buckets to write; correctness
does not depend on their writing or its time. A ledger is named before anything is in it, and deleted before its name: the next
load finds the leftovers of a crash, except for an empty ledger that was made in the moment before it was named.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from bookkeeper.ledgers import LedgerError, LedgerStore, LedgerWriter
from broker.dispatchers.contract import IndexLoaded, IndexLoading
from broker.dispatchers.delays.delay_buckets import (
    BUCKETS_MAX,
    START,
    Bucket,
    BucketRule,
    Drop,
    Store,
    has_ledgers_of_its_own,
    next_step,
)
from broker.dispatchers.settings import DispatcherSettings
from managed_ledger.contract import ManagedCursor, ManagedLedger, ManagedLedgerError
from managed_ledger.cursor.properties import apache_bucket_key, bucket_key, bucket_ledgers
from ports.allocator import give_back_free_memory
from ports.logs import line
from ports.loop.owner import tell
from ports.loop.side_by_side import unbroken

from ..dispatch.dispatch_driver import DispatchDriver
from ..dispatch.dispatch_ports import ReadPlace
from ..statistics.delayed_stats import CREATE, DELETE, LOAD, MERGE, IndexMetric, IndexStats, OperationCounts, index_metrics
from .loading import IndexLoader
from .storage import BucketContent, BucketTooLarge, custom_metadata

CHECK_SECONDS = 1.0
"""Interval of looks for buckets to write or to delete, while entries wait."""
RETRY_SECONDS = 30.0
QUIET_SECONDS = 60.0
"""Time that less than a whole bucket stays unwritten."""
FINISH_SECONDS_MAX = 5.0
"""Longest wait of a polite end for entries that are in no bucket yet: they are read from the log otherwise."""

_log = logging.getLogger(__name__)


class IndexHost(Protocol):
    """The topic of the subscription whose delayed messages are stored."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def ledger_store(self) -> LedgerStore | None:
        """Store for the buckets; None: delayed messages are not stored."""

    def storage_failed(self, error: BaseException) -> None: ...


class DelayedIndex:
    """Stored delayed messages of one dispatcher. `begin` before its first consumer comes, `stir` when an entry waits."""

    def __init__(
        self,
        host: IndexHost,
        ledgers: LedgerStore,
        cursor: ManagedCursor,
        loader: IndexLoader,
        subscription: str,
        driver: DispatchDriver,
        settings: DispatcherSettings,
    ) -> None:
        self.buckets: list[Bucket] = []
        self._useless: dict[str, int] = {}
        """Ledgers of buckets to be deleted, by key."""
        self._stored_to = START
        self._stored_at = 0.0
        self._dispatcher = driver.dispatcher
        self._handle = tell(driver.handle)
        self._failed = tell(host.storage_failed)
        self._ledgers = ledgers
        self._cursor = cursor
        self._topic, self._subscription = host.name, subscription
        self._label = _label(host, subscription)
        limit = settings.delayed_delivery_max_num_buckets
        self._rule = BucketRule(
            settings.delayed_delivery_min_index_count_per_bucket, buckets_max=limit if limit > 0 else BUCKETS_MAX
        )
        self._segment_count = settings.delayed_delivery_max_indexes_per_bucket_snapshot_segment
        self._loader = loader
        self._operations: dict[str, OperationCounts] = {}
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._working: asyncio.Task[bool] | None = None
        self._is_loading = False
        self._is_closed = False

    def begin(self) -> None:
        """Loads the stored buckets, if there are any."""
        names = bucket_ledgers(self._cursor.cursor_properties)
        if not names:
            return
        if self._dispatcher.delays is None:
            self._useless = names  # of a subscription in order nothing waits
            self.stir()
            return
        self._handle(IndexLoading())
        self._work(self._load(names))

    def stir(self) -> None:
        """Look at it soon."""
        self._look_in(CHECK_SECONDS)

    def metrics(self) -> Sequence[IndexMetric]:
        """None as long as there was nothing to store."""
        if not self.buckets and not self._operations:
            return ()
        delays, size_bytes = self._dispatcher.delays, sum(bucket.size_bytes for bucket in self.buckets)
        loaded = 0 if delays is None else len(delays)
        return index_metrics(IndexStats(len(self.buckets), loaded, size_bytes, self._operations))

    async def finish(self) -> None:
        """Before a polite end: stores the waiting entries that are in no bucket yet, if they fill one."""
        try:
            async with asyncio.timeout(FINISH_SECONDS_MAX):
                while await self._did_more():
                    pass  # until there is nothing to do, or something goes wrong
        except TimeoutError:
            _log.warning(line("some delayed messages not stored before the unload", of=self._label))

    async def _did_more(self) -> bool:
        if self._is_loading or self._is_closed:
            return False
        if self._working is None:
            self._cancel_timer()
            self._look(is_last=True)
        working = self._working
        if working is None:
            return False
        await asyncio.wait([working])
        return not working.cancelled() and working.exception() is None and working.result()

    def close(self) -> None:
        """Ends the index: a write under way is given up at the next occasion. Closing twice is fine."""
        self._is_closed = True
        self._cancel_timer()
        if self._is_loading and self._working is not None:
            self._working.cancel()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_in(self, seconds: float) -> None:
        if self._timer is None and self._working is None and not self._is_closed:
            self._timer = self._loop.call_later(seconds, self._look)

    def _look(self, *, is_last: bool = False) -> None:
        self._timer = None
        delays, step = self._dispatcher.delays, None
        if delays is not None and not self._useless:
            is_quiet = is_last or self._loop.time() - self._stored_at >= QUIET_SECONDS
            reached = self._dispatcher.state().read_position
            stored_to = self._stored_to if self.buckets else START
            step = next_step(self.buckets, delays, stored_to, reached, self._rule, is_quiet=is_quiet)
        if self._useless:
            self._work(self._drop(dict(self._useless)))
        elif isinstance(step, Drop):
            self._work(self._drop({bucket.key: bucket.ledger_id for bucket in step.buckets}))
        elif step is not None and delays is not None:
            self._work(self._store(step, BucketContent(delays.part(step.start, step.end), self._segment_count)))
        elif delays is not None and (self.buckets or len(delays)):
            self._look_in(CHECK_SECONDS)

    def _work(self, work: Coroutine[Any, Any, bool]) -> None:
        """Runs the work, which returns whether it succeeded."""
        self._working = self._loop.create_task(work)
        self._working.add_done_callback(self._worked)

    def _worked(self, task: "asyncio.Task[bool]") -> None:
        self._working = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:  # a bug: no bucket is stored any more, and unloaded buckets are still needed
            _log.error("%s: storing delayed messages failed", self._label, exc_info=error)
            if self._is_loading:
                self._failed(error)
            return
        give_back_free_memory()  # many megabytes were copied beside an index that grows
        self._look_in(0.0 if task.result() else RETRY_SECONDS)  # more may have come than one bucket has

    async def _load(self, names: Mapping[str, int]) -> bool:
        loader, self._is_loading = self._loader, True
        await loader.load(names)
        good = {bucket.key for bucket in loader.good}
        for key in names:
            self._counts(LOAD).ended(loader.seconds.get(key, 0.0), is_good=key in good)
        left = await loader.unacknowledged()
        self.buckets, self._useless, self._stored_to = loader.good, loader.useless, loader.stored_to
        end = loader.end
        if end is not None and end <= self._cursor.first_unacknowledged():
            end = None
        self._is_loading = False
        self._handle(IndexLoaded(left, end))
        _log.info(line("delayed messages loaded", of=self._label, buckets=len(loader.good), entries=loader.entries))
        return True

    def _counts(self, kind: str) -> OperationCounts:
        """One has begun."""
        counts = self._operations.setdefault(kind, OperationCounts())
        counts.begun += 1
        return counts

    async def _store(self, step: Store, content: BucketContent) -> bool:
        counts, began, before = self._counts(MERGE if step.replaced else CREATE), self._loop.time(), self.buckets
        goes_on = await self._write(step, content)
        counts.ended(self._loop.time() - began, is_good=self.buckets is not before)
        return goes_on

    async def _write(self, step: Store, content: BucketContent) -> bool:
        """Whether to go on at once; it is among `buckets` if it was stored."""
        try:
            await content.gather()
            writer = await unbroken(self._named_ledger(content))
        except BucketTooLarge as error:
            self._rule = replace(self._rule, count_max=max(self._rule.count_max // 2, self._segment_count))
            _log.info(
                line("buckets of delayed messages are cut smaller", of=self._label, entries=self._rule.count_max, why=error)
            )
            return True
        except (LedgerError, ManagedLedgerError) as error:
            _log.warning(line("delayed messages not stored", of=self._label, error=error))
            return False
        try:
            await content.write(writer)
            await writer.close()
        except LedgerError as error:
            self._useless[bucket_key(writer.ledger_id)] = writer.ledger_id
            _log.warning(line("delayed messages not stored", of=self._label, ledger=writer.ledger_id, error=error))
            return False
        bucket = Bucket(writer.ledger_id, bucket_key(writer.ledger_id), content.first, content.last, writer.length_bytes)
        await self._stored(step, bucket)
        return True

    async def _named_ledger(self, content: BucketContent) -> LedgerWriter:
        key = apache_bucket_key(content.first.ledger_id, content.last.ledger_id)
        writer = await self._ledgers.create(custom_metadata(key, self._topic, self._subscription))
        try:
            await self._cursor.change_cursor_properties({bucket_key(writer.ledger_id): str(writer.ledger_id)})
        except ManagedLedgerError:
            await self._delete(writer.ledger_id)
            raise
        return writer

    async def _stored(self, step: Store, bucket: Bucket) -> None:
        """Adds the new bucket. Buckets that it replaces are deleted next."""
        self.buckets = [known for known in self.buckets if known not in step.replaced]
        self._useless |= {replaced.key: replaced.ledger_id for replaced in step.replaced}
        if not step.replaced:
            self._stored_to, self._stored_at = max(self._stored_to, step.end), self._loop.time()
        self.buckets.append(await self._named_as_apache_does(step, bucket))
        _log.info(line("delayed messages stored", of=self._label, ledger=bucket.ledger_id, bytes=bucket.size_bytes))

    async def _named_as_apache_does(self, step: Store, bucket: Bucket) -> Bucket:
        """Renames the bucket by Apache's scheme, where possible."""
        key = apache_bucket_key(bucket.first.ledger_id, bucket.last.ledger_id)
        others = [known for known in self.buckets if known is not bucket]
        is_taken = key in self._cursor.cursor_properties
        if is_taken or not has_ledgers_of_its_own(step, bucket.first, bucket.last, others):
            return bucket
        try:
            await self._cursor.change_cursor_properties({key: str(bucket.ledger_id)}, (bucket.key,))
        except ManagedLedgerError as error:
            _log.warning(line("bucket of delayed messages not renamed", of=self._label, ledger=bucket.ledger_id, error=error))
            return bucket
        return replace(bucket, key=key)

    async def _drop(self, names: Mapping[str, int]) -> bool:
        """First the ledgers, then their names."""
        self.buckets = [known for known in self.buckets if known.key not in names]
        self._useless |= names
        gone = [key for key, ledger_id in names.items() if await self._delete(ledger_id)]
        try:
            await self._cursor.change_cursor_properties({}, gone)
        except ManagedLedgerError as error:
            _log.warning(line("buckets of delayed messages are not removed from the cursor", of=self._label, error=error))
            return False
        for key in gone:
            del self._useless[key]
        return not self._useless

    async def _delete(self, ledger_id: int) -> bool:
        counts, began = self._counts(DELETE), self._loop.time()
        try:
            await self._ledgers.delete(ledger_id)
        except LedgerError as error:
            counts.ended(0.0, is_good=False)
            _log.warning(
                line("ledger of a bucket of delayed messages not deleted", of=self._label, ledger=ledger_id, error=error)
            )
            return False
        counts.ended(self._loop.time() - began, is_good=True)
        return True


def index_of(
    host: IndexHost,
    cursor: ManagedCursor,
    place: ReadPlace,
    subscription: str,
    driver: DispatchDriver,
    settings: DispatcherSettings,
    wall_ms: Callable[[], int],
) -> DelayedIndex | None:
    """Index of a new dispatcher, with its load begun. None where there is no store for it."""
    if host.ledger_store is None or not cursor.durable:
        return None
    ledgers = host.ledger_store
    loader = IndexLoader(ledgers, host.ledger, place, tell(driver.handle), wall_ms, _label(host, subscription))
    index = DelayedIndex(host, ledgers, cursor, loader, subscription, driver, settings)
    index.begin()
    return index


def _label(host: IndexHost, subscription: str) -> str:
    return f"{host.name} {subscription}"
