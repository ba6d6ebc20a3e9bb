"""The messages that a subscription has not acknowledged, as ranges: a naive set of entries says which they are."""

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.client.deliveries import parted
from pipeline.pyspark_pulsar.decode.rows import Rows, rows_of
from pipeline.pyspark_pulsar.holes import (
    Runs,
    Unacknowledged,
    is_all_told,
    of_ranges,
    runs_in,
    start_of,
    unacknowledged,
)
from pipeline.pyspark_pulsar.options import Between
from pipeline.pyspark_pulsar.partly import Parts, parts_in
from pipeline.pyspark_pulsar.positions import Ledger, LedgerRange, Place
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from tests.pipeline.sections import batch, block, single

COUNTS = {3: 6, 5: 1, 8: 9}
LEDGERS = [Ledger(ledger, count, 100 * count) for ledger, count in COUNTS.items()]
EVERY = [(ledger, entry) for ledger, count in COUNTS.items() for entry in range(count)]


def told(acknowledged: set[tuple[int, int]]) -> str:
    """Ranges as brokers report them: open at the start, closed at the end, and some across ledgers."""
    texts, run = [], list[tuple[int, int]]()
    for place in [*EVERY, (99, 0)]:
        if place in acknowledged:
            run.append(place)
        elif run:
            texts.append(f"({run[0][0]}:{run[0][1] - 1}..{run[-1][0]}:{run[-1][1]}]")
            run = []
    return f"[{','.join(texts)}]"


def left(ledgers: list[Ledger], cursor: dict[str, Any], ranges_max: int = 1000) -> Unacknowledged:
    done = runs_in([cursor["individuallyDeletedMessages"]], ledgers)
    return unacknowledged(ledgers, start_of(cursor), done, Parts(), ranges_max)


@given(st.integers(-1, len(EVERY) - 1), st.sets(st.sampled_from(EVERY)), st.sampled_from([1, 2, 1000]))
def test_the_unacknowledged_entries_are_planned_exactly_in_a_bounded_number_of_ranges(
    mark: int, acknowledged: set[tuple[int, int]], ranges_max: int
) -> None:
    place = EVERY[mark] if mark >= 0 else (3, -1)
    holes = {each for each in acknowledged if each > place}
    cursor = {"markDeletePosition": f"{place[0]}:{place[1]}", "individuallyDeletedMessages": told(holes)}
    found = left(LEDGERS, cursor, ranges_max)
    assert len(found.ranges) <= ranges_max + len(LEDGERS)
    entries = [
        (whole.ledger_id, entry)
        for whole in found.ranges
        for entry in range(whole.first_entry_id, whole.end_entry_id)
        if whole.ledger_id not in found.done or not found.done[whole.ledger_id].has(numpy.array([entry]))[0]
    ]
    assert entries == [each for each in EVERY if each > place and each not in holes]


def test_runs_that_pages_cut_are_one_and_the_longest_part_ranges() -> None:
    pages = ["[(8:0..8:2],(8:3..8:4]]", "[(8:4..8:7]]"]
    runs = runs_in(pages, LEDGERS)
    assert (runs[8].starts.tolist(), runs[8].ends.tolist()) == ([1, 4], [3, 8])
    found = unacknowledged(LEDGERS, Place(8, 0), runs, Parts(), ranges_max=1)
    assert [(each.first_entry_id, each.end_entry_id) for each in found.ranges] == [(0, 4), (8, 9)]
    assert found.done[8].has(numpy.arange(9)).tolist() == [entry in (1, 2) for entry in range(9)]
    kept = of_ranges(found, [found.ranges[0].part(2, 4)])
    assert (kept.done[8].starts.tolist(), kept.done[8].ends.tolist()) == ([1], [3])
    assert of_ranges(found, [found.ranges[1]]).done == {}


@pytest.mark.parametrize(
    ("more", "is_all"),
    [
        ({}, True),
        ({"totalNonContiguousDeletedMessagesRange": 1}, True),
        ({"totalNonContiguousDeletedMessagesRange": 20_000}, False),
        ({"holeSegments": {"inUse": True}, "totalNonContiguousDeletedMessagesRange": 1}, False),
        ({"partlyAcknowledged": {"batches": 1, "left": {"3:1": [1]}}}, True),
        ({"partlyAcknowledged": {"batches": 2, "left": {"3:1": [1]}}}, False),
    ],
)
def test_whether_internal_stats_have_all_holes_is_seen(more: dict[str, Any], is_all: bool) -> None:
    assert is_all_told({"individuallyDeletedMessages": "[(3:1..3:2]]", **more}) is is_all


def test_only_the_unacknowledged_messages_of_a_partly_acknowledged_batch_are_read() -> None:
    texts = [b"a", b"b", b"c", b"d"]
    found = rows_of(block(*(batch([single(each) for each in texts], number) for number in range(3))))
    ledger, entry = place_of(found, 1)
    wanted = Wanted(("value",), Between(), parts=parts_in([{f"{ledger}:{entry}": [0b1010]}]))
    assert wanted_batch(found, "t", wanted).column("value").to_pylist() == [*texts, b"b", b"d", *texts]
    done = {ledger: Runs(numpy.array([entry]), numpy.array([entry + 1])), ledger + 1: Runs(numpy.array([0]), numpy.array([99]))}
    assert wanted_batch(found, "t", Wanted(("value",), Between(), done=done)).column("value").to_pylist() == [*texts, *texts]


def place_of(rows: Rows, entry: int) -> tuple[int, int]:
    return int(rows.block.ledger_ids[entry]), int(rows.block.entry_ids[entry])


def test_a_block_is_parted_by_ranges() -> None:
    found = block(*(batch([single(b"x")], each) for each in range(10)))
    ranges = (LedgerRange(7, 1, 3, 10), LedgerRange(7, 6, 7, 10), LedgerRange(9, 0, 5, 10))
    kept, others = parted(found, ranges)
    assert (kept.entry_ids.tolist(), others.entry_ids.tolist()) == ([1, 2, 6], [0, 3, 4, 5, 7, 8, 9])
