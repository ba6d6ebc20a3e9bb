"""Memory is used again when nothing refers to any part of it any more, and never before."""

import numpy
import pyarrow

from pipeline.pyspark_pulsar.decode.rooms import Rooms

MB = 1 << 20


def place(octets: object) -> int:
    assert isinstance(octets, numpy.ndarray)
    return int(octets.ctypes.data)


def test_a_room_is_used_again_when_it_is_free() -> None:
    rooms = Rooms(2)
    first = rooms.of(MB)
    was = place(first)
    second = rooms.of(MB)
    assert place(second) != was
    del first
    assert place(rooms.of(MB)) == was


def test_a_room_is_not_reused_while_an_array_holds_a_part_of_it() -> None:
    rooms = Rooms(2)
    held = [rooms.of(MB)[10:20], rooms.of(MB).view(numpy.int64).reshape(2, -1)]
    column = pyarrow.Array.from_buffers(pyarrow.uint8(), 3, [None, pyarrow.py_buffer(rooms.of(MB))])
    held_places = {place(each) & -4096 for each in held}
    fresh = [rooms.of(MB) for _ in range(3)]
    fresh[0][:] = 7
    assert not held_places & {place(each) & -4096 for each in fresh}
    assert len({place(each) for each in fresh}) == 3
    assert column.buffers()[1].address not in {place(each) for each in fresh}


def test_a_room_that_is_much_too_large_is_not_taken_and_no_more_than_some_are_kept() -> None:
    rooms = Rooms(2)
    was = place(rooms.of(8 * MB))
    small = rooms.of(MB)
    assert not was <= place(small) < was + 8 * MB
    assert len(small) == MB
    assert len(rooms.of(10)) == 10
