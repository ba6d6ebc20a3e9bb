"""Pieces: reading ahead follows readers that are fast enough."""

from managed_ledger.cache.pieces import PIECES_MAX, Pieces
from wire.position import Position


def at(entry_id: int) -> Position:
    return Position(1, entry_id)


def test_a_reader_that_needs_less_than_half_the_age_of_the_cache_gets_its_next_piece_ahead() -> None:
    pieces = Pieces(age_s_max=10.0)
    assert not pieces.entered(at(0), at(10), now=0.0), "the pace of a new reader is not known"
    assert pieces.entered(at(10), at(20), now=4.9)


def test_a_reader_that_needs_half_the_age_of_the_cache_gets_no_piece_ahead() -> None:
    pieces = Pieces(age_s_max=10.0)
    pieces.entered(at(0), at(10), now=0.0)
    assert not pieces.entered(at(10), at(20), now=5.0)
    assert pieces.entered(at(20), at(30), now=6.0), "the pace is that of the last piece"


def test_a_reader_that_jumps_has_no_known_pace() -> None:
    pieces = Pieces(age_s_max=10.0)
    pieces.entered(at(0), at(10), now=0.0)
    assert not pieces.entered(at(11), at(20), now=0.1)


def test_the_first_reader_alone_is_told_the_end_of_a_piece_that_was_fetched_ahead() -> None:
    pieces = Pieces(age_s_max=10.0)
    pieces.fetched_ahead(at(10), at(20))
    assert pieces.entered_ahead(at(11)) is None
    assert pieces.entered_ahead(at(10)) == at(20)
    assert pieces.entered_ahead(at(10)) is None


def test_the_oldest_piece_is_forgotten_at_the_bound() -> None:
    pieces = Pieces(age_s_max=10.0)
    for number in range(PIECES_MAX + 1):
        pieces.fetched_ahead(at(number), at(number + 1))
        pieces.entered(at(1000 + 2 * number), at(1001 + 2 * number), now=0.0)
        pieces.check_invariants()
    assert pieces.entered_ahead(at(0)) is None
    assert pieces.entered_ahead(at(1)) == at(2)
    assert not pieces.entered(at(1001), at(5000), now=0.0)
    assert pieces.entered(at(1005), at(5001), now=0.0)
