"""Positions: their order and their text."""

from wire.position import Position


def test_positions_are_ordered_by_ledger_and_then_by_entry() -> None:
    places = [Position(7, 0), Position(3, 10), Position(3, 9), Position(3, -1)]
    assert sorted(places) == [Position(3, -1), Position(3, 9), Position(3, 10), Position(7, 0)]
    assert Position(3, 10) > Position(3, 9)
    assert Position(2, 99) < Position(3, -1)


def test_the_text_of_a_position_is_apaches() -> None:
    assert str(Position(12, 34)) == "12:34"
    assert str(Position(12, -1)) == "12:-1"
