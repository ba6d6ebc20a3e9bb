"""The contract between a dispatcher (pure) and its driver: events go in, effects come out. A dispatcher decides which consumer
gets which entries. The driver holds the cursor, the managed ledger and the sinks; it calls `handle(event, now_ms)` and performs
the effects in their order, at once. Rules of the driver:

- One read is outstanding at most. A new `Read` replaces it: the old one may be cancelled, and its answer is ignored here, being
  known by its `read_id`. Every read is answered once: EntriesRead (one with picks: EntriesPicked), NothingToRead or ReadFailed.
- `EntriesRead.mark_delete`, `acknowledged` and `ack_sets` are looked up when the event is made, after the read, not before it.
- Every acknowledgement reaches the dispatcher: whole entries as EntriesAcknowledged (what
  `ManagedCursor.acknowledge_entries` returned), parts of a batch as BatchIndexesAcknowledged, cumulative ones and all that
  moves mark-delete otherwise (skip, expiry, clear backlog) as MarkDeleteMoved.
- A dispatcher comes from `broker.dispatchers.dispatchers`: exclusive_dispatcher(settings), failover_dispatcher(settings,
  partition_index), shared_dispatcher(settings), key_shared_dispatcher(settings). It lives as long as the driver likes; without
  consumers it holds nothing but the consumers' type, and starts at the cursor's place when the next one comes.
- The deliveries of one event belong together, up to what one read has: that a connection is full after one of them keeps the
  others back no more than it would if they were one.
- `now_ms` is the loop's time in milliseconds; `SetTimer` speaks in the same. There is one timer: a later SetTimer replaces it.
"""

from array import array
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol, TypeAlias

from pyroaring import BitMap

from broker.errors import ServerError
from wire.picked_runs import Picks
from wire.position import Position
from wire.record import record
from wire.run import EntryRun, RunMetadata

from .delays.delays import Delays
from .states import ConsumerId as ConsumerId
from .states import ConsumerState as ConsumerState
from .states import DispatcherState as DispatcherState


class KeySharedMode(IntEnum):
    """PulsarApi.KeySharedMode."""

    AUTO_SPLIT = 0
    STICKY = 1


@record(frozen=True, slots=True)
class KeySharedPolicy:
    """Policy that all consumers of a Key_Shared subscription share; a consumer that comes with another one is refused."""

    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    allow_out_of_order: bool = False


# --- events -------------------------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class ConsumerAdded:
    """A consumer subscribed; it has no permits yet. May be answered by RefuseConsumer, which forgets it."""

    consumer: ConsumerId
    name: str
    priority_level: int = 0
    consumer_epoch: int | None = None
    is_writable: bool = True
    key_shared: KeySharedPolicy | None = None
    hash_ranges: tuple[tuple[int, int], ...] = ()
    """STICKY, and Exclusive that wants some keys alone: inclusive [start, end] in 0..65535."""


@record(frozen=True, slots=True)
class ConsumerRemoved:
    """A consumer closed or its connection broke. Its unacknowledged entries are for the others. Unknown: ignored."""

    consumer: ConsumerId


@record(frozen=True, slots=True)
class PermitsAdded:
    """FLOW: it can take that many more messages."""

    consumer: ConsumerId
    permits: int


@record(frozen=True, slots=True)
class WritabilityChanged:
    """Change of `ConsumerSink.is_writable`: a consumer gets no deliveries while its connection takes no bytes."""

    consumer: ConsumerId
    is_writable: bool


@record(frozen=True, slots=True)
class EntriesAvailable:
    """`last_confirmed` moved."""


@record(frozen=True, slots=True)
class EntriesRead:
    """The answer to a Read. `key_hashes` (`wire.kernels.metadata.key_hashes`) only where `Dispatcher.needs_key_hashes`."""

    read_id: int
    run: EntryRun
    metadata: RunMetadata
    mark_delete: Position
    acknowledged: BitMap
    """`ManagedCursor.acknowledged_in(run.ledger_id)`; not changed here."""
    ack_sets: Mapping[int, Sequence[int]]
    """Entry id to the ack set (64-bit words, bit 1 = unacknowledged) of the partly acknowledged batches in the run."""
    key_hashes: "array[int] | None" = None
    is_last: bool = False
    """The run ends at `last_confirmed` as it is now: reading on waits for EntriesAvailable. A hint that saves an empty read."""
    deliver_times: "array[int] | None" = None
    """Times where `Dispatcher.needs_deliver_times` and an entry has one (`wire.kernels.delivery_times.deliver_times`)."""
    wall_ms: int = 0
    """The time of day, in milliseconds since the epoch, where there are `deliver_times`."""


@record(frozen=True, slots=True)
class EntriesPicked:
    """The answer to a Read with picks: the first of them, each part a run of one ledger, in the order of the picks.

    Entries neither in a part nor `gone` (deleted) were not read yet, and come after all that were.
    """

    read_id: int
    parts: Sequence[EntriesRead]
    gone: Picks = ()


@record(frozen=True, slots=True)
class NothingToRead:
    """The answer to a Read when nothing at or after its position is confirmed yet."""

    read_id: int


@record(frozen=True, slots=True)
class ReadFailed:
    """The answer to a Read that failed. It is tried again after a back-off."""

    read_id: int


@record(frozen=True, slots=True)
class EntriesAcknowledged:
    """Whole entries of one ledger were acknowledged, by `consumer` if that is known (not necessarily the one that got them)."""

    ledger_id: int
    entry_ids: BitMap
    consumer: ConsumerId | None = None


@record(frozen=True, slots=True)
class EntriesReturned:
    """These were read as acknowledged, by a transaction that was not decided, and are not: it was aborted (PIP-31).

    Shared and Key_Shared deliver them again. The others do not, as in Apache: their consumer asks for the entries that it
    lacks.
    """

    ledger_id: int
    entry_ids: BitMap


@record(frozen=True, slots=True)
class BatchIndexesAcknowledged:
    """`message_count` more messages of a batch were acknowledged, the batch as a whole was not."""

    position: Position
    message_count: int


@record(frozen=True, slots=True)
class MarkDeleteMoved:
    """Everything up to and including `mark_delete` is acknowledged."""

    mark_delete: Position


@record(frozen=True, slots=True)
class RedeliveryRequested:
    """REDELIVER_UNACKNOWLEDGED_MESSAGES; `positions` None: all that this consumer has not acknowledged."""

    consumer: ConsumerId
    positions: Sequence[Position] | None
    consumer_epoch: int | None = None


@record(frozen=True, slots=True)
class CursorReset:
    """The cursor was reset (seek). Earlier deliveries are forgotten; reading starts at the cursor's place."""


@record(frozen=True, slots=True)
class LimitsChanged:
    """New limits on unacknowledged messages; 0: no limit. Nothing that was delivered is taken back."""

    unacked_per_consumer: int
    unacked_together: int


@record(frozen=True, slots=True)
class DelaysChanged:
    """New treatment of messages with a delivery time; not enabled: they are treated as if they had none.

    One is at most `tick_ms` late. Not strict: a message due within a tick at its read comes at once, up to that early.
    """

    is_enabled: bool
    tick_ms: int
    is_strict: bool


@record(frozen=True, slots=True)
class IndexLoading:
    """Stored delayed messages are being read: nothing new is to be read before IndexLoaded, which follows."""


@record(frozen=True, slots=True)
class IndexFound:
    """Some of the stored delays, by ledger: the entries, and in any order each again with its time. `acknowledged`: those of
    these entries that are acknowledged.
    """

    found: "Mapping[int, tuple[BitMap, array[int], array[int]]]"
    acknowledged: Mapping[int, BitMap]
    wall_ms: int


@record(frozen=True, slots=True)
class IndexLoaded:
    """All was found. `unacknowledged`: every entry before `end` that is to be delivered, by ledger; reading goes on at `end`.

    None: nothing was found, and reading begins at the cursor's place.
    """

    unacknowledged: Sequence[tuple[int, BitMap]]
    end: Position | None


@record(frozen=True, slots=True)
class WallClockRead:
    """The answer to WakeAt, at that time of day or at any other: the present time, in milliseconds since the epoch."""

    wall_ms: int


@record(frozen=True, slots=True)
class TimerFired:
    """The time of the last SetTimer has come. Harmless when it is early or late."""


Event: TypeAlias = (
    ConsumerAdded
    | ConsumerRemoved
    | PermitsAdded
    | WritabilityChanged
    | EntriesAvailable
    | EntriesRead
    | EntriesPicked
    | NothingToRead
    | ReadFailed
    | EntriesAcknowledged
    | EntriesReturned
    | BatchIndexesAcknowledged
    | MarkDeleteMoved
    | RedeliveryRequested
    | CursorReset
    | LimitsChanged
    | DelaysChanged
    | IndexLoading
    | IndexFound
    | IndexLoaded
    | WallClockRead
    | TimerFired
)


# --- effects ------------------------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class Read:
    """`ManagedLedger.read(position, entries_max, bytes_max)`; None: at the cursor's `first_unacknowledged()`, asked now."""

    read_id: int
    position: Position | None
    entries_max: int
    bytes_max: int
    is_replay: bool = False
    """Whether these entries were read before; for statistics."""
    picks: Picks | None = None
    """`ManagedLedger.pick(picks, bytes_max)` instead: entries that lie far apart, `entries_max` of them or fewer."""


@record(frozen=True, slots=True)
class Deliver:
    """`ConsumerSink.deliver` with these arguments; `ack_sets` has indexes in the run as keys. Costs `message_count` permits."""

    consumer: ConsumerId
    run: EntryRun
    indexes: range | Sequence[int]
    message_count: int
    redelivery_counts: Sequence[int] | None = None
    ack_sets: Mapping[int, Sequence[int]] | None = None
    consumer_epoch: int | None = None


@record(frozen=True, slots=True)
class AcknowledgeMarkers:
    """Acknowledge these entries on the cursor: markers, which no client ever sees. The event for it is harmless."""

    ledger_id: int
    entry_ids: BitMap


@record(frozen=True, slots=True)
class NotifyActive:
    """ACTIVE_CONSUMER_CHANGE."""

    consumer: ConsumerId
    is_active: bool


@record(frozen=True, slots=True)
class RefuseConsumer:
    """The consumer just added is not accepted, and already forgotten: BrokerError(code, message)."""

    consumer: ConsumerId
    code: ServerError
    message: str


@record(frozen=True, slots=True)
class SetTimer:
    """Hand in TimerFired at `at_ms`."""

    at_ms: int


@record(frozen=True, slots=True)
class WakeAt:
    """Hand in WallClockRead when that time of day has come, and now and then before: clocks are set. The last one counts."""

    wall_ms: int


Effect: TypeAlias = Read | Deliver | AcknowledgeMarkers | NotifyActive | RefuseConsumer | SetTimer | WakeAt


# --- the machine --------------------------------------------------------------------------------------------------------


class Dispatcher(Protocol):
    """One subscription's dispatcher. Ids of consumers that are unknown, or known no more, are ignored in every event."""

    @property
    def needs_key_hashes(self) -> bool:
        """Whether EntriesRead has to carry `key_hashes`."""

    @property
    def needs_deliver_times(self) -> bool:
        """Whether EntriesRead has to carry `deliver_times`."""

    @property
    def has_consumers(self) -> bool: ...
    @property
    def delays(self) -> Delays | None:
        """Entries that wait for their time, not to be changed; None where entries never wait."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Takes the event, and returns the effects, in order."""

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> ConsumerId | None:
        """Gives the run, the newest of the log, to one consumer as a whole, and returns it. None: send EntriesAvailable."""

    def first_to_read_again(self) -> Position | None:
        """The first entry before the reader's position that waits only for a consumer's room. None: no entry does."""

    @property
    def consumer_epoch(self) -> int | None:
        """Consumer epoch of the deliveries that `take_newest` decides."""

    def state(self) -> DispatcherState: ...
    def consumer_state(self, consumer: ConsumerId) -> ConsumerState | None: ...
    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> bool:
        """Take EntriesAcknowledged of one entry where no effect follows. False: nothing has changed, and that has to come."""

    def check_invariants(self) -> None:
        """AssertionError when the state contradicts itself; for tests and simulation."""
