"""The contract of managed ledgers and cursors, as `broker.topic` uses it.

A managed ledger is a list of ledgers of which the last is open. Metadata is Apache's:
`/managed-ledgers/<t>/<ns>/persistent/<topic>` holds ManagedLedgerInfo, its children ManagedCursorInfo.
All calls are made on the event loop; nothing here blocks it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerStore, Quorums
from bookkeeper.write.parts import Part
from wire.kernels.rows import AppenderRow
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryBatch, EntryRun

from .append.answers import PartSource as PartSource
from .append.listeners import New as New
from .append.listeners import Taker as Taker
from .append.listeners import run_of as run_of
from .cursor.holes.bitmaps import ranges as ranges
from .cursor.holes.hole_stats import HoleStats as HoleStats
from .errors import AppendRefused as AppendRefused
from .errors import InvalidCursorPosition as InvalidCursorPosition
from .errors import ManagedLedgerError as ManagedLedgerError
from .errors import ManagedLedgerExcluded as ManagedLedgerExcluded
from .errors import ManagedLedgerFenced as ManagedLedgerFenced
from .errors import ManagedLedgerNotFound as ManagedLedgerNotFound
from .errors import ManagedLedgerTerminated as ManagedLedgerTerminated

EARLIEST = Position(-1, -1)
LATEST = Position((1 << 63) - 1, (1 << 63) - 1)


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """One ledger of a log. `size_bytes` counts payloads; `closed_at_ms` is 0 while it is open."""

    ledger_id: int
    entries: int
    size_bytes: int
    closed_at_ms: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """Counts of unreadable things that were skipped because the settings say so (`managed_ledger.skipping`).

    `entries`: of the log, since it was opened; the others since the process began.
    """

    entries: int = 0
    ledgers: int = 0
    cursor_entries: int = 0
    cursor_ledgers: int = 0
    cursor_nodes: int = 0


class ManagedCursor(Protocol):
    """A subscription's place: the mark-delete position (everything at or before it is acknowledged) and the holes after it.

    Acknowledgements take effect in memory at once and are persisted at a limited rate, and always by `flush` and at close.
    """

    @property
    def name(self) -> str: ...
    @property
    def durable(self) -> bool: ...
    @property
    def mark_delete(self) -> Position: ...
    @property
    def persistent_mark_delete(self) -> Position:
        """The mark that was stored last; EARLIEST when it is not durable (Apache: getPersistentMarkDeletedPosition)."""

    @property
    def properties(self) -> Mapping[str, int]:
        """Properties of the last cumulative mark (Apache's LongProperty)."""

    @property
    def cursor_properties(self) -> Mapping[str, str]:
        """The subscription's own properties."""

    def first_unacknowledged(self) -> Position:
        """The first position that a rewound reader reads: the valid position after mark-delete. May be beyond the end."""

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Acknowledge whole entries of one ledger; returns those that were not acknowledged before.

        Ids of ledgers or entries that are already gone are ignored; InvalidCursorPosition for entries that do not exist yet.
        """

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Acknowledge one plain entry (`acknowledge_entries`): of the ledger that is written, with mark-delete in it, and not
        acknowledged before. False: it is none, nothing has changed, and `acknowledge_entries` has to be called."""

    def acknowledge_batch_indexes(self, position: Position, ack_set: Sequence[int], batch_size: int) -> bool:
        """Acknowledge part of a batch: `ack_set` are 64-bit words, bit 1 = still unacknowledged (ANDed with what is known).

        True when that made the entry wholly acknowledged.
        """

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] = (),
        batch_size: int = 0,
        properties: Mapping[str, int] | None = None,
    ) -> None:
        """Acknowledge everything up to and including `position` (with `ack_set`: up to the part of that batch).

        `properties` are those of the mark from now on, if this moved it; int64. None leaves what there is.
        """

    def is_acknowledged(self, position: Position) -> bool: ...
    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether `load_acknowledged` has nothing to do."""

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None:
        """Have the acknowledgements of these entries in memory on return, until the next await. See `acknowledged_in`.

        Nothing to do, and no wait, unless the cursor has very many holes (docs/cursor-segments.md). ManagedLedgerError.
        """

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether nothing of these entries is acknowledged, for certain."""

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        """Entry ids of that ledger which are acknowledged beyond mark-delete. Do not change it.

        Certain for entries after `load_acknowledged`; without it, entries may lack that are acknowledged.
        """

    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None:
        """The ack set (64-bit words, bit 1 = unacknowledged) of a partly acknowledged batch; None when there is none."""

    def has_batch_indexes(self) -> bool:
        """Whether any batch is partly acknowledged, so that the common case costs nothing."""

    def partly_acknowledged_count(self) -> int:
        """Number of such batches."""

    def partly_acknowledged(
        self, first: Position | None = None, last: Position | None = None
    ) -> Iterator[tuple[Position, tuple[int, ...]]]:
        """Each such batch from `first` to `last`, both with them, with its ack set, in order."""

    def backlog_entries(self) -> int:
        """Exact number of entries that are not acknowledged."""

    def hole_stats(self) -> HoleStats: ...

    async def reset(self, position: Position) -> None:
        """Put mark-delete right before `position` and forget the holes, durably. EARLIEST and LATEST are allowed."""

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        """Set the subscriber's properties; the broker's own (`cursor.properties`) stay as they are."""

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        """Change some properties, the broker's own too; the others stay as they are. ManagedLedgerError when it is closed."""

    async def flush(self) -> None:
        """Persist all changes."""

    async def stored(self) -> None:
        """Return when all that is acknowledged now is persisted; ManagedLedgerError when it will not be by this cursor.

        Calls at the same time share one write. A cursor that is not durable promises nothing and returns at once.
        """

    async def close(self) -> None: ...


class ManagedLedger(Protocol):
    """One topic's log."""

    @property
    def name(self) -> str:
        """`tenant/namespace/persistent/topic`, the topic URL-encoded."""

    @property
    def last_confirmed(self) -> Position:
        """The last entry that is stored, or the place before the first one: (ledger, -1)."""

    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def cursors(self) -> Mapping[str, ManagedCursor]: ...
    @property
    def entry_count(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def ledgers(self) -> Sequence[LedgerFacts]:
        """The ledgers there are now, ascending; only the last can be open."""

    @property
    def is_terminated(self) -> bool: ...
    @property
    def last_ledger_created_ms(self) -> int:
        """Creation time of the last ledger; before the first append the time of opening, when Apache begins one."""
        ...

    @property
    def skipped(self) -> Skipped: ...
    def active_from(self) -> Position:
        """Cursors that go on there or later are active: new entries are kept in memory for them."""

    @property
    def header_bytes(self) -> int:
        """The room that an EntryBatch needs before each payload."""

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        """Store entries; the future gives them their ids and completes in call order, after the ack quorum has fsynced.

        A roll-over in between is invisible: a batch is never split over two ledgers. After ManagedLedgerError the managed
        ledger stays usable only where the error says so (AppendRefused); ManagedLedgerTerminated and -Fenced are final.
        """

    @property
    def appends(self) -> AppenderRow | None:
        """Appender to which `turns.take_parts` appends parts, as `take_part` does; None: `take_part` has to be asked."""

    def take_part(self, part: Part) -> bool:
        """Append it together with others: the caller that gets True hands it to `together.send` before anything else is
        appended; its `source` (a `PartSource`) gets the end. False: nothing has changed, `append` has to be called."""

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """The run that starts at the first entry at or after `position`, from cache or ledger; of one ledger, without gap.

        At least one entry, else within both bounds. None when nothing at or after `position` is confirmed yet.
        """

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Result of `read` at once when it is in memory. None: not in memory, or nothing to read; `read` knows."""

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        """Some entries, by ledger, that may lie far apart; within about `bytes_max`, but for the first. See `Picked`."""

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked | None:
        """The answer of `pick`, at once, when all these entries are in memory and within `bytes_max`; None: `pick` knows."""

    def keep_from(self, reader: object, position: Position | None) -> None:
        """`reader` will ask for entries from `position` on again: they stay in the cache although every reader has passed them,
        as long as the cache's bounds allow. None: nothing any more."""

    def on_confirmed(self, listener: Callable[[], None], taker: Taker | None = None) -> Callable[[], None]:
        """Call `listener` (on the loop, soon) each time that last_confirmed moved; returns the call that ends it.

        `taker` may be called instead, when one run alone is new and there is no other listener.
        """

    def on_fenced(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` (on the loop, soon) when another owner has the managed ledger: an append, a cursor or the list of
        ledgers finds out. Returns the call that ends it."""

    def on_refused(self, listener: Callable[[], None]) -> None:
        """Go on after AppendRefused. `listener` is called at once, before any of the appends fails, and has to see to it that
        no later append overtakes them. One listener, the newest; without one the managed ledger fails instead."""

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener`, at once, with the name of a cursor whose mark-delete went back (a reset); returns the call that ends
        it. One listener is enough for a managed ledger: the last one hears."""

    def next_position(self, position: Position) -> Position:
        """The position after it: the first entry of the next ledger when it was the last of a closed one."""

    def previous_position(self, position: Position) -> Position: ...
    def first_position(self) -> Position:
        """The first entry there is or will be."""

    def count_between(self, first: Position, last: Position) -> int:
        """Entries in [first, last]; 0 when last < first."""

    async def find_first(self, is_at_or_after: Callable[[EntryRun], Sequence[bool]]) -> Position | None:
        """Binary search over an ordered predicate (publish time): the first position for which it holds; None: for none."""

    async def open_cursor(
        self, name: str, initial: Position = LATEST, cursor_properties: Mapping[str, str] | None = None
    ) -> ManagedCursor:
        """The durable cursor of that name, made when missing: `initial` is the first position it has to read."""

    def open_non_durable_cursor(self, name: str, initial: Position) -> ManagedCursor: ...
    async def delete_cursor(self, name: str) -> None: ...
    async def set_properties(self, properties: Mapping[str, str]) -> None: ...
    def set_persistence(self, quorums: Quorums, marks_per_second: float | None) -> None:
        """Set quorums of the next ledgers, and saves of a cursor per second (0: no limit; None: as the settings say)."""

    def set_retention(self, age_ms: int, size_bytes: int) -> None:
        """Set this log's retention at once, instead of the settings'; -1: without bound, 0 for either: nothing is retained."""

    async def trim(self, *, despite_retention: bool = False) -> Iterable[int]:
        """Delete the prefix of ledgers that every cursor has consumed and retention releases; their ids. Never the open one."""

    async def terminate(self) -> Position: ...
    async def close(self) -> None: ...
    async def delete(self, beside: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete cursors, ledgers and metadata. `beside` deletes what cursors name elsewhere: it is called when no other broker
        can have the log, before the cursors go. ManagedLedgerFenced: another has it, and nothing is deleted."""


class ManagedLedgers(Protocol):
    """All managed ledgers of this process (Apache: ManagedLedgerFactory)."""

    @property
    def ledger_store(self) -> LedgerStore | None:
        """Store of ledgers, for those that belong to a topic beside its log; None: there are none."""

    async def open(self, name: str, *, create: bool = True) -> ManagedLedger:
        """Opened once per name; the last ledger is recovered (fenced) before a new one is made. ManagedLedgerNotFound."""

    async def exists(self, name: str) -> bool: ...
    async def close(self) -> None: ...
