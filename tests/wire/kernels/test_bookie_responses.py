"""wire.kernels.bookie_responses: runs to frames of responses and back, compiled and not."""

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.bookie.bookie_samples import answer, entry, frame
from tests.wire.both_kernels import both
from tests.wire.kernels.bookie_runs import a_run, stored

RESPONSES = pytest.mark.parametrize("responses", both("bookie_responses"), ids=["plain", "installed"])
MAX = 5 << 20


@RESPONSES
def test_responses_are_those_of_the_slow_path(responses: ModuleType) -> None:
    assert responses.plain_responses(0x02010000, 104, 7, 5, 2) == answer(1, 104, 7, 5) + answer(1, 104, 7, 6)
    run = a_run(7, 5, [b"", b"abc"])
    expected = answer(2, 0, 7, 5, entry(7, 5, b"")) + answer(2, 0, 7, 6, entry(7, 6, b"abc"))
    assert responses.read_responses(run, 0x02020000) == expected
    assert responses.read_responses(run.entries(6, 1), 0x02020000) == answer(2, 0, 7, 6, entry(7, 6, b"abc"))
    assert responses.batched_entries(run) == frame(entry(7, 5, b"")) + frame(entry(7, 6, b"abc"))


@RESPONSES
def test_a_client_takes_responses_as_runs(responses: ModuleType) -> None:
    good = answer(1, 0, 7, 5) + answer(1, 0, 7, 6)
    for other in (answer(1, 0, 7, 8), answer(1, 0, 8, 7), answer(1, 104, 7, 7), answer(2, 0, 7, 7), answer(1, 0, 7, 7)[:-1]):
        taken = responses.take_added(good + other, 0, len(good + other))
        assert (taken.code, taken.ledger_id, taken.first_entry_id, taken.count, taken.end) == (0, 7, 5, 2, len(good))
    run = a_run(7, 5, [b"", b"abc"])
    data = responses.read_responses(run, 0x02020000)
    for other in (answer(2, 2, 7, 7), answer(2, 0, 8, 7, entry(8, 7)), answer(2, 0, 7, 7, entry(7, 7))[:-1], good):
        taken, end = responses.take_read(data + other, 0, len(data + other), 10, MAX)
        assert (stored(taken), taken.ledger_id, taken.first_entry_id, end) == (stored(run), 7, 5, len(data))
    assert responses.take_read(good, 0, len(good), 10, MAX) is None
    assert responses.take_added(data, 0, len(data)) is None


@RESPONSES
def test_entries_are_taken_up_to_their_number_and_the_size_of_a_frame(responses: ModuleType) -> None:
    data = responses.read_responses(a_run(7, 5, [b"one", b"two", b"three"]), 0x02020000)
    taken, end = responses.take_read(data, 0, len(data), 2, MAX)
    assert (taken.count, data[end:]) == (2, answer(2, 0, 7, 7, entry(7, 7, b"three")))
    frame_bytes = 28 + 32 + len(b"one")
    taken, _ = responses.take_read(data, 0, len(data), 10, frame_bytes)
    assert taken.count == 2, "the third frame is larger than may be"
    assert responses.take_read(data, 0, len(data), 10, frame_bytes - 1) is None


@RESPONSES
def test_places_outside_of_the_buffer_are_an_error(responses: ModuleType) -> None:
    data = answer(1, 0, 7, 5)
    for start, end in ((-1, 5), (0, len(data) + 1)):
        with pytest.raises(ValueError, match="bytes"):
            responses.take_added(data, start, end)
        with pytest.raises(ValueError, match="bytes"):
            responses.take_read(data, start, end, 10, MAX)


@RESPONSES
@settings(max_examples=50)
@given(data=st.binary(max_size=200), start=st.integers(0, 100))
def test_any_bytes_are_taken_or_left_and_never_beyond_their_end(responses: ModuleType, data: bytes, start: int) -> None:
    start = min(start, len(data))
    added = responses.take_added(data, start, len(data))
    assert added is None or start < added.end <= len(data)
    found = responses.take_read(data, start, len(data), 10, MAX)
    assert found is None or start < found[1] <= len(data)
