"""Performs the decisions of one dispatcher: reads the log, gives runs to consumers, keeps the timer. Owns the one read and the
one timer under way, and a read that waits for dispatch rates. Decides nothing: events go in one after the other, in the order
in which they happened, also those that an effect causes; effects are performed at once. Read failures are the dispatcher's (it
tries again).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import assert_never

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerError
from broker.compaction.compacted_ledger import CompactedRun
from broker.dispatchers.contract import (
    AcknowledgeMarkers,
    ConsumerId,
    Deliver,
    Dispatcher,
    Effect,
    EntriesAcknowledged,
    EntriesPicked,
    EntriesRead,
    Event,
    NothingToRead,
    NotifyActive,
    Read,
    ReadFailed,
    RefuseConsumer,
    SetTimer,
    TimerFired,
    WakeAt,
    WallClockRead,
    WritabilityChanged,
)
from broker.dispatchers.reading.replays import first_of
from broker.errors import BrokerError
from managed_ledger.contract import ManagedLedgerError
from ports.loop.queue_on_demand import queued
from wire.kernels.delivery_rows import DriverRow
from wire.kernels.metadata import key_hashes, scan
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import FLAG_BATCH, FLAG_DELAYED, EntryRun, RunMetadata

from ..limits.dispatch_throttle import DispatchThrottle
from .compacted_reading import CompactedReading
from .dispatch_ports import DispatchTarget, ReadableLog, ReadPlace, StoredIndex
from .scanned_runs import ScannedRuns

WAKE_SECONDS_MAX = 10.0
"""Longest time that a clock which was set forward may go unnoticed, while entries wait for a time of day."""
READS_AT_ONCE_MAX = 16
"""Reads from memory in one go. A reader that is far behind gets the rest in the next turn of the loop."""

_log = logging.getLogger(__name__)


class DispatchDriver(DriverRow):
    """One dispatcher at work on one cursor. `failed` is called with an internal error, after which nothing is dispatched."""

    dispatcher: Dispatcher
    targets: dict[ConsumerId, DispatchTarget]
    compacted: CompactedReading | None
    """Compacted reading of a consumer that reads compacted."""
    on_unacked: Callable[[int], None] | None
    """Called with the number of unacknowledged messages, where all subscriptions of the broker share a limit."""
    _cursor: ReadPlace
    _events: "deque[Event] | None"
    _held: Read | None
    """Read that waits until the throttle has room for it."""
    _reading: "asyncio.Task[None] | None"
    _throttle: DispatchThrottle | None

    def __init__(
        self,
        dispatcher: Dispatcher,
        ledger: ReadableLog,
        cursor: ReadPlace,
        scanned: ScannedRuns,
        label: str,
        failed: Callable[[BaseException], None],
        wall_ms: Callable[[], int],
    ) -> None:
        self.dispatcher = dispatcher
        self.targets = {}
        self.compacted = None
        self.index: StoredIndex | None = None
        """Store of delayed entries."""
        self.on_unacked = None
        self._ledger = ledger
        self._cursor = cursor
        self._scanned = scanned
        self._label = label
        self._failed = failed
        self._wall_ms = wall_ms
        self._loop = asyncio.get_running_loop()
        self._events = None
        self._is_handling = False
        self._is_closed = False
        self._refusal: BrokerError | None = None
        self._reads_at_once = 0
        self._reading = None
        self._timer: asyncio.TimerHandle | None = None
        self._waking: asyncio.TimerHandle | None = None
        self._throttle = self._held = None
        self._kept_from: Position | None = None
        self._held_timer: asyncio.TimerHandle | None = None

    def handle(self, event: Event) -> None:
        """Let the dispatcher decide and perform it, with everything that follows from it at once."""
        self._queue(event)
        if not self._is_handling and not self._is_closed:
            self._handle_all()

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> bool:
        """Deliver a run that was just confirmed without reading it; False: nothing has changed, and it has to be read.

        Only where nothing is under way or waits: neither an event nor a read, no rate, nothing compacted.
        """
        if self._events or self._is_handling or self._is_closed or self._reading is not None or self._held is not None:
            return False
        if self._throttle is not None or self.compacted is not None:
            return False
        first = run.first_entry_id
        if not self._cursor.is_untouched(run.ledger_id, first, first + len(run.offsets) - 2):
            return False
        dispatcher = self.dispatcher
        consumer = dispatcher.take_newest(run, metadata)
        if consumer is None:
            return False
        if not self.targets[consumer].deliver_run(run, metadata.message_count, dispatcher.consumer_epoch):
            self.handle(WritabilityChanged(consumer, False))
        elif self.on_unacked is not None:
            self.on_unacked(dispatcher.state().unacked_messages)
        return True

    def limit(self, throttle: DispatchThrottle | None) -> None:
        """Sets the rates from now on; reads that waited for others are looked at anew."""
        self._throttle = throttle
        self._go_on_reading()

    def _handle_all(self) -> None:
        self._is_handling = True
        self._reads_at_once = 0
        try:
            while self._events:
                for effect in self.dispatcher.handle(self._events.popleft(), self.now_ms()):
                    self._perform(effect)
        except Exception as error:
            self.close()
            self._failed(error)
            raise
        finally:
            self._is_handling = False
        self._events = None
        if self.on_unacked is not None and not self._is_closed:
            self.on_unacked(self.dispatcher.state().unacked_messages)

    def _queue(self, event: Event) -> None:
        self._events = queued(self._events, event)

    def now_ms(self) -> int:
        """A microsecond is added, so that a timer that fires on its time is not early by a rounding error."""
        return int(self._loop.time() * 1000 + 0.001)

    def take_refusal(self) -> BrokerError | None:
        """Why the consumer that was just added is not accepted."""
        refusal, self._refusal = self._refusal, None
        return refusal

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> None:
        """Same as `handle` of EntriesAcknowledged, for one entry; at a part of the cost where it has no effect."""
        dispatcher = self.dispatcher
        if self._is_handling or self._is_closed or not dispatcher.entry_acknowledged(consumer, ledger_id, entry_id):
            self.handle(EntriesAcknowledged(ledger_id, BitMap((entry_id,)), consumer))
        elif self.on_unacked is not None:
            self.on_unacked(dispatcher.state().unacked_messages)

    def close(self) -> None:
        """Nothing is dispatched any more. Closing twice is fine."""
        self._is_closed = True
        self._events = None
        self._ledger.keep_from(self, None)
        if self._reading is not None:
            self._reading.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._waking is not None:
            self._waking.cancel()
        if self.index is not None:
            self.index.close()
        self._let_go_of_held()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Deliver():
                self._deliver(effect)
            case Read():
                self._start_reading(effect)
            case AcknowledgeMarkers(ledger_id, entry_ids):
                self._acknowledge_markers(ledger_id, entry_ids)
            case NotifyActive(consumer, is_active):
                self.targets[consumer].active_changed(is_active)
            case RefuseConsumer(_, code, message):
                self._refusal = BrokerError(code, message)
            case SetTimer(at_ms):
                self._set_timer(at_ms)
            case WakeAt(wall_ms):
                self._wake_at(wall_ms)
            case _:
                assert_never(effect)

    def _deliver(self, delivery: Deliver) -> None:
        if not self.targets[delivery.consumer].deliver(delivery):
            self._queue(WritabilityChanged(delivery.consumer, False))
        if self._throttle is not None:
            self._throttle.delivered(delivery, self._loop.time())

    def _acknowledge_markers(self, ledger_id: int, entry_ids: BitMap) -> None:
        acknowledged = self._cursor.acknowledge_entries(ledger_id, entry_ids)
        self._queue(EntriesAcknowledged(ledger_id, acknowledged))

    def _set_timer(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at_ms / 1000, self.handle, TimerFired())

    def _wake_at(self, wall_ms: int) -> None:
        if self._waking is not None:
            self._waking.cancel()
        seconds = max(0.0, (wall_ms - self._wall_ms()) / 1000)
        self._waking = self._loop.call_later(min(seconds, WAKE_SECONDS_MAX), self._wake)
        if self.index is not None:
            self.index.stir()

    def _wake(self) -> None:
        self.handle(WallClockRead(self._wall_ms()))

    def _start_reading(self, read: Read) -> None:
        """Starts a read. Entries in memory are read at once: their receipts and deliveries then leave in one write."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        self._let_go_of_held()
        if self._throttle is not None:
            now = self._loop.time()
            wait_seconds = self._throttle.wait_seconds(now)
            if wait_seconds > 0:
                self._hold(read, wait_seconds)
                return
            read = self._throttle.cut(read, now)
        compacted_at = None if self.compacted is None else self.compacted.place(read.position)
        if compacted_at is not None:
            self._reading = self._loop.create_task(self._read_compacted(read, compacted_at))
            self._reading.add_done_callback(self._read_ended)
            return
        self._keep_what_waits()
        position = self._place_of(read)
        if position > self._ledger.last_confirmed:
            self._queue(NothingToRead(read.read_id))
            return
        answer = self._cached(read, position) if self._reads_at_once < READS_AT_ONCE_MAX else None
        if answer is not None:
            self._reads_at_once += 1
            self._queue(answer)
            return
        self._reading = self._loop.create_task(self._read(read, position))
        self._reading.add_done_callback(self._read_ended)

    def _keep_what_waits(self) -> None:
        """Entries that the dispatcher will read again stay in the cache."""
        first = self.dispatcher.first_to_read_again()
        if first != self._kept_from:
            self._kept_from = first
            self._ledger.keep_from(self, first)

    def _cached(self, read: Read, position: Position) -> Event | None:
        """The answer to a read whose entries, and their acknowledgements, are all in memory."""
        if read.picks is not None:
            picked = self._ledger.pick_cached(first_of(read.picks, read.entries_max), read.bytes_max)
            if picked is not None and all(map(self._is_loaded, picked.runs)):
                return self._entries_picked(read, picked)
            return None
        run = self._ledger.read_cached(position, read.entries_max, read.bytes_max)
        return self._entries_read(read, run) if run is not None and self._is_loaded(run) else None

    def _is_loaded(self, run: EntryRun) -> bool:
        return self._cursor.is_loaded(run.ledger_id, run.first_entry_id, run.last_entry_id)

    def _place_of(self, read: Read) -> Position:
        """Start of the read: entries acknowledged meanwhile up to mark-delete are not read, however many they are (Apache: the
        cursor's read position goes with its mark-delete position)."""
        if read.is_replay and read.position is not None:
            return read.position
        first = self._cursor.first_unacknowledged()
        return first if read.position is None else max(first, read.position)

    def _hold(self, read: Read, seconds: float) -> None:
        """A later read takes its place, whether that has to wait or not."""
        self._held = read
        self._held_timer = self._loop.call_later(seconds, self._go_on_reading)

    def _let_go_of_held(self) -> Read | None:
        held, self._held = self._held, None
        if self._held_timer is not None:
            self._held_timer.cancel()
            self._held_timer = None
        return held

    def _go_on_reading(self) -> None:
        held = self._let_go_of_held()
        if held is not None and not self._is_closed:
            self._reads_at_once = 0
            self._start_reading(held)
            if not self._is_handling:
                self._handle_all()

    async def _read(self, read: Read, position: Position) -> None:
        try:
            answer = await self._found(read, position) if read.picks is None else await self._picked(read, read.picks)
        except ManagedLedgerError as error:
            _log.warning("%s: reading at %s failed: %s: %s", self._label, position, type(error).__name__, error)
            answer = ReadFailed(read.read_id)
        self._reading = None
        self.handle(answer)

    async def _found(self, read: Read, position: Position) -> Event:
        run = await self._ledger.read(position, read.entries_max, read.bytes_max)
        if run is None:
            return NothingToRead(read.read_id)
        await self._cursor.load_acknowledged(run.ledger_id, run.first_entry_id, run.last_entry_id)
        return self._entries_read(read, run)

    async def _picked(self, read: Read, picks: Picks) -> Event:
        picked = await self._ledger.pick(first_of(picks, read.entries_max), read.bytes_max)
        for run in picked.runs:
            await self._cursor.load_acknowledged(run.ledger_id, run.first_entry_id, run.last_entry_id)
        return self._entries_picked(read, picked)

    def _entries_picked(self, read: Read, picked: Picked) -> EntriesPicked:
        return EntriesPicked(read.read_id, [self._entries_read(read, run) for run in picked.runs], picked.gone)

    async def _read_compacted(self, read: Read, position: Position) -> None:
        assert self.compacted is not None, "only then a place is in what is compacted"
        try:
            found = await self.compacted.read(position, read.entries_max, read.bytes_max)
        except (LedgerError, ValueError) as error:
            _log.warning("%s: reading the compacted %s failed: %s: %s", self._label, position, type(error).__name__, error)
            self._reading = None
            self.handle(ReadFailed(read.read_id))
            return
        if found is None:
            await self._read(read, self.compacted.after_horizon())
            return
        self._reading = None
        self.handle(self._compacted_read(read.read_id, found, self.compacted))

    def _compacted_read(self, read_id: int, found: CompactedRun, compacted: CompactedReading) -> EntriesRead:
        """Entries that are not there any more are as if they were acknowledged."""
        run, metadata = found.run, scan(found.run)
        mark_delete, acknowledged = compacted.known(found)
        ack_sets = self._ack_sets(run, metadata) if self._cursor.has_batch_indexes() else {}
        hashes = key_hashes(run) if self.dispatcher.needs_key_hashes else None
        return EntriesRead(read_id, run, metadata, mark_delete, acknowledged, ack_sets, hashes)

    def _entries_read(self, read: Read, run: EntryRun) -> EntriesRead:
        scanned = self._scanned if read.picks is None else self._scanned.unremembered
        metadata = scanned.metadata(run)
        is_delayed = metadata.any_flags & FLAG_DELAYED and self.dispatcher.needs_deliver_times
        return EntriesRead(
            read.read_id,
            run,
            metadata,
            self._cursor.mark_delete,
            self._cursor.acknowledged_in(run.ledger_id),
            self._ack_sets(run, metadata) if self._cursor.has_batch_indexes() else {},
            scanned.key_hashes(run) if self.dispatcher.needs_key_hashes else None,
            is_last=Position(run.ledger_id, run.last_entry_id) == self._ledger.last_confirmed,
            deliver_times=scanned.deliver_times(run) if is_delayed else None,
            wall_ms=self._wall_ms() if is_delayed else 0,
        )

    def _ack_sets(self, run: EntryRun, metadata: RunMetadata) -> dict[int, Sequence[int]]:
        found: dict[int, Sequence[int]] = {}
        for entry_id, flags in enumerate(metadata.flags, run.first_entry_id):
            if flags & FLAG_BATCH:
                words = self._cursor.unacknowledged_batch_indexes(Position(run.ledger_id, entry_id))
                if words is not None:
                    found[entry_id] = words
        return found

    def _read_ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("%s: dispatching failed", self._label, exc_info=error)
            self.close()
            self._failed(error)
