"""Batches acknowledged in part: what is left of each is what a dictionary of integers says, however brokers page them."""

import numpy
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.partly import Parts, parts_in
from pipeline.pyspark_pulsar.positions import Place

_PLACES = st.builds(Place, st.integers(3, 5), st.integers(0, 6))
_WORDS = st.lists(st.sampled_from([0, 1, 0b1010, -1, -(2**63), 2**63, 2**64 - 1]), max_size=3)
_PAGES = st.lists(st.dictionaries(_PLACES, _WORDS, max_size=6), max_size=4)
_EVERY = [Place(ledger, entry) for ledger in range(2, 7) for entry in range(8)]
_MESSAGES = 200


def twin(pages: list[dict[Place, list[int]]]) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for page in pages:
        for place, words in page.items():
            found[place] = sum((word & (2**64 - 1)) << 64 * at for at, word in enumerate(words))
    return found


def told(pages: list[dict[Place, list[int]]]) -> Parts:
    return parts_in({f"{place.ledger_id}:{place.entry_id}": words for place, words in page.items()} for page in pages)


def in_full(parts: Parts, places: list[Place]) -> dict[Place, int]:
    """Parts of the places that have any, one integer each."""
    ledgers, entries = (numpy.array([each[at] for each in places], numpy.int64) for at in (0, 1))
    found = {}
    for place, batch in zip(places, parts.of_entries(ledgers, entries).tolist(), strict=True):
        if batch >= 0:
            bits = parts.are_left(numpy.full(_MESSAGES, batch), numpy.arange(_MESSAGES))
            found[place] = sum(1 << at for at in numpy.flatnonzero(bits).tolist())
    return found


@given(_PAGES)
def test_the_last_page_decides_which_messages_of_a_batch_are_left(pages: list[dict[Place, list[int]]]) -> None:
    found = told(pages)
    assert in_full(found, _EVERY) == twin(pages)
    assert len(found) == len(twin(pages))


@given(_PAGES, _PLACES, _PLACES)
def test_a_task_has_its_own_alone(pages: list[dict[Place, list[int]]], one: Place, other: Place) -> None:
    first, last = sorted([one, other])
    own = told(pages).between(first, last)
    assert in_full(own, _EVERY) == {place: bits for place, bits in twin(pages).items() if first <= place <= last}
    assert own.words.base is None
    assert len(own.words) == int(own.bounds[-1])


def test_a_million_batches_are_a_few_arrays() -> None:
    """Batches are no objects: a batch of up to 64 messages costs 40 bytes, of which a task has its part."""
    pages = ({f"{ledger}:{entry}": [5] for entry in range(10_000)} for ledger in range(100))
    found = parts_in(pages)
    arrays = [found.ledger_ids, found.entry_ids, found.bounds, found.words]
    assert (len(found), sum(each.nbytes for each in arrays)) == (1_000_000, 32_000_008)
    assert len(found.between(Place(40, 100), Place(40, 199))) == 100
