"""PassingCursor: the place of a subscription in a log that keeps nothing, which is always its end.

Acknowledgements have no effect, as in Apache's NonPersistentSubscription.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, HoleStats
from wire.position import Position


class PassingPlace(Protocol):
    """Part of the log that a cursor needs."""

    @property
    def passed_through(self) -> Position: ...


class PassingCursor:
    """A `managed_ledger.contract.ManagedCursor`."""

    durable = False
    persistent_mark_delete = EARLIEST

    def __init__(self, log: PassingPlace, name: str) -> None:
        self.name = name
        self.properties: Mapping[str, int] = {}
        self.cursor_properties: Mapping[str, str] = {}
        self._log = log

    @property
    def mark_delete(self) -> Position:
        return self._log.passed_through

    def first_unacknowledged(self) -> Position:
        return Position(self.mark_delete.ledger_id, self.mark_delete.entry_id + 1)

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        return BitMap()

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        return False

    def acknowledge_batch_indexes(self, position: Position, ack_set: Sequence[int], batch_size: int) -> bool:
        return False

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] = (),
        batch_size: int = 0,
        properties: Mapping[str, int] | None = None,
    ) -> None: ...

    def is_acknowledged(self, position: Position) -> bool:
        return position <= self.mark_delete

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        return True

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None: ...

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        return False  # there is nothing to acknowledge

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        return BitMap()

    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None:
        return None

    def has_batch_indexes(self) -> bool:
        return False

    def partly_acknowledged_count(self) -> int:
        return 0

    def partly_acknowledged(
        self, first: Position | None = None, last: Position | None = None
    ) -> Iterator[tuple[Position, tuple[int, ...]]]:
        return iter(())

    def backlog_entries(self) -> int:
        return 0

    def hole_stats(self) -> HoleStats:
        return HoleStats(0, 0)

    async def reset(self, position: Position) -> None: ...

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        self.cursor_properties = dict(properties)

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        kept = {key: value for key, value in self.cursor_properties.items() if key not in removed}
        self.cursor_properties = {**kept, **put}

    async def flush(self) -> None: ...
    async def stored(self) -> None: ...
    async def close(self) -> None: ...
