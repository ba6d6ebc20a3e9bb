"""The messages that a subscription has not acknowledged, as ranges: a naive set of entries says which they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.client.deliveries import parted
from pipeline.pyspark_pulsar.decode.rows import Rows, rows_of
from pipeline.pyspark_pulsar.errors import NoSuchPosition
from pipeline.pyspark_pulsar.holes import parts, unacknowledged
from pipeline.pyspark_pulsar.options import Between
from pipeline.pyspark_pulsar.positions import Ledger, LedgerRange, Place
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from tests.pipeline.sections import batch, block, single

COUNTS = {3: 6, 5: 1, 8: 9}
LEDGERS = [Ledger(ledger, count, 100 * count) for ledger, count in COUNTS.items()]
EVERY = [(ledger, entry) for ledger, count in COUNTS.items() for entry in range(count)]


def told(acknowledged: set[tuple[int, int]]) -> str:
    """As brokers tell ranges: open at the start, closed at the end, and some across ledgers."""
    texts, run = [], list[tuple[int, int]]()
    for place in [*EVERY, (99, 0)]:
        if place in acknowledged:
            run.append(place)
        elif run:
            texts.append(f"({run[0][0]}:{run[0][1] - 1}..{run[-1][0]}:{run[-1][1]}]")
            run = []
    return f"[{','.join(texts)}]"


@given(st.integers(-1, len(EVERY) - 1), st.sets(st.sampled_from(EVERY)))
def test_what_is_left_is_what_nobody_acknowledged(mark: int, acknowledged: set[tuple[int, int]]) -> None:
    place = EVERY[mark] if mark >= 0 else (3, -1)
    holes = {each for each in acknowledged if each > place}
    cursor = {"markDeletePosition": f"{place[0]}:{place[1]}", "individuallyDeletedMessages": told(holes)}
    found = unacknowledged("t", "s", LEDGERS, cursor)
    entries = [(each.ledger_id, entry) for each in found for entry in range(each.first_entry_id, each.end_entry_id)]
    assert entries == [each for each in EVERY if each > place and each not in holes]


def test_holes_that_are_not_all_told_are_refused() -> None:
    cursor = {
        "markDeletePosition": "3:0",
        "individuallyDeletedMessages": "[(3:1..3:2]]",
        "totalNonContiguousDeletedMessagesRange": 20_000,
    }
    with pytest.raises(NoSuchPosition, match=r"t: subscription s has 20000 ranges .* tells 1"):
        unacknowledged("t", "s", LEDGERS, cursor)


def test_of_a_batch_that_is_acknowledged_in_part_the_messages_that_are_left_are_wanted() -> None:
    cursor = {"partlyAcknowledged": {"batches": 2, "left": {"3:1": [0b1010], "5:0": [0, -(2**63)]}}}
    assert parts("t", "s", cursor) == {Place(3, 1): 0b1010, Place(5, 0): 1 << 127}
    assert parts("t", "s", {}) == {}
    cursor["partlyAcknowledged"]["batches"] = 3
    with pytest.raises(NoSuchPosition, match=r"t: subscription s has 3 batches .* tells 2"):
        parts("t", "s", cursor)
    texts = [b"a", b"b", b"c", b"d"]
    found = rows_of(block(*(batch([single(each) for each in texts], number) for number in range(3))))
    wanted = Wanted(("value",), Between(), parts={Place(*place_of(found, 1)): 0b1010})
    assert wanted_batch(found, "t", wanted).column("value").to_pylist() == [*texts, b"b", b"d", *texts]


def place_of(rows: Rows, entry: int) -> tuple[int, int]:
    return int(rows.block.ledger_ids[entry]), int(rows.block.entry_ids[entry])


def test_a_block_is_parted_by_ranges() -> None:
    found = block(*(batch([single(b"x")], each) for each in range(10)))
    ranges = (LedgerRange(7, 1, 3, 10), LedgerRange(7, 6, 7, 10), LedgerRange(9, 0, 5, 10))
    kept, others = parted(found, ranges)
    assert (kept.entry_ids.tolist(), others.entry_ids.tolist()) == ([1, 2, 6], [0, 3, 4, 5, 7, 8, 9])
