"""Stored entries and batches: what compiled and plain kernels say of them is the same, and what digests and protobuf say."""

from array import array
from types import ModuleType
from typing import Any

import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.scripted_bookie import stored
from tests.pipeline.sections import PUBLISHED, batch, single, with_index
from tests.wire.both_kernels import both
from wire.kernels.octets import crc32c_joined

PLAIN, INSTALLED = both("plain_entries")
_SECTIONS = st.builds(
    batch,
    st.lists(st.binary(max_size=20).map(single), max_size=4),
    st.integers(0, 1 << 40),
    schema_version=st.binary(max_size=3),
)


def _places(parts: list[bytes]) -> list[memoryview]:
    ends = [sum(map(len, parts[: at + 1])) for at in range(len(parts))]
    starts = [end - len(part) for end, part in zip(ends, parts, strict=True)]
    return [memoryview(array("q", each)) for each in (starts, ends)]


def checked(module: ModuleType, parts: list[bytes], ledger_id: int, entry_ids: list[int]) -> tuple[bool, bytes]:
    marks = bytearray(len(parts))
    ids = memoryview(array("q", entry_ids))
    return module.check_stored(b"".join(parts), *_places(parts), ledger_id, ids, memoryview(marks)), bytes(marks)


def taken(module: ModuleType, parts: list[bytes], verifies: bool) -> list[list[int]] | None:
    columns = array("q", [0] * module.COLUMNS * len(parts))
    if not module.take_batches(b"".join(parts), *_places(parts), verifies, memoryview(columns)):
        return None
    return [columns[row :: len(parts)].tolist() for row in range(len(parts))]


@given(st.binary(max_size=300), st.binary(max_size=3000))
def test_the_checksum_of_two_pieces_is_that_of_the_whole(first: bytes, second: bytes) -> None:
    assert crc32c_joined(crc32c.crc32c(first), crc32c.crc32c(second), len(second)) == crc32c.crc32c(first + second)


@given(st.lists(_SECTIONS, min_size=1, max_size=4), st.booleans())
def test_sound_entries_are_sound_with_their_checksums(sections: list[bytes], indexed: bool) -> None:
    parts = [stored(7, at, with_index(each, at) if indexed else each) for at, each in enumerate(sections)]
    for module in (PLAIN, INSTALLED):
        assert checked(module, parts, 7, list(range(len(parts)))) == (True, b"\1" * len(parts))
        assert checked(module, parts, 8, list(range(len(parts)))) == (False, b"\0" * len(parts))
        assert checked(module, parts, 7, [each + 1 for each in range(len(parts))]) == (False, b"\0" * len(parts))


@given(_SECTIONS, st.integers(0, 1 << 20), st.integers(1, 255), st.integers(0, 1 << 20))
def test_no_octet_of_an_entry_can_change_and_be_sound(section: bytes, place: int, change: int, kept: int) -> None:
    entry = stored(7, 3, section)
    hurt = bytearray(entry)
    hurt[place % len(hurt)] ^= change
    for module in (PLAIN, INSTALLED):
        assert checked(module, [bytes(hurt)], 7, [3]) == (False, b"\0")
        assert checked(module, [entry[: kept % len(entry)]], 7, [3]) == (False, b"\0")


@given(_SECTIONS)
def test_a_checksum_that_was_wrong_before_the_entry_was_stored_is_told_apart(section: bytes) -> None:
    hurt = bytearray(section)
    hurt[2] ^= 1  # of the checksum inside: the digest is right
    for module in (PLAIN, INSTALLED):
        assert checked(module, [stored(7, 3, bytes(hurt))], 7, [3]) == (False, b"\1")
        assert taken(module, [bytes(hurt)], True) is None
        assert taken(module, [bytes(hurt)], False) == taken(module, [section], True) is not None


@given(st.lists(st.tuples(st.lists(st.binary(max_size=20), max_size=4), st.integers(0, 1 << 40), st.booleans()), min_size=1))
def test_batches_are_taken_with_their_numbers(found: list[tuple[list[bytes], int, bool]]) -> None:
    sections = [batch([single(each) for each in values], number) for values, number, _ in found]
    parts = [with_index(each, 5) if indexed else each for each, (_, _, indexed) in zip(sections, found, strict=True)]
    bodies = [sum(len(single(each)) for each in values) for values, _, _ in found]
    ends = _places(parts)[1].tolist()
    expected = [
        [end - body, len(values), PUBLISHED + number]
        for end, body, (values, number, _) in zip(ends, bodies, found, strict=True)
    ]
    for module in (PLAIN, INSTALLED):
        assert taken(module, parts, True) == expected


@given(st.lists(_SECTIONS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_both_kernels_take_any_bytes_alike(sections: list[bytes], chance: Any) -> None:
    parts = []
    for each in sections:
        hurt = bytearray(each)
        for _ in range(chance.randrange(4)):
            hurt[chance.randrange(len(hurt))] = chance.choice((0, 1, 2, 0x0E, 0x40, 0x58, 127, 128, 255))
        parts.append(bytes(hurt[: chance.randrange(len(hurt) + 1)] if chance.random() < 0.3 else hurt))
    for verifies in (True, False):
        assert taken(INSTALLED, parts, verifies) == taken(PLAIN, parts, verifies)
    ids = list(range(len(parts)))
    assert checked(INSTALLED, parts, 7, ids) == checked(PLAIN, parts, 7, ids)
    entries = [stored(7, at, each) for at, each in enumerate(parts)]
    assert checked(INSTALLED, entries, 7, ids) == checked(PLAIN, entries, 7, ids)
