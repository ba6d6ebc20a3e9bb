"""Offsets of a stream: batches, one after the other, take every entry once, within their limits, whatever came between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.errors import PipelineError
from pipeline.pyspark_pulsar.positions import EARLIEST, LATEST, Ledger, Place, end_of, ranges_between
from pipeline.pyspark_pulsar.stream_offsets import (
    Limit,
    admitted,
    backlog,
    begun,
    beyond_closed,
    cut_at,
    mirrored,
    offset_json,
    places_in,
)


def entries(ledgers: list[Ledger], start: Place, end: Place) -> list[Place]:
    found = ranges_between(ledgers, start, end)
    return [Place(each.ledger_id, entry) for each in found for entry in range(each.first_entry_id, each.end_entry_id)]


@given(
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 10) | st.none(),
    st.integers(1, 500) | st.none(),
)
def test_batches_one_after_the_other_take_every_entry_once(
    counts: list[list[int]], messages: int | None, size: int | None
) -> None:
    topics = {
        f"t{at}": [Ledger(3 * number + 2, count, 20 * count) for number, count in enumerate(of_topic)]
        for at, of_topic in enumerate(counts)
    }
    offset = offset_json({topic: begun(ledgers, EARLIEST) for topic, ledgers in topics.items()})
    taken: dict[str, list[Place]] = {topic: [] for topic in topics}
    for _ in range(200):
        starts = places_in(offset)
        ends = admitted(starts, {each: backlog(topics[each], starts[each]) for each in topics}, Limit(messages, size))
        count = 0
        for topic, end in ends.items():
            found = entries(topics[topic], starts[topic], end)
            taken[topic] += found
            count += len(found)
        assert messages is None or count <= messages + len(topics)
        assert size is None or count * 20 <= size + 20 * len(topics)
        if not count:
            break
        offset = offset_json({topic: beyond_closed(topics[topic], end) for topic, end in ends.items()})
    assert taken == {topic: entries(ledgers, EARLIEST, LATEST) for topic, ledgers in topics.items()}


def test_a_topic_without_a_ledger_is_read_from_its_first_message_once_it_has_one() -> None:
    start = places_in(offset_json({"t": begun([], EARLIEST)}))["t"]
    assert entries([Ledger(40, 2, 2)], start, LATEST) == [Place(40, 0), Place(40, 1)]
    assert begun([], LATEST) == EARLIEST


def test_the_end_of_a_closed_ledger_is_the_beginning_of_the_next_so_that_it_may_be_deleted() -> None:
    ledgers = [Ledger(1, 5, 5), Ledger(4, 0, 0), Ledger(6, 2, 2)]
    assert beyond_closed(ledgers, Place(1, 5)) == Place(6, 0)
    assert beyond_closed(ledgers, Place(1, 4)) == Place(1, 4)
    assert beyond_closed(ledgers, Place(6, 2)) == Place(6, 2)


def test_a_topic_as_it_was_when_it_ended_earlier() -> None:
    ledgers = [Ledger(1, 5, 50), Ledger(4, 10, 100), Ledger(6, 2, 2)]
    assert end_of(cut_at(ledgers, Place(4, 3))) == Place(4, 3)
    assert cut_at(ledgers, EARLIEST) == []


@pytest.mark.parametrize("offset", [{}, {"version": 2, "topics": {}}, {"version": 1, "topics": {"t": "5"}}])
def test_a_checkpoint_of_something_else_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="checkpoint"):
        places_in(offset)


def test_the_subscription_of_a_stream_keeps_the_last_entry_of_a_ledger_that_is_read_to_its_end() -> None:
    ledgers = [Ledger(3, 10, 100), Ledger(5, 1, 10), Ledger(8, 0, 0)]
    stands = {Place(3, 4): Place(3, 4), Place(3, 10): Place(3, 9), Place(5, 0): Place(5, 0), Place(5, 1): Place(5, 0)}
    same = {each: each for each in (Place(8, 0), Place(2, 7), EARLIEST)}
    assert {place: mirrored(ledgers, place) for place in stands | same} == stands | same
