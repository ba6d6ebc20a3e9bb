"""Binary search in a log, beside a walk over all entries; trimmed and lost entries on the way."""

import asyncio
from array import array

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.ledgers.sequence import LedgerSequence
from managed_ledger.read.search import LOST_ENTRIES_MAX, find_first, last_readable
from wire.position import Position
from wire.run import EntryRun


class Log:
    """A log whose entries are their indexes. `lost` cannot be read; `on_read` is called before each read."""

    def __init__(self, counts: list[int]) -> None:
        self.sequence = LedgerSequence()
        for ledger_id, entries in enumerate(counts, start=1):
            self.sequence.add_closed(ledger_id, entries, entries, 1)
        self.reads = 0
        self.lost: set[Position] = set()
        self.trims_after_reads = -1

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        assert (entries_max, bytes_max) == (1, 1), "single entries are read"
        if self.reads == self.trims_after_reads:
            self.sequence.remove([next(iter(self.sequence)).ledger_id])
        self.reads += 1
        if position in self.lost:
            return None
        index = self.sequence.entries_through(position) - 1
        return EntryRun(position.ledger_id, position.entry_id, index.to_bytes(4), array("I", (0, 4)), 0)

    def first_from(self, wanted: int) -> Position | None:
        return asyncio.run(find_first(self.sequence, self.read, lambda run: [int.from_bytes(run.first_entry) >= wanted]))

    def last(self) -> Position | None:
        run = asyncio.run(last_readable(self.sequence, self.read))
        return None if run is None else Position(run.ledger_id, run.first_entry_id)


COUNTS = st.lists(st.integers(1, 4), max_size=5)


@given(COUNTS, st.integers(0, 21))
def test_the_first_entry_is_found_as_by_a_walk_over_all(counts: list[int], wanted: int) -> None:
    log = Log(counts)
    places = [Position(ledger_id, each) for ledger_id, count in enumerate(counts, 1) for each in range(count)]
    assert log.first_from(wanted) == (places[wanted] if wanted < len(places) else None)


def test_a_search_in_a_million_entries_reads_twenty_of_them() -> None:
    log = Log([1 << 20])
    assert log.first_from(777_777) == Position(1, 777_777)
    assert log.reads <= 20


def test_ledgers_that_are_trimmed_during_the_search_count_as_before_it() -> None:
    log = Log([8, 8])
    log.trims_after_reads = 1
    assert log.first_from(3) == Position(2, 0)


def test_nothing_is_found_in_a_log_without_entries() -> None:
    assert (Log([]).first_from(0), Log([]).last()) == (None, None)


def test_the_last_readable_entry_is_the_last_one() -> None:
    log = Log([2, 3])
    assert (log.last(), log.reads) == (Position(2, 2), 1)


def test_lost_entries_at_the_end_are_passed_over_into_the_ledger_before() -> None:
    log = Log([2, 2])
    log.lost = {Position(2, 1), Position(2, 0)}
    assert log.last() == Position(1, 1)


def test_a_log_whose_entries_are_all_lost_has_no_last_one() -> None:
    log = Log([2])
    log.lost = {Position(1, 0), Position(1, 1)}
    assert log.last() is None


def test_the_search_back_ends_after_so_many_lost_entries() -> None:
    log = Log([LOST_ENTRIES_MAX + 1])
    log.lost = {Position(1, each) for each in range(1, LOST_ENTRIES_MAX + 1)}
    assert (log.last(), log.reads) == (None, LOST_ENTRIES_MAX)
