"""Exclusive and Failover: one active consumer gets everything in order, the others stand by.

Apache: PersistentDispatcherSingleActiveConsumer. Keeps no list of unacknowledged entries: the cursor has them, and redelivery
goes back to it. Comments mark differences from Apache.
"""

from collections.abc import Iterable
from itertools import compress
from typing import assert_never

from pyroaring import BitMap

from broker.errors import ServerError
from wire.kernels.delivery_rows import SINGLE_ACTIVE, CandidateRow
from wire.kernels.keys import slots_of
from wire.position import Position
from wire.run import EntryRun, RunMetadata

from .contract import (
    AcknowledgeMarkers,
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    ConsumerState,
    CursorReset,
    DelaysChanged,
    DispatcherState,
    Effect,
    EntriesAcknowledged,
    EntriesRead,
    EntriesReturned,
    IndexFound,
    IndexLoaded,
    IndexLoading,
    LimitsChanged,
    MarkDeleteMoved,
    NotifyActive,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    WallClockRead,
    WritabilityChanged,
)
from .machine import LOOKED_AT_SINGLY, Machine, SubscriptionEvent
from .reading.readable import readable
from .settings import DispatcherSettings


class _Candidate(CandidateRow):
    """A consumer that is or may become the active one. `was_told`: the last ACTIVE_CONSUMER_CHANGE; None: none yet."""

    __slots__ = ("name", "priority_level", "was_told")

    consumer: ConsumerId
    slots: BitMap | None
    """Hash slots of the keys that an Exclusive consumer wants, where it named ranges."""

    def __init__(self, added: ConsumerAdded) -> None:
        self.consumer, self.name, self.priority_level = added.consumer, added.name, added.priority_level
        self.consumer_epoch, self.is_writable = added.consumer_epoch, added.is_writable
        self.permits = 0
        self.slots = None
        self.was_told: bool | None = None


class SingleActiveDispatcher(Machine):
    """The machine. While `_successor` is set nothing is delivered: `_active` was demoted, and may still acknowledge."""

    _active: _Candidate | None
    _successor: _Candidate | None
    _last_delivered: Position | None
    """Last delivery to the active consumer since it became that."""

    def __init__(self, settings: DispatcherSettings, *, is_failover: bool, partition_index: int = -1) -> None:
        super().__init__(settings)
        self.deals = SINGLE_ACTIVE
        self._is_failover = is_failover
        self._partition_index = partition_index
        self._candidates: dict[ConsumerId, _Candidate] = {}
        self._active = self._successor = None
        self._switch_at_ms = None
        self._last_delivered = None

    @property
    def has_consumers(self) -> bool:
        return bool(self._candidates)

    def state(self) -> DispatcherState:
        active, reader = self._active.consumer if self._active else None, self._reader
        return DispatcherState(0, False, 0, active, read_position=reader.position, is_waiting=reader.is_at_end)

    def consumer_state(self, consumer: ConsumerId) -> ConsumerState | None:
        known = self._candidates.get(consumer)
        if known is None:
            return None
        return ConsumerState(consumer, known.name, known.permits, 0, False, known is self._active)

    # --- events ---------------------------------------------------------------------------------------------------------

    def _take(self, event: SubscriptionEvent, now_ms: int, effects: list[Effect]) -> None:
        match event:
            case (
                EntriesAcknowledged()
                | EntriesReturned()
                | BatchIndexesAcknowledged()
                | LimitsChanged()
                | DelaysChanged()
                | IndexLoading()
                | IndexFound()
                | IndexLoaded()
                | WallClockRead()
            ):
                pass  # the cursor knows, and reads are checked against it; nothing is counted here, nor held back (as Apache)
            case PermitsAdded() | WritabilityChanged():
                self._on_consumer_changed(event)
            case MarkDeleteMoved(mark_delete):
                self._on_mark_delete_moved(mark_delete, effects)
            case RedeliveryRequested():
                self._on_redelivery_requested(event)
            case ConsumerAdded():
                self._on_added(event, now_ms, effects)
            case ConsumerRemoved(consumer):
                self._on_removed(consumer, now_ms, effects)
            case CursorReset():
                self._on_reset(effects)
            case _:
                assert_never(event)

    def _go_on(self, now_ms: int, effects: list[Effect]) -> None:
        if self._switch_at_ms is not None and now_ms >= self._switch_at_ms:
            self._switch(effects)
        self._read_more(now_ms, effects)

    def _deadline_ms(self) -> int | None:
        return self._switch_at_ms

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> ConsumerId | None:
        active = self._active
        if active is None or self._successor is not None or not active.is_writable or active.permits < metadata.message_count:
            return None
        if active.slots is not None:
            return None
        if metadata.any_flags & LOOKED_AT_SINGLY or not self._reader.is_before(run):
            return None
        active.permits -= metadata.message_count
        self._reader.passed(run, metadata.message_count)
        self._last_delivered = Position(run.ledger_id, run.last_entry_id)
        return active.consumer

    @property
    def consumer_epoch(self) -> int | None:
        return None if self._active is None else self._active.consumer_epoch

    def _on_added(self, event: ConsumerAdded, now_ms: int, effects: list[Effect]) -> None:
        if not self._is_failover and self._candidates:
            message = "Exclusive consumer is already connected"
            effects.append(RefuseConsumer(event.consumer, ServerError.CONSUMER_BUSY, message))
            return
        added = _Candidate(event)
        if event.hash_ranges and not self._is_failover:
            added.slots = _slots_in(event.hash_ranges)
        self.needs_key_hashes = added.slots is not None
        self._candidates[event.consumer] = added
        self._choose(now_ms, effects)

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> bool:
        """Nothing is counted here, as for EntriesAcknowledged."""
        return self._switch_at_ms is None and self._reader.is_resting

    def _on_removed(self, consumer: ConsumerId, now_ms: int, effects: list[Effect]) -> None:
        removed = self._candidates.pop(consumer, None)
        if removed is None:
            return
        if removed is self._active:
            self._active = None
            self._reader.move_to(None)
        self._choose(now_ms, effects)

    def _on_consumer_changed(self, event: PermitsAdded | WritabilityChanged) -> None:
        known = self._candidates.get(event.consumer)
        if known is None:
            return
        if isinstance(event, PermitsAdded):
            known.permits += event.permits
        else:
            known.is_writable = event.is_writable

    def _on_redelivery_requested(self, event: RedeliveryRequested) -> None:
        """Positions are ignored, as in Apache: redelivering some of them would break the order."""
        known = self._candidates.get(event.consumer)
        if known is None:
            return
        if event.consumer_epoch is not None and event.consumer_epoch > (known.consumer_epoch or 0):
            known.consumer_epoch = event.consumer_epoch
        if known is self._active:
            self._reader.move_to(None)

    def _on_mark_delete_moved(self, mark_delete: Position, effects: list[Effect]) -> None:
        if self._successor is not None and self._last_delivered is not None and mark_delete >= self._last_delivered:
            self._switch(effects)  # nothing is left that both could process; Apache waits for its delay all the same
        if self._reader.position is not None and self._reader.position <= mark_delete:
            self._reader.move_to(None)

    def _on_reset(self, effects: list[Effect]) -> None:
        self._last_delivered = None
        self._reader.move_to(None)
        if self._successor is not None:
            self._switch(effects)

    def _on_nothing(self, read: Read) -> None:
        pass  # the reader waits

    def _on_read(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        active = self._active
        assert active is not None, "a read for nobody"
        assert self._successor is None, "a read during the wait for a switch"
        found, markers = readable(answer, None if active.slots is None else _with_slots(answer, active.slots))
        if markers:
            effects.append(AcknowledgeMarkers(answer.run.ledger_id, markers))
        stop = found.fit(0, active.permits) if active.is_writable and active.permits > 0 else 0
        if stop < len(found):
            self._reader.stay_at(found.position(stop))
        if stop:
            cost = found.cost(0, stop)
            active.permits -= cost
            self._last_delivered = found.position(stop - 1)
            effects.append(found.deliver(active.consumer, found.indexes[:stop], cost, consumer_epoch=active.consumer_epoch))

    # --- the active consumer ------------------------------------------------------------------------------------------

    def _pick(self) -> _Candidate | None:
        """Highest priority (lowest level), then name; partition i takes the one at i modulo their number, to spread them.

        Apache spreads topics that are no partition by a hash ring over the names; here the first name has them.
        """
        if not self._candidates:
            return None
        top = min(candidate.priority_level for candidate in self._candidates.values())
        best = [candidate for candidate in self._candidates.values() if candidate.priority_level == top]
        best.sort(key=_by_name)
        return best[max(self._partition_index, 0) % len(best)]

    def _choose(self, now_ms: int, effects: list[Effect]) -> None:
        """Chooses anew when consumers change. A demoted consumer gets time to acknowledge its entries; a leaving one, none."""
        pick = self._pick()
        if pick is self._active:
            self._successor = self._switch_at_ms = None
        else:
            self._successor = pick
            self._reader.cancel()
            delay_ms = self._settings.active_consumer_failover_delay_time_millis
            if self._active is None or self._last_delivered is None or delay_ms <= 0:
                self._switch(effects)
            elif self._switch_at_ms is None:
                self._switch_at_ms = now_ms + delay_ms
        self._tell_all(effects)

    def _switch(self, effects: list[Effect]) -> None:
        """The new active consumer starts at the first entry that is not acknowledged now."""
        self._active, self._successor, self._switch_at_ms = self._successor, None, None
        self._last_delivered = None
        self._reader.move_to(None)
        self._tell_all(effects)

    def _tell_all(self, effects: list[Effect]) -> None:
        """Notifies the new consumer and those whose state changed. A successor is notified when it begins."""
        for candidate in self._candidates.values() if self._is_failover else ():
            is_active = candidate is self._active
            if candidate.was_told is not is_active and candidate is not self._successor:
                candidate.was_told = is_active
                effects.append(NotifyActive(candidate.consumer, is_active))

    def _read_more(self, now_ms: int, effects: list[Effect]) -> None:
        active = self._active
        if active is None or self._successor is not None or active.permits <= 0 or not active.is_writable:
            return
        if self._reader.is_idle(now_ms) and not self._reader.is_at_end:
            effects.append(self._reader.read_on(self._reader.entries_for(active.permits)))

    def check_invariants(self) -> None:
        assert self._active is None or self._candidates.get(self._active.consumer) is self._active
        assert self._successor is None or self._candidates.get(self._successor.consumer) is self._successor
        assert (self._active is None) == (not self._candidates), "consumers, but none of them active"
        assert self._successor is None or self._successor is not self._active
        assert (self._successor is None) == (self._switch_at_ms is None), "a switch without its time"
        assert self._successor is None or self._reader.outstanding is None, "a read during the wait for a switch"
        assert (self._successor or self._active) is self._pick(), "the active consumer is not the pick"
        assert self._is_failover or len(self._candidates) <= 1


def _slots_in(ranges: Iterable[tuple[int, int]]) -> BitMap:
    slots = BitMap()
    for start, end in ranges:
        slots.add_range(start, end + 1)
    return slots


def _with_slots(read: EntriesRead, slots: BitMap) -> BitMap:
    """Ids of entries whose keys a consumer wants. The others stay unacknowledged, as in Apache."""
    assert read.key_hashes is not None, "hash ranges need the hashes of the keys"
    run = read.run
    theirs = slots_of(read.key_hashes, range(run.count))
    return BitMap(compress(range(run.first_entry_id, run.last_entry_id + 1), map(slots.__contains__, theirs)))


def _by_name(candidate: _Candidate) -> tuple[str, int]:
    return candidate.name, candidate.consumer
