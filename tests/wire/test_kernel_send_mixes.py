"""wire.kernels.sends: frames of many producers to one mix, stored parts to receipts, compiled and not."""

from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from tests.wire.frame_samples import metadata, section, send
from wire.kernels.sends import send_receipts, take_sends
from wire.run import SendMix, SendRun

BOTH = pytest.mark.parametrize("sends", both("sends"), ids=["plain", "installed"])
HEADER_BYTES = 36
BYTES_MAX = 1 << 20


def take(sends: ModuleType, data: bytes, parts_max: int = 1000, entries_max: int = 1000) -> SendMix | None:
    mix: SendMix | None = sends.take_mix(data, 0, len(data), HEADER_BYTES, parts_max, entries_max, BYTES_MAX)
    return mix


def runs_of(data: bytes) -> list[SendRun]:
    """Runs that `take_sends` makes, up to the first frame that is not plain or has a wrong checksum."""
    runs, at = list[SendRun](), 0
    while (run := take_sends(data, at, len(data), HEADER_BYTES, 1000, BYTES_MAX)) and run.bad_checksum_index < 0:
        runs.append(run)
        at = run.end
    return runs


WRONG = bytearray(section(b"", b"body"))
WRONG[-1] ^= 1
FRAMES = st.one_of(
    st.builds(lambda who, at, size: send(who, at, section(metadata().SerializeToString(), bytes(size))),
              st.integers(1, 3), st.integers(0, 1 << 40), st.integers(0, 50)),
    st.builds(lambda who, at, many: send(who, at, num_messages=many), st.integers(1, 3), st.integers(0, 9), st.integers(1, 9)),
    st.builds(lambda who: send(who, 3, is_chunk=True), st.integers(1, 3)),
    st.builds(lambda who: send(who, 4, highest_sequence_id=9), st.integers(1, 3)),
    st.builds(lambda who: send(who, 5, bytes(WRONG)), st.integers(1, 3)),
)  # fmt: skip


@BOTH
@settings(max_examples=200, deadline=None)
@given(frames=st.lists(FRAMES, max_size=12), cut=st.integers(0, 40))
def test_the_parts_of_a_mix_are_the_runs_of_the_same_frames(sends: ModuleType, frames: list[bytes], cut: int) -> None:
    data = b"".join(frames)
    data = data[: max(0, len(data) - cut)]
    mix, runs = take(sends, data), runs_of(data)
    assert (mix is None) == (not runs)
    if mix is not None:
        assert [mix.run(part) for part in range(len(mix.producer_ids))] == runs
        assert [mix.part_bytes(part) for part in range(len(runs))] == [run.entries.payload_bytes for run in runs]
        assert list(mix.frames) == [0, *(run.end for run in runs)]


@BOTH
def test_a_mix_ends_at_its_bounds(sends: ModuleType) -> None:
    data = send(1, 0) + send(1, 1) + send(2, 0) + send(3, 0)
    bounded = take(sends, data, parts_max=2)
    assert bounded is not None
    assert (list(bounded.producer_ids), list(bounded.starts)) == ([1, 2], [0, 2, 3])
    assert bounded.frames[-1] == len(data) - len(send(3, 0))
    short = take(sends, data, entries_max=1)
    assert short is not None
    assert (list(short.producer_ids), list(short.starts)) == ([1], [0, 1])


class Stored(NamedTuple):
    sends: SendMix
    place: int
    ledger_id: int
    first_entry_id: int


@BOTH
def test_receipts_of_parts_are_those_of_their_runs(sends: ModuleType) -> None:
    first = take(sends, send(1, 7) + send(1, 8, highest_sequence_id=9) + send(2, 0))
    second = take(sends, send(300, 1 << 40))
    assert first is not None
    assert second is not None
    parts = [Stored(second, 0, 1 << 50, 70_000), Stored(first, 1, 5, 0), Stored(first, 0, 6, 127)]
    expected = [send_receipts(each.sends.run(each.place), each.ledger_id, each.first_entry_id) for each in parts]
    assert sends.part_receipts(parts) == b"".join(expected)
    assert sends.part_receipts([]) == b""


@BOTH
def test_places_outside_the_buffer_are_refused(sends: ModuleType) -> None:
    with pytest.raises(ValueError, match="header bytes"):
        sends.take_mix(b"12", 0, 3, HEADER_BYTES, 1, 1, BYTES_MAX)
