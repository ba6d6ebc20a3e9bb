"""wire.kernels.mixes, and what takes mixes in bookie_requests, against the same thing said simply, compiled and not."""

from array import array
from itertools import accumulate, pairwise
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.bookie.bookie_samples import KEY, add, answer, entry, read
from tests.wire.both_kernels import both
from wire.bookie.runs import AddMix
from wire.run import EntryMix

MIXES = pytest.mark.parametrize("mixes", both("mixes"), ids=["plain", "installed"])
REQUESTS = pytest.mark.parametrize("requests", both("bookie_requests"), ids=["plain", "installed"])
MAX = 5 << 20
WRITABLE = dict.fromkeys(range(1, 100), KEY)
Place = tuple[int, int]
places = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=30)


def take(
    requests: ModuleType, data: bytes, writable: dict[int, bytes] | None = None, frame_bytes_max: int = MAX
) -> AddMix | None:
    mix: AddMix | None = requests.take_mix(data, 0, len(data), frame_bytes_max, WRITABLE if writable is None else writable)
    return mix


def payload(number: int) -> bytes:
    return b"%d" % number * (1 + number % 3)


def a_mix(wanted: list[Place]) -> EntryMix:
    entries = [entry(ledger_id, entry_id, payload(number)) for number, (ledger_id, entry_id) in enumerate(wanted)]
    return EntryMix(b"".join(entries), array("I", accumulate(map(len, entries), initial=0)))


def is_run(wanted: list[Place]) -> bool:
    return wanted[:4] == [(wanted[0][0], wanted[0][1] + index) for index in range(4)]


@REQUESTS
@settings(deadline=None)
@given(wanted=places, torn=st.integers(0, 30))
def test_whole_adds_are_taken_unless_they_begin_with_a_run(requests: ModuleType, wanted: list[Place], torn: int) -> None:
    data = b"".join(add(ledger_id, entry_id, payload(number)) for number, (ledger_id, entry_id) in enumerate(wanted))
    mix = take(requests, data + add(6, 0)[:torn])
    if is_run(wanted):
        assert mix is None
        return
    assert mix is not None
    assert (mix.header, mix.master_key, mix.end) == (0x02010000, KEY, len(data))
    stored = [entry(ledger, place, payload(number), place - 1) for number, (ledger, place) in enumerate(wanted)]
    assert bytes(mix.entries.buffer) == b"".join(stored)
    assert list(mix.entries.offsets) == list(accumulate(map(len, stored), initial=0))
    assert mix.entries.ledger_id == wanted[0][0]


@REQUESTS
@pytest.mark.parametrize(
    "other",
    [
        add(3, 6, flags=2),
        add(3, 6, flags=4),
        add(3, 6, key=KEY[::-1]),
        add(100, 0),
        read(3, 6),
        add(3, 6)[:-1],
        add(3, 6, b"x" * 900),
    ],
    ids=["recovery", "priority", "key", "not writable", "opcode", "unfinished", "oversize"],
)
def test_a_mix_ends_before_what_is_not_plain(requests: ModuleType, other: bytes) -> None:
    plain = add(1, 5) + add(2, 8)
    mix = take(requests, plain + other, frame_bytes_max=900)
    assert mix is not None
    assert (mix.entries.count, mix.end) == (2, len(plain))


@REQUESTS
def test_a_ledger_with_another_key_is_not_mixed(requests: ModuleType) -> None:
    data = add(1, 5) + add(2, 8) + add(3, 1)
    assert take(requests, data, {1: KEY[::-1], 2: KEY, 3: KEY}) is None
    mix = take(requests, data, {1: KEY, 2: KEY, 3: b""})
    assert mix is not None
    assert mix.entries.count == 2
    assert take(requests, data, {}) is None
    assert take(requests, b"") is None


@REQUESTS
def test_fewer_entries_than_a_run_are_a_mix_though_they_are_consecutive(requests: ModuleType) -> None:
    data = [add(1, 5), add(1, 6), add(1, 7), add(1, 8)]
    for count in (1, 2, 3):
        mix = take(requests, b"".join(data[:count]) + data[count][:20])
        assert mix is not None
        assert mix.entries.count == count
    assert take(requests, b"".join(data)) is None


@REQUESTS
def test_positions_outside_of_the_buffer_are_refused(requests: ModuleType) -> None:
    for start, end in ((-1, 10), (0, 100_000)):
        with pytest.raises(ValueError, match="of"):
            requests.take_mix(add(1, 1), start, end, MAX, WRITABLE)


@MIXES
@settings(deadline=None)
@given(wanted=st.lists(places, min_size=1, max_size=3))
def test_runs_are_by_ledger_in_the_order_of_arrival(mixes: ModuleType, wanted: list[list[Place]]) -> None:
    came: dict[int, list[tuple[int, bytes]]] = {}
    for part in wanted:
        for number, (ledger_id, entry_id) in enumerate(part):
            came.setdefault(ledger_id, []).append((entry_id, entry(ledger_id, entry_id, payload(number))))
    runs = mixes.runs_of([a_mix(part) for part in wanted])
    found: dict[int, list[tuple[int, bytes]]] = {}
    for run in runs:
        assert run.header_bytes == 32
        for index in range(run.count):
            data = bytes(run.buffer[run.offsets[index] : run.offsets[index + 1]])
            found.setdefault(run.ledger_id, []).append((run.first_entry_id + index, data))
    assert found == came
    assert list(found) == list(came)
    breaks = sum(1 for entries in came.values() for one, two in pairwise(entries) if two[0] != one[0] + 1)
    assert len(runs) == len(came) + breaks, "as few as can be"


@MIXES
@given(wanted=places)
def test_each_entry_is_answered_in_its_place(mixes: ModuleType, wanted: list[Place]) -> None:
    mix = a_mix(wanted)
    assert mixes.mix_responses(mix, 0x02010000, 104) == b"".join(answer(1, 104, *place) for place in wanted)
    assert list(mixes.ledgers_of(mix)) == list(dict.fromkeys(ledger_id for ledger_id, _ in wanted))


@MIXES
def test_offsets_that_do_not_fit_are_refused(mixes: ModuleType) -> None:
    good = a_mix([(1, 1), (2, 2)])
    short = EntryMix(good.buffer[:-1], good.offsets)
    shifted = EntryMix(good.buffer, array("I", [1, *good.offsets[1:]]))
    narrow = EntryMix(good.buffer, array("I", [0, 10, good.offsets[-1]]))
    empty = EntryMix(b"", array("I", [0]))
    for bad in (short, shifted, narrow, empty):
        for use in (lambda bad: mixes.mix_responses(bad, 0, 0), mixes.ledgers_of, lambda bad: mixes.runs_of([good, bad])):
            with pytest.raises(ValueError, match=r"mix|offsets"):
                use(bad)
