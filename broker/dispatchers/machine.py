"""Base of every dispatcher: one reader, one timer, and the order in which an event is handled.

An event changes the state; then the dispatcher reads on if a consumer can take more; then the timer is set. Reads that are
outdated end here.
"""

from abc import ABC, abstractmethod
from typing import TypeAlias, assert_never

from wire.kernels.delivery_rows import MachineRow
from wire.position import Position
from wire.run import FLAG_CHUNK, FLAG_DELAYED, FLAG_MARKER, FLAG_TRANSACTION, EntryRun, RunMetadata

from .contract import (
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
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    EntriesReturned,
    Event,
    IndexFound,
    IndexLoaded,
    IndexLoading,
    LimitsChanged,
    MarkDeleteMoved,
    NothingToRead,
    PermitsAdded,
    Read,
    ReadFailed,
    RedeliveryRequested,
    SetTimer,
    TimerFired,
    WallClockRead,
    WritabilityChanged,
)
from .delays.delays import Delays
from .reading.reader import Reader
from .settings import DispatcherSettings

LOOKED_AT_SINGLY = FLAG_CHUNK | FLAG_DELAYED | FLAG_MARKER | FLAG_TRANSACTION
"""Flags of entries that are not just handed out."""

SubscriptionEvent: TypeAlias = (
    EntriesAcknowledged
    | EntriesReturned
    | PermitsAdded
    | BatchIndexesAcknowledged
    | WritabilityChanged
    | RedeliveryRequested
    | ConsumerAdded
    | ConsumerRemoved
    | MarkDeleteMoved
    | CursorReset
    | LimitsChanged
    | DelaysChanged
    | IndexLoading
    | IndexFound
    | IndexLoaded
    | WallClockRead
)
"""Events that are no answer to a read and no wake-up."""


Answer: TypeAlias = EntriesRead | EntriesPicked | NothingToRead | ReadFailed


class Timer:
    """Remembers the time last given to the driver."""

    __slots__ = ("_at_ms",)

    def __init__(self) -> None:
        self._at_ms: int | None = None

    def arm(self, effects: list[Effect], *deadlines_ms: int | None) -> None:
        wanted = None
        for deadline in deadlines_ms:
            if deadline is not None and (wanted is None or deadline < wanted):
                wanted = deadline
        if wanted is not None and wanted != self._at_ms:
            effects.append(SetTimer(wanted))
            self._at_ms = wanted

    def fired(self) -> None:
        self._at_ms = None


class Machine(MachineRow, ABC):
    """A dispatcher's frame. `deals`: how its newest entries may be given away without a read (`wire.kernels.newest`)."""

    _reader: Reader

    needs_key_hashes = False
    needs_deliver_times = False

    def __init__(self, settings: DispatcherSettings) -> None:
        self._settings = settings
        self.deals = 0
        self._reader = Reader(settings)
        self._timer = Timer()

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        match event:
            case EntriesAvailable():
                self._reader.more_is_available()
            case EntriesRead() | EntriesPicked() | NothingToRead() | ReadFailed():
                read = self._reader.accept(event)
                if read is not None:
                    self._on_answer(read, event, now_ms, effects)
            case TimerFired():
                self._timer.fired()
            case _:
                self._take(event, now_ms, effects)
        self._go_on(now_ms, effects)
        self._timer.arm(effects, self._reader.retry_at_ms, self._deadline_ms())
        return effects

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> ConsumerId | None:
        """Gives the whole run, which was just confirmed, to one consumer, and returns it. None: nothing has changed, and
        EntriesAvailable has to come. State and deliveries equal those after EntriesAvailable and EntriesRead where nothing else
        is under way, at a part of their cost: test_newest_runs.py.
        """
        return None

    def first_to_read_again(self) -> Position | None:
        """The first entry before the reader's position that waits only for a consumer's room. None: no entry does."""
        return None

    @property
    def consumer_epoch(self) -> int | None:
        """Consumer epoch of the deliveries that `take_newest` decides."""
        return None

    def _on_answer(self, read: Read, answer: Answer, now_ms: int, effects: list[Effect]) -> None:
        match answer:
            case EntriesRead():
                self._reader.succeeded(read, answer)
                self._on_read(read, answer, effects)
            case EntriesPicked():
                self._reader.picked()
                self._on_picked(read, answer, effects)
            case NothingToRead():
                self._reader.found_nothing(read)
                self._on_nothing(read)
            case ReadFailed():
                self._reader.failed(now_ms)
            case _:
                assert_never(answer)

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> bool:
        """Same as `handle` of EntriesAcknowledged, for one entry, where it has no effects. False: nothing has changed, and
        `handle` has to be called: test_single_acknowledgements.py."""
        return False

    @property
    @abstractmethod
    def has_consumers(self) -> bool: ...

    @property
    def delays(self) -> Delays | None:
        """Entries that wait for their time."""
        return None

    @abstractmethod
    def state(self) -> DispatcherState: ...

    @abstractmethod
    def consumer_state(self, consumer: ConsumerId) -> ConsumerState | None: ...

    @abstractmethod
    def check_invariants(self) -> None:
        """AssertionError when the state contradicts itself."""

    @abstractmethod
    def _take(self, event: SubscriptionEvent, now_ms: int, effects: list[Effect]) -> None:
        """An event of the subscription."""

    @abstractmethod
    def _on_read(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        """Deals the entries that can be dealt; the reader stands after the run already."""

    def _on_picked(self, read: Read, answer: EntriesPicked, effects: list[Effect]) -> None:
        """Same as `_on_read`, for a read with picks."""
        raise AssertionError("nothing was to be picked")

    @abstractmethod
    def _on_nothing(self, read: Read) -> None:
        """A read found nothing at or after its position."""

    @abstractmethod
    def _go_on(self, now_ms: int, effects: list[Effect]) -> None:
        """Takes due entries, then reads if some consumer can take more."""

    def _deadline_ms(self) -> int | None:
        """A time that this dispatcher waits for, reads apart."""
        return None
