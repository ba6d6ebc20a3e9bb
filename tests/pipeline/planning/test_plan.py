"""Positions and splits: every entry between two places once and in order, however ledgers are cut and packed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.errors import DataLost, NoSuchPosition
from pipeline.pyspark_pulsar.plan import since, splits_of
from pipeline.pyspark_pulsar.positions import EARLIEST, LATEST, Ledger, Place, check_start, end_of, parse_place, ranges_between

_ledgers = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30), st.integers(0, 5000)), max_size=6).map(
    lambda rows: [Ledger(sum(gap for gap, _, _ in rows[: at + 1]), *rows[at][1:]) for at in range(len(rows))]
)
_places = st.sampled_from([EARLIEST, LATEST]) | st.builds(Place, st.integers(0, 50), st.integers(0, 35))


@given(_ledgers, _places, _places, st.integers(1, 3000))
def test_splits_are_every_entry_between_two_places_once_and_in_order(
    ledgers: list[Ledger], start: Place, end: Place, split_bytes: int
) -> None:
    every = [Place(ledger.ledger_id, entry) for ledger in ledgers for entry in range(ledger.entries)]
    splits = list(splits_of("t", ranges_between(ledgers, start, end), split_bytes))
    planned = [
        Place(part.ledger_id, entry)
        for split in splits
        for part in split.ranges
        for entry in range(part.first_entry_id, part.end_entry_id)
    ]
    assert planned == [place for place in every if start <= place < end]
    assert all(split.entries == sum(part.count for part in split.ranges) > 0 for split in splits)
    assert all((split.first, split.last) == (split.ranges[0].first, split.ranges[-1].last) for split in splits)


def test_small_ledgers_share_a_task_and_a_long_one_is_cut() -> None:
    ledgers = [Ledger(1, 10, 100), Ledger(2, 10, 100), Ledger(3, 100, 1000), Ledger(4, 1, 10_000)]
    splits = splits_of("t", ranges_between(ledgers, EARLIEST, end_of(ledgers)), 250)
    assert [[(each.ledger_id, each.count) for each in split.ranges] for split in splits] == [
        *([(1, 10), (2, 10)], [(3, 25)], [(3, 25)], [(3, 25)], [(3, 25)]),
        [(4, 1)],
    ]


def test_a_start_that_was_deleted_and_one_that_never_was_are_told_apart_by_name(caplog: pytest.LogCaptureFixture) -> None:
    ledgers = [Ledger(5, 10, 1), Ledger(7, 3, 1)]
    with pytest.raises(DataLost, match="topic-a: the messages from 4:2 to before 5:0 were deleted"):
        check_start("topic-a", ledgers, Place(4, 2))
    with pytest.raises(NoSuchPosition, match="topic-a: position 7:4 is beyond the end of the topic, 7:3"):
        check_start("topic-a", ledgers, Place(7, 4))
    with pytest.raises(NoSuchPosition, match="topic-a: position 5:11 is behind the end of its ledger, which has 10 entries"):
        check_start("topic-a", ledgers, Place(5, 11))
    with pytest.raises(NoSuchPosition, match="position 0:0 is beyond the end"):
        check_start("topic-a", [], Place(0, 0))
    check_start("topic-a", ledgers, Place(4, 2), fails_on_data_loss=False)
    assert "from 4:2 to before 5:0 were deleted" in caplog.text
    for fine in (EARLIEST, LATEST, Place(5, 0), Place(5, 10), Place(6, 0), Place(7, 3)):
        check_start("topic-a", ledgers, fine)


def test_ledgers_closed_before_the_starting_time_are_not_read_but_for_what_clocks_may_be_ahead() -> None:
    ledgers = [Ledger(1, 1, 1, 100), Ledger(2, 1, 1, 200), Ledger(3, 1, 1)]
    assert [each.ledger_id for each in since(ledgers, 200, 0)] == [2, 3]
    assert [each.ledger_id for each in since(ledgers, 201, 0)] == [3]
    assert [each.ledger_id for each in since(ledgers, 230, 30)] == [2, 3]
    assert since(ledgers, 200, 100) == since(ledgers, None, 0) == ledgers


@pytest.mark.parametrize("text", ["", "5", "-1:0", "1:2:3", "1:-1", "one:2", "1:" + "9" * 19, "Latest"])
def test_text_that_is_not_a_position_parses_to_none(text: str) -> None:
    assert parse_place(text) is None


def test_places_have_one_form_there_and_back() -> None:
    assert parse_place("12:34") == Place(12, 34)
    assert str(Place(12, 34)) == "12:34"
    assert (parse_place("earliest"), parse_place("latest")) == (EARLIEST, LATEST)
