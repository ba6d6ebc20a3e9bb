"""Lost data is skipped only where a setting says so, only for errors that it covers, and counted for the right log."""

import pytest

from bookkeeper.ledgers import EntryLost, LedgerError, LedgerUnreadable, NoSuchLedger
from managed_ledger.errors import BrokenMetadata
from managed_ledger.settings import ManagedLedgerSettings
from managed_ledger.skipping import Skipping, remedy
from wire.position import Position

LOG = "public/default/persistent/topic"
CURSOR = f"/managed-ledgers/{LOG}/subscription"
NEITHER = Skipping(ManagedLedgerSettings())
LOST = (NoSuchLedger("gone"), EntryLost("gone"))
AWAY = (LedgerUnreadable("bookies are away"), LedgerError("no quorum"))


def auto() -> Skipping:
    return Skipping(ManagedLedgerSettings(auto_skip_non_recoverable_data=True))


def forced() -> Skipping:
    return Skipping(ManagedLedgerSettings(managed_ledger_force_recovery=True))


@pytest.mark.parametrize("error", [*LOST, *AWAY])
def test_nothing_is_skipped_without_a_setting(error: LedgerError) -> None:
    assert not NEITHER.skips_ledger(LOG, 1, error)
    assert not NEITHER.skips_cursor_ledger(CURSOR, 1, error)
    assert not NEITHER.skips_cursor_entry(CURSOR, 1, 0, error)
    assert not NEITHER.skips_cursor_segment(CURSOR, 1, Position(1, 0), [(0, error)])
    assert not NEITHER.skips_cursor_node(CURSOR, BrokenMetadata("garbage"))
    assert NEITHER.of(LOG) == auto().of(LOG), "nothing was counted"


@pytest.mark.parametrize("error", LOST)
def test_auto_skip_skips_data_that_is_lost_for_certain(error: LedgerError) -> None:
    assert auto().skips_ledger(LOG, 1, error)
    assert auto().skips_cursor_ledger(CURSOR, 1, error)


@pytest.mark.parametrize("error", AWAY)
def test_auto_skip_skips_nothing_that_may_come_back(error: LedgerError) -> None:
    assert not auto().skips_ledger(LOG, 1, error)
    assert not auto().skips_cursor_entry(CURSOR, 1, 0, error)


@pytest.mark.parametrize("error", [*LOST, *AWAY])
def test_forced_recovery_skips_whatever_fails(error: LedgerError) -> None:
    assert forced().skips_ledger(LOG, 1, error)
    assert forced().skips_cursor_ledger(CURSOR, 1, error)


def test_only_forced_recovery_begins_a_cursor_anew_whose_node_is_garbage() -> None:
    garbage = BrokenMetadata("garbage")
    assert not auto().skips_cursor_node(CURSOR, garbage)
    assert forced().skips_cursor_node(CURSOR, garbage)


def test_a_segment_with_one_entry_that_may_come_back_is_not_skipped() -> None:
    skipping = auto()
    assert not skipping.skips_cursor_segment(CURSOR, 1, Position(1, 0), [(4, EntryLost("")), (5, LedgerUnreadable(""))])
    assert skipping.cursor_entries == 0
    assert skipping.skips_cursor_segment(CURSOR, 1, Position(1, 0), [(4, EntryLost("")), (5, EntryLost(""))])
    assert skipping.cursor_entries == 2


def test_each_garbled_entry_of_a_cursor_ledger_is_counted() -> None:
    skipping = auto()
    assert skipping.skips_cursor_entry(CURSOR, 1, 5, BrokenMetadata("garbage"))
    assert skipping.skips_cursor_entry(CURSOR, 1, 4, BrokenMetadata("garbage"))
    assert (skipping.of(LOG).cursor_entries, skipping.cursor_entries) == (2, 2)


def test_data_that_cursors_skip_is_counted_for_their_log_and_for_the_process() -> None:
    skipping = forced()
    skipping.skips_ledger(LOG, 1, NoSuchLedger(""))
    skipping.skips_cursor_ledger(CURSOR, 2, NoSuchLedger(""))
    skipping.skips_cursor_node(CURSOR, BrokenMetadata(""))
    skipping.skips_ledger("public/default/persistent/other", 3, NoSuchLedger(""))
    counts = skipping.of(LOG)
    assert (counts.ledgers, counts.cursor_ledgers, counts.cursor_nodes, counts.cursor_entries) == (1, 1, 1, 0)
    assert (skipping.ledgers, skipping.cursor_ledgers, skipping.cursor_nodes) == (2, 1, 1)


def test_the_remedy_is_the_mildest_setting_that_helps() -> None:
    assert remedy(NoSuchLedger("")).startswith("autoSkipNonRecoverableData=true")
    assert remedy(BrokenMetadata("")).startswith("autoSkipNonRecoverableData=true")
    assert remedy(LedgerUnreadable("")).startswith("managedLedgerForceRecovery=true")
