"""CursorRecovery: which entry of a cursor ledger counts. Pure: says what to read next, and at the end what was found.

The last entry counts when it is Apache's PositionInfo or a marker. Segments without a marker behind them are what a save left
that was cut short: they are passed over, back to the marker or PositionInfo before them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .holes.segment_format_v1 import EntryKind, decode_marker, kind_of
from .state import CursorState, decode_position

_READ_ENTRIES_MAX = 1024


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Give the entries `first` to `last` to `entries_read`."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state that counts; `passed` entries after it do not."""

    state: CursorState
    passed: int


@dataclass(frozen=True, slots=True)
class NothingFound:
    """No entry counts."""


Found = ReadBack | Recovered | NothingFound


class CursorRecovery:
    """Recovery of a ledger whose last entry is `last_entry_id`."""

    __slots__ = ("_asked", "_last", "_name")

    def __init__(self, name: str, last_entry_id: int) -> None:
        self._name = name
        self._last = last_entry_id
        self._asked = 1

    def begin(self) -> Found:
        return self._before(self._last + 1, 1)

    def entries_read(self, first: int, entries: Sequence[bytes]) -> Found:
        for entry_id in range(first + len(entries) - 1, first - 1, -1):
            entry = entries[entry_id - first]
            match kind_of(self._name, entry):
                case None:
                    return Recovered(decode_position(self._name, entry), self._last - entry_id)
                case EntryKind.MARKER:
                    return Recovered(decode_marker(self._name, entry, entry_id), self._last - entry_id)
                case EntryKind.SEGMENT | EntryKind.ADDITION:
                    continue
        return self._before(first, min(8 * self._asked, _READ_ENTRIES_MAX))

    def _before(self, entry_id: int, count: int) -> Found:
        if entry_id <= 0:
            return NothingFound()
        self._asked = count
        return ReadBack(max(entry_id - count, 0), entry_id - 1)
