"""Socket reads of several connections through one shared buffer come out as the bytes that went in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ports.network.read_buffer import KEPT_BYTES_MAX, READ_BYTES, ReadBuffer, SharedRoom


class Stream:
    """Frames are four bytes of length and that many bytes of one value."""

    def __init__(self, shared: SharedRoom) -> None:
        self.buffer = ReadBuffer(shared)
        self.frames: list[bytes] = []

    def read(self, data: bytes) -> None:
        while data:
            room = self.buffer.room()
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            view, end = self.buffer.filled(size)
            at = 0
            while end - at >= 4 and end - at - 4 >= (length := int.from_bytes(view[at : at + 4])):
                self.frames.append(bytes(view[at + 4 : at + 4 + length]))
                at += 4 + length
            self.buffer.keep(at)


SIZES = st.one_of(st.integers(0, 40), st.integers(KEPT_BYTES_MAX - 9, KEPT_BYTES_MAX + 9), st.integers(0, 3 * READ_BYTES))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), SIZES), max_size=8), st.lists(SIZES, min_size=1, max_size=12))
def test_frames_come_out_whole_however_they_are_cut(frames: list[tuple[int, int]], cuts: list[int]) -> None:
    shared = SharedRoom()
    streams = [Stream(shared), Stream(shared)]
    sent: list[list[bytes]] = [[], []]
    for number, (index, size) in enumerate(frames):
        sent[index].append(bytes([number + 1]) * size)
    rest = [b"".join(len(frame).to_bytes(4) + frame for frame in each) for each in sent]
    turn = 0
    while any(rest):
        size = cuts[turn % len(cuts)] + 1 + turn // 8  # so that it comes to an end
        index = turn % 2
        streams[index].read(rest[index][:size])
        rest[index] = rest[index][size:]
        turn += 1
    assert [stream.frames for stream in streams] == sent


def test_an_idle_connection_keeps_nothing() -> None:
    stream = Stream(SharedRoom())
    stream.read((300_000).to_bytes(4) + bytes(300_000))
    assert stream.buffer.kept_bytes == 0
    assert stream.buffer._own is None


def test_room_grows_with_what_came_and_not_with_what_was_promised() -> None:
    stream = Stream(SharedRoom())
    stream.read((1 << 30).to_bytes(4) + bytes(1000))
    assert len(stream.buffer.room()) <= READ_BYTES + KEPT_BYTES_MAX
    stream.read(bytes(1_000_000))
    assert stream.buffer.kept_bytes == 1_001_004
    assert len(stream.buffer.room()) < 2_000_000


def test_another_reader_in_between_is_noticed() -> None:
    shared = SharedRoom()
    one, two = ReadBuffer(shared), ReadBuffer(shared)
    one.room()
    two.room()
    with pytest.raises(AssertionError, match="somebody else"):
        one.filled(1)
