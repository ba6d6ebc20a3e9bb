"""PassingLog: a managed ledger that keeps nothing. An entry is in it only while it is being delivered. The dispatchers of a
stored log therefore serve a non-persistent topic: an appended run can be read until `append` returns, and then counts as
acknowledged on every subscription. Positions grow, for the dispatchers; clients see 0:0 of every entry (`EntryRun.is_passing`),
as Apache has it. Nothing here waits, and nothing can fail.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from bookkeeper.ledgers import Quorums
from bookkeeper.write.parts import Part
from managed_ledger.contract import LATEST, LedgerFacts, ManagedCursor, Skipped, Taker
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryBatch, EntryRun

from .passing_cursor import PassingCursor

_ENTRIES_MAX = 1 << 31
"""With one ledger id: dispatchers keep entry ids as 32-bit numbers."""


class PassingLog:
    """A `managed_ledger.contract.ManagedLedger`. `entries_at_once_max`: entries of one append beyond it are dropped."""

    header_bytes = 0
    appends = None
    entry_count = 0
    size_bytes = 0
    is_terminated = False
    last_ledger_created_ms = 0
    skipped = Skipped()

    def __init__(self, name: str, entries_at_once_max: Callable[[], int], passed: Callable[[EntryRun], None]) -> None:
        self.name = name
        self.last_confirmed = Position(0, -1)
        self.passed_through = self.last_confirmed
        """Position up to which nothing can be read any more."""
        self.properties: Mapping[str, str] = {}
        self.cursors: Mapping[str, ManagedCursor] = {}
        """Durable ones: there are none."""
        self._entries_at_once_max = entries_at_once_max
        self._passed = passed
        self._current: EntryRun | None = None
        self._listeners: dict[Callable[[], None], None] = {}

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        """Hands out the batch before this returns. The future gives less than `batch` where that was too much at once."""
        run = self._numbered(batch)
        self.last_confirmed = Position(run.ledger_id, run.last_entry_id)
        self._current = run
        for listener in tuple(self._listeners):
            listener()
        self._current = None
        self.passed_through = self.last_confirmed
        self._passed(run)
        done = asyncio.get_running_loop().create_future()
        done.set_result(EntryRun(0, 0, run.buffer, run.offsets, run.header_bytes, is_passing=True))
        return done

    def _numbered(self, batch: EntryBatch) -> EntryRun:
        after = self.next_position(self.last_confirmed)
        if after.entry_id + batch.count > _ENTRIES_MAX:
            after = Position(after.ledger_id + 1, 0)
        offsets = batch.offsets[: max(1, self._entries_at_once_max()) + 1]
        return EntryRun(after.ledger_id, after.entry_id, batch.buffer, offsets, batch.header_bytes, is_passing=True)

    def take_part(self, part: Part) -> bool:
        """`append` adds all messages."""
        return False

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        """Nothing that has passed can be had again."""
        return Picked((), wanted)

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked:
        return Picked((), wanted)

    def keep_from(self, reader: object, position: Position | None) -> None:
        """Nothing is kept."""

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """The rest of the run under way, also beyond both bounds: entries not taken now are lost."""
        run = self._current
        if run is None or position > (run.ledger_id, run.last_entry_id):
            return None
        first = position.entry_id if position.ledger_id == run.ledger_id else run.first_entry_id
        return run.entries(first, run.last_entry_id - first + 1)

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        return self.read_cached(position, entries_max, bytes_max)

    def on_confirmed(self, listener: Callable[[], None], taker: Taker | None = None) -> Callable[[], None]:
        """Unlike that of a stored log, it is called within `append`; `taker` never is."""
        self._listeners[listener] = None
        return lambda: self._listeners.pop(listener, None)

    def on_fenced(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Registers nothing: a log that stores nothing cannot be fenced."""
        return lambda: None

    def on_refused(self, listener: Callable[[], None]) -> None:
        """No append is."""

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        return lambda: None

    def ledgers(self) -> Sequence[LedgerFacts]:
        return ()

    def active_from(self) -> Position:
        return LATEST

    def next_position(self, position: Position) -> Position:
        return Position(position.ledger_id, position.entry_id + 1)

    def previous_position(self, position: Position) -> Position:
        return Position(position.ledger_id, position.entry_id - 1)

    def first_position(self) -> Position:
        return self.next_position(self.last_confirmed)

    def count_between(self, first: Position, last: Position) -> int:
        return 0

    async def find_first(self, is_at_or_after: Callable[[EntryRun], Sequence[bool]]) -> Position | None:
        return None

    async def open_cursor(
        self, name: str, initial: Position = LATEST, cursor_properties: Mapping[str, str] | None = None
    ) -> ManagedCursor:
        return PassingCursor(self, name)

    def open_non_durable_cursor(self, name: str, initial: Position) -> ManagedCursor:
        return PassingCursor(self, name)

    async def delete_cursor(self, name: str) -> None: ...

    async def set_properties(self, properties: Mapping[str, str]) -> None:
        """Keeps them while the topic is loaded, as Apache keeps the topic epoch (NonPersistentTopic.incrementTopicEpoch)."""
        self.properties = dict(properties)

    def set_persistence(self, quorums: Quorums, marks_per_second: float | None) -> None: ...
    def set_retention(self, age_ms: int, size_bytes: int) -> None: ...
    async def trim(self, *, despite_retention: bool = False) -> Iterable[int]:
        return ()

    async def terminate(self) -> Position:
        raise AssertionError("the topic refuses it")

    async def close(self) -> None: ...
    async def delete(self, beside: Callable[[], Awaitable[None]] | None = None) -> None: ...
