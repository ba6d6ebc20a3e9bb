"""Giving memory back to the system."""

from pathlib import Path

import pytest

from ports import allocator

PIECES, PIECE_BYTES = 2000, 32 << 10


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.mark.skipif(allocator._trim is None, reason="the C library has no such call")
def test_free_memory_between_used_pieces_is_given_back() -> None:
    pieces: list[bytes | None] = [bytes([number % 255 + 1]) * PIECE_BYTES for number in range(PIECES)]
    full = resident_bytes()
    for number in range(PIECES):
        if number % 20:
            pieces[number] = None
    allocator.give_back_free_memory()
    assert full - resident_bytes() > PIECES * PIECE_BYTES // 2
    assert sum(piece is not None for piece in pieces) == PIECES // 20


def test_giving_back_memory_without_the_trim_call_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_trim", None)
    allocator.give_back_free_memory()
