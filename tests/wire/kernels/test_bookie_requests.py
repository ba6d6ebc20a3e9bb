"""wire.kernels.bookie_requests: frames of adds and reads to runs and back, compiled and not."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.bookie.bookie_samples import KEY, add, entry, frame, read
from tests.wire.both_kernels import both
from tests.wire.kernels.bookie_runs import a_run, stored
from wire.bookie import version2
from wire.bookie.frames import next_frame
from wire.bookie.requests import Add, Read
from wire.bookie.runs import AddRun, ReadRun

REQUESTS = pytest.mark.parametrize("requests", both("bookie_requests"), ids=["plain", "installed"])
MAX = 5 << 20
HIGHEST = (1 << 63) - 1


def take_adds(requests: ModuleType, data: bytes, entries_max: int = 1000, frame_bytes_max: int = MAX) -> AddRun | None:
    run: AddRun | None = requests.take_adds(data, 0, len(data), entries_max, frame_bytes_max)
    return run


@REQUESTS
def test_consecutive_adds_become_one_run(requests: ModuleType) -> None:
    data = b"".join(add(7, 5 + index, b"x" * index) for index in range(6))
    run = take_adds(requests, data)
    assert run is not None
    assert (run.header, run.master_key, run.end) == (0x02010000, KEY, len(data))
    assert (run.entries.ledger_id, run.entries.first_entry_id, run.entries.header_bytes) == (7, 5, 32)
    assert stored(run.entries) == [entry(7, 5 + index, b"x" * index, 4 + index) for index in range(6)]


@REQUESTS
@pytest.mark.parametrize(
    "other",
    [add(8, 6), add(7, 7), add(7, 5), add(7, 6, flags=2), add(7, 6, key=KEY[::-1]), read(7, 6), add(7, 6)[:-1]],
    ids=["ledger", "gap", "again", "flags", "key", "opcode", "unfinished"],
)
def test_a_run_of_adds_ends_where_anything_changes(requests: ModuleType, other: bytes) -> None:
    run = take_adds(requests, add(7, 5) + other)
    assert run is not None
    assert (run.entries.count, run.end) == (1, len(add(7, 5)))


@REQUESTS
@pytest.mark.parametrize(
    "data",
    [
        add(7, 5)[:-1],
        add(7, 5, flags=1),
        add(7, 5, flags=8),
        add(7, 5, flags=256),
        add(-1, 5),
        add(7, -1),
        frame(add(7, 5)[4:32] + b"short"),
        b"\xff\xff\xff\xff" + add(7, 5)[4:],
        read(7, 5),
        b"",
    ],
)
def test_a_request_that_is_not_a_plain_add_is_not_taken(requests: ModuleType, data: bytes) -> None:
    assert take_adds(requests, data) is None


@REQUESTS
def test_bounds_of_adds_are_kept(requests: ModuleType) -> None:
    data = add(7, 0) + add(7, 1)
    run = take_adds(requests, data, entries_max=1)
    assert run is not None
    assert run.entries.count == 1
    assert take_adds(requests, data, frame_bytes_max=len(add(7, 0)) - 1) is None
    last = take_adds(requests, add(7, HIGHEST) + add(7, 0))
    assert last is not None
    assert (last.entries.first_entry_id, last.entries.count) == (HIGHEST, 1)


@REQUESTS
def test_reads_of_consecutive_entries_become_one_run(requests: ModuleType) -> None:
    data = b"".join(read(9, 100 + index) for index in range(50))
    assert requests.take_reads(data, 0, len(data), 1000) == ReadRun(0x02020000, 9, 100, 50, len(data))
    assert requests.take_reads(data, 0, len(data), 3) == ReadRun(0x02020000, 9, 100, 3, 72)
    assert requests.take_reads(read(9, 1) + read(9, 3), 0, 48, 9) == ReadRun(0x02020000, 9, 1, 1, 24)
    for other in (read(9, 1, flags=1, key=KEY), read(9, -1), read(-9, 1), read(9, 1)[:-1], add(9, 1)):
        assert requests.take_reads(other, 0, len(other), 9) is None


@REQUESTS
@given(data=st.binary(max_size=80), first=st.integers(0, 3), count=st.integers(1, 4), recovery=st.booleans())
def test_kernels_take_what_the_slow_path_reads(
    requests: ModuleType, data: bytes, first: int, count: int, recovery: bool
) -> None:
    flags = 2 if recovery else 0
    buffer = b"".join(add(1, first + index, data, flags=flags) for index in range(count)) + read(1, first) + data
    run = take_adds(requests, buffer)
    assert run is not None
    at, slow = 0, []
    while at < run.end:
        found = next_frame(buffer, at, len(buffer), MAX)
        assert found is not None
        body, at = found
        operation = version2.decode(body).operation
        assert isinstance(operation, Add)
        assert (operation.master_key, operation.recovery) == (run.master_key, recovery)
        slow += stored(operation.entries)
    assert (stored(run.entries), run.entries.count) == (slow, count)
    reads = requests.take_reads(buffer, run.end, len(buffer), 10)
    found = next_frame(buffer, at, len(buffer), MAX)
    assert found is not None
    assert version2.decode(found[0]).operation == Read(reads.ledger_id, reads.first_entry_id)


@REQUESTS
@given(data=st.binary(max_size=200), start=st.integers(0, 100))
def test_any_bytes_are_taken_or_left_and_never_beyond_their_end(requests: ModuleType, data: bytes, start: int) -> None:
    start = min(start, len(data))
    for taken in (requests.take_adds(data, start, len(data), 10, MAX), requests.take_reads(data, start, len(data), 10)):
        assert taken is None or start < taken.end <= len(data)


@REQUESTS
def test_a_client_writes_what_a_bookie_takes(requests: ModuleType) -> None:
    run = a_run(3, 10, [b"", b"a", b"bb" * 500])
    data = requests.add_requests(run, 0x02010002, KEY)
    taken = take_adds(requests, data)
    assert taken is not None
    assert (taken.header, taken.master_key, taken.end) == (0x02010002, KEY, len(data))
    assert stored(taken.entries) == stored(run)
    part = run.entries(11, 2)
    assert requests.add_requests(part, 0x02010002, KEY) == data[60:]
    assert requests.read_requests(0x02020000, 9, 100, 2) == read(9, 100) + read(9, 101)
    with pytest.raises(ValueError, match="master key"):
        requests.add_requests(run, 0x02010000, b"short")
