"""Index: spans by ledger and entry; the newest block wins."""

from bookie.storage.index import Index
from bookie.storage.span import Span


def span(first: int, count: int, log_id: int, offset: int = 0) -> Span:
    return Span(first, count, log_id, offset, 100)


def test_a_newer_block_hides_entries_of_an_older_one() -> None:
    index = Index()
    index.insert_all([(1, span(0, 10, 1)), (1, span(4, 2, 2))])
    found = [(each.first_entry_id, each.count, each.log_id) for each in index.spans_between(1, 0, 10)]
    assert found == [(0, 4, 1), (4, 2, 2), (6, 4, 1)]


def test_spans_between_include_the_one_that_begins_before() -> None:
    index = Index()
    index.insert_all([(1, span(0, 5, 1)), (1, span(5, 5, 2)), (1, span(10, 5, 3))])
    assert [each.log_id for each in index.spans_between(1, 3, 10)] == [1, 2]
    assert [each.log_id for each in index.spans_between(1, 5, 11)] == [2, 3]
    assert index.spans_between(1, 5, 5) == []
    assert index.spans_between(2, 0, 5) == []


def test_a_log_whose_entries_are_all_hidden_is_not_among_the_logs() -> None:
    index = Index()
    index.insert(1, span(0, 2, 1))
    index.insert(2, span(0, 2, 1, 50))
    index.insert(1, span(0, 2, 2))
    assert index.log_ids() == {1, 2}
    index.keep_only([1])
    assert index.log_ids() == {2}
    assert index.spans_in([2]) == [(1, span(0, 2, 2))]
    assert not index.holds(1, span(0, 2, 1))
    assert index.holds(1, span(0, 2, 2))


def test_moved_entries_are_read_from_the_new_block() -> None:
    index = Index()
    index.insert(1, span(0, 10, 1))
    old = tuple(index.spans_between(1, 0, 10))
    index.relocate(1, old, span(0, 10, 5))
    assert index.spans() == [(1, span(0, 10, 5))]


def test_entries_that_were_written_again_during_a_move_stay_in_their_newer_block() -> None:
    index = Index()
    index.insert(1, span(0, 10, 1))
    old = tuple(index.spans_between(1, 0, 10))
    index.insert(1, span(4, 2, 3))
    index.relocate(1, old, span(0, 10, 5))
    found = [(each.first_entry_id, each.count, each.log_id) for _, each in index.spans()]
    assert found == [(0, 4, 5), (4, 2, 3), (6, 4, 5)]


def test_a_ledger_that_was_deleted_during_a_move_does_not_come_back() -> None:
    index = Index()
    index.relocate(1, (span(0, 10, 1),), span(0, 10, 5))
    assert index.spans() == []


def test_the_state_of_a_ledger_changes_when_a_block_of_it_is_written_or_moved() -> None:
    index = Index()
    index.insert(1, span(0, 10, 1))
    before = index.state_of(1)
    index.insert(2, span(0, 10, 1))
    assert index.state_of(1) == before
    index.relocate(1, (span(0, 10, 1),), span(0, 10, 2))
    assert index.state_of(1) != before
