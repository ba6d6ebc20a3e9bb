"""Skipping of data that is lost for ever: autoSkipNonRecoverableData and managedLedgerForceRecovery.

Without either, unreadable data is an error of its topic and nothing is skipped. With the first, data lost for certain
is skipped, and nothing else: a data ledger that is not there, entries that no replica has, entries of a cursor ledger
that are no states or segments. With the second a topic opens whatever fails of its last ledger and its cursors, as in PIP-327.
Each skip is logged as an error and counted. Entries of a lost cursor state are delivered again, never taken as acknowledged.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bookkeeper.ledgers import EntryLost, LedgerError, NoSuchLedger
from ports.logs import line
from wire.position import Position

from .contract import Skipped
from .errors import BrokenMetadata
from .ledgers.metadata_driver import ROOT
from .settings import ManagedLedgerSettings

CURSOR_ENTRIES_MAX = 100
"""Garbage at the end of a cursor ledger is passed over so far back; then the whole ledger counts as garbage."""

_NOTHING = Skipped()
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Skipping:
    """The decision, and what was skipped since the process began: counts, one set for each managed ledger that is damaged."""

    settings: ManagedLedgerSettings
    _counts: dict[str, Skipped] = field(default_factory=dict)

    def of(self, name: str) -> Skipped:
        """Counts by the name of a managed ledger; without entries, which its reads count."""
        return self._counts.get(name, _NOTHING)

    @property
    def ledgers(self) -> int:
        """Data ledgers that a managed ledger was opened without."""
        return sum(each.ledgers for each in self._counts.values())

    @property
    def cursor_entries(self) -> int:
        """Entries of cursor ledgers passed over: for an older one, or with the acknowledgements of a segment."""
        return sum(each.cursor_entries for each in self._counts.values())

    @property
    def cursor_ledgers(self) -> int:
        """Cursor ledgers of which nothing could be read."""
        return sum(each.cursor_ledgers for each in self._counts.values())

    @property
    def cursor_nodes(self) -> int:
        """Cursors of which only the name is known."""
        return sum(each.cursor_nodes for each in self._counts.values())

    def skips_ledger(self, name: str, ledger_id: int, error: LedgerError) -> bool:
        """Whether a managed ledger opens without its last ledger."""
        if not self._is_skipped(error):
            return False
        self._count(name, ledgers=self.of(name).ledgers + 1)
        _log.error(
            line(
                "managed ledger opened without a ledger that cannot be read",
                managed_ledger=name,
                ledger=ledger_id,
                reason=error,
            )
        )
        return True

    def skips_cursor_entry(self, path: str, ledger_id: int, entry_id: int, error: Exception) -> bool:
        """Whether an older entry of the cursor ledger counts instead."""
        if not self._is_skipped(error):
            return False
        name = _log_of(path)
        self._count(name, cursor_entries=self.of(name).cursor_entries + 1)
        _log.error(line("cursor entry skipped", cursor=path, ledger=ledger_id, entry=entry_id, reason=error))
        return True

    def skips_cursor_segment(self, path: str, ledger_id: int, start: Position, errors: Sequence[tuple[int, Exception]]) -> bool:
        """Whether the acknowledgements that these entries of a segment have are taken for unknown, and delivered again."""
        if not all(self._is_skipped(error) for _, error in errors):
            return False
        name = _log_of(path)
        self._count(name, cursor_entries=self.of(name).cursor_entries + len(errors))
        for entry_id, error in errors:
            _log.error(line("cursor segment skipped", cursor=path, ledger=ledger_id, entry=entry_id, start=start, reason=error))
        return True

    def skips_cursor_ledger(self, path: str, ledger_id: int, error: Exception) -> bool:
        """Whether the cursor goes back to what its node says, or to the beginning."""
        if not self._is_skipped(error):
            return False
        name = _log_of(path)
        self._count(name, cursor_ledgers=self.of(name).cursor_ledgers + 1)
        _log.error(line("cursor recovered without its ledger", cursor=path, ledger=ledger_id, reason=error))
        return True

    def skips_cursor_node(self, path: str, error: BrokenMetadata) -> bool:
        """Whether a cursor of which only the name is known goes back to the beginning."""
        if not self.settings.managed_ledger_force_recovery:
            return False
        name = _log_of(path)
        self._count(name, cursor_nodes=self.of(name).cursor_nodes + 1)
        _log.error(line("cursor cannot be recovered: it starts again", cursor=path, reason=error))
        return True

    def _count(self, name: str, **counts: int) -> None:
        self._counts[name] = replace(self.of(name), **counts)

    def _is_skipped(self, error: Exception) -> bool:
        if self.settings.managed_ledger_force_recovery:
            return True
        return self.settings.auto_skip_non_recoverable_data and isinstance(error, NoSuchLedger | EntryLost | BrokenMetadata)


def _log_of(cursor_path: str) -> str:
    """The name of the managed ledger that has a cursor at that node."""
    return cursor_path.removeprefix(ROOT).rpartition("/")[0]


def remedy(error: Exception) -> str:
    """Setting that skips an error, for the message of one that was not skipped."""
    is_lost = isinstance(error, NoSuchLedger | EntryLost | BrokenMetadata)
    return f"{'autoSkipNonRecoverableData' if is_lost else 'managedLedgerForceRecovery'}=true opens the topic without it"
