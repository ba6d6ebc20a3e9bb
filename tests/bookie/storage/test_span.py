"""Spans of entries in entry logs."""

from bookie.storage.span import Span

SPAN = Span(first_entry_id=10, count=5, log_id=3, offset=4096, size_bytes=700)


def test_the_last_entry_is_that_of_the_count() -> None:
    assert SPAN.last_entry_id == 14


def test_a_part_of_a_span_stays_in_the_same_block() -> None:
    part = SPAN.entries(12, 2)
    assert (part.first_entry_id, part.last_entry_id) == (12, 13)
    assert (part.log_id, part.offset, part.size_bytes) == (3, 4096, 700)
    assert SPAN.count == 5
