"""Parts of many ledgers that are sealed by one call, against a run sealed by itself, compiled and not."""

from array import array
from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from wire.kernels.entries import seal
from wire.run import EntryBatch, batch_of

MIXES = pytest.mark.parametrize("mixes", both("mixes"), ids=["plain", "installed"])


@dataclass
class Part:
    """Twin of `bookkeeper.write.parts.Part`, as far as the kernel looks."""

    mix: EntryBatch
    start: int
    count: int
    ledger_id: int
    first_entry_id: int
    last_add_confirmed: int
    length_before: int

    def sealed(self) -> bytes:
        """Run sealed by the kernel for runs."""
        at, end = self.mix.offsets[self.start], self.mix.offsets[self.start + self.count]
        offsets = array("I", [offset - at for offset in self.mix.offsets[self.start : self.start + self.count + 1]])
        alone = EntryBatch(bytearray(self.mix.buffer[at:end]), offsets, 36, self.count)
        seal(alone, self.ledger_id, self.first_entry_id, self.last_add_confirmed, self.length_before)
        return bytes(alone.buffer)


def parts_of(sizes: list[int]) -> list[Part]:
    """Parts of as many entries each, which fill one buffer."""
    mix = batch_of([bytes([number % 251]) * (number * 37 % 300) for number in range(sum(sizes))])
    return [
        Part(mix, sum(sizes[:index]), count, 3 + index % 4, 10 * index, 10 * index - 1, 1000 * index)
        for index, count in enumerate(sizes)
    ]


@MIXES
@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    more=st.lists(st.integers(1, 3), max_size=3),
    left_out=st.sets(st.integers(0, 7)),
)
def test_parts_are_sealed_as_runs_are(mixes: ModuleType, sizes: list[int], more: list[int], left_out: set[int]) -> None:
    """Sealing is in place for one whole buffer; in a new one when some are left out or come from another buffer."""
    parts = [part for index, part in enumerate(parts_of(sizes)) if index not in left_out or len(sizes) == 1] + parts_of(more)
    if not parts:
        return
    expected = [part.sealed() for part in parts]
    before = parts[0].mix
    is_whole = len({id(part.mix) for part in parts}) == 1 and sum(part.count for part in parts) == before.count
    sealed = mixes.seal_parts(parts)
    assert bytes(sealed.buffer) == b"".join(expected)
    assert sealed.offsets[-1] == len(sealed.buffer)
    assert sealed.count == sum(part.count for part in parts)
    assert (sealed.buffer is before.buffer) == is_whole
    for part, bytes_of_part in zip(parts, expected, strict=True):
        assert part.mix.buffer is sealed.buffer
        assert sealed.buffer[part.mix.offsets[part.start] : part.mix.offsets[part.start + part.count]] == bytes_of_part
    some = parts[::2]
    copied = mixes.mix_of(some)
    assert bytes(copied.buffer) == b"".join(expected[::2])
    assert list(copied.offsets)[-1] == len(copied.buffer)


@MIXES
def test_parts_that_do_not_fit_their_buffer_are_refused_before_anything_is_written(mixes: ModuleType) -> None:
    (one,) = parts_of([2])
    before = bytes(one.mix.buffer)
    short = EntryBatch(one.mix.buffer, array("I", [0, 40, 60]), 36, 2)
    long = EntryBatch(one.mix.buffer, array("I", [0, 40, 6000]), 36, 2)
    other = EntryBatch(one.mix.buffer, one.mix.offsets, 32, 2)
    for mix, start, count in ((one.mix, 0, 3), (one.mix, 0, 0), (one.mix, -1, 1), (short, 0, 2), (long, 0, 2), (other, 0, 2)):
        bad = Part(mix, start, count, 1, 0, -1, 0)
        for kernel in (mixes.seal_parts, mixes.mix_of):
            with pytest.raises(ValueError, match=r"entries|entry|offsets"):
                kernel([one, bad])
    assert bytes(one.mix.buffer) == before
