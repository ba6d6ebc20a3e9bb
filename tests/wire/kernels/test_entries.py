"""wire.kernels.entries: sealing and checking, compiled and not."""

from array import array
from types import ModuleType

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from wire.run import EntryBatch, EntryRun

PLAIN, INSTALLED = both("entries")
BOTH = pytest.mark.parametrize("entries", [PLAIN, INSTALLED], ids=["plain", "installed"])


def batch(payloads: list[bytes], header_bytes: int = 36) -> EntryBatch:
    offsets = array("I", [0])
    for payload in payloads:
        offsets.append(offsets[-1] + header_bytes + len(payload))
    return EntryBatch(bytearray(b"".join(bytes(header_bytes) + p for p in payloads)), offsets, header_bytes, len(payloads))


def run_of(sealed: EntryBatch, ledger_id: int, first_entry_id: int) -> EntryRun:
    return EntryRun(ledger_id, first_entry_id, sealed.buffer, sealed.offsets, sealed.header_bytes)


def naively_sealed(payloads: list[bytes], ledger_id: int, first: int, confirmed: int, length: int) -> bytes:
    out = b""
    for index, payload in enumerate(payloads):
        length += len(payload)
        header = b"".join(n.to_bytes(8, "big", signed=True) for n in (ledger_id, first + index, confirmed, length))
        out += header + crc32c.crc32c(header + payload).to_bytes(4, "big") + payload
    return out


@BOTH
def test_checksum_is_crc32c(entries: ModuleType) -> None:
    assert entries.checksum(b"123456789") == 0xE3069283
    assert entries.checksum(b"") == 0
    assert entries.checksum(memoryview(b"6789"), entries.checksum(bytearray(b"12345"))) == 0xE3069283


@given(st.binary(max_size=5000), st.integers(0, 40), st.integers(0, (1 << 32) - 1))
def test_every_length_and_alignment_has_the_checksum_of_the_library(data: bytes, start: int, seed: int) -> None:
    view = memoryview(data * 3)[start:]
    assert INSTALLED.checksum(view, seed) == crc32c.crc32c(view, seed) == PLAIN.checksum(view, seed)


@BOTH
@given(
    st.lists(st.binary(max_size=200), max_size=6),
    st.integers(0, (1 << 63) - 1),
    st.integers(0, 1 << 62),
    st.integers(-1, 1 << 62),
    st.integers(0, 1 << 62),
)
def test_seal_writes_bookkeepers_header(
    entries: ModuleType, payloads: list[bytes], ledger_id: int, first: int, confirmed: int, length: int
) -> None:
    made = batch(payloads)
    assert entries.seal(made, ledger_id, first, confirmed, length) == length + sum(map(len, payloads))
    assert made.buffer == naively_sealed(payloads, ledger_id, first, confirmed, length)
    assert entries.first_damaged(run_of(made, ledger_id, first)) == -1


@BOTH
@pytest.mark.parametrize("header_bytes", [32, 36])
def test_a_flipped_bit_is_damage_where_there_is_a_digest(entries: ModuleType, header_bytes: int) -> None:
    made = batch([b"first", b"second"], header_bytes)
    entries.seal(made, 5, 7, -1, 0)
    for bit in range(len(made.buffer) * 8):
        made.buffer[bit // 8] ^= 1 << bit % 8
        index = int(bit // 8 >= made.offsets[1])
        names_the_place = bit // 8 - made.offsets[index] < 16
        expected = index if header_bytes == 36 or names_the_place else -1
        assert entries.first_damaged(run_of(made, 5, 7)) == expected
        made.buffer[bit // 8] ^= 1 << bit % 8


@BOTH
def test_an_entry_of_another_place_is_damage(entries: ModuleType) -> None:
    made = batch([b"first", b"second"])
    entries.seal(made, 5, 7, -1, 0)
    assert entries.first_damaged(run_of(made, 6, 7)) == 0
    assert entries.first_damaged(run_of(made, 5, 8)) == 0
    assert entries.first_damaged(run_of(made, 5, 7).entries(8, 1)) == -1


@BOTH
def test_offsets_beyond_the_buffer_are_damage_and_never_read(entries: ModuleType) -> None:
    made = batch([b"first", b"second"])
    entries.seal(made, 5, 7, -1, 0)
    short = EntryRun(5, 7, bytes(made.buffer[:-1]), made.offsets)
    assert entries.first_damaged(short) == 1
    assert entries.first_damaged(EntryRun(5, 7, bytes(made.buffer), array("I", [0, 20, 90]))) == 0
    with pytest.raises(ValueError, match="offsets"):
        entries.seal(EntryBatch(bytearray(50), array("I", [0, 51]), 36, 1), 1, 1, 0, 0)
    with pytest.raises(ValueError, match="offsets"):
        entries.seal(EntryBatch(bytearray(50), array("I", [0, 35]), 36, 1), 1, 1, 0, 0)


@BOTH
def test_other_digests_are_not_the_kernels_business(entries: ModuleType) -> None:
    with pytest.raises(ValueError, match="40"):
        entries.seal(batch([b"x"], 40), 1, 1, 0, 0)
