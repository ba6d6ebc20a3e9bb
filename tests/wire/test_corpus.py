"""Corpus of the fuzzer (see fuzz_frames.py), read again by the compiled and the plain kernels."""

import pathlib
from types import ModuleType

import pytest

from tests.wire.both_kernels import installed, plain
from tests.wire.fuzz_frames import examine

CORPUS = sorted((pathlib.Path(__file__).parent / "corpus").iterdir())
KERNELS = [tuple(load(name) for name in ("sends", "acks", "metadata")) for load in (plain, installed)]


@pytest.mark.parametrize("kernels", KERNELS, ids=["plain", "installed"])
def test_the_corpus_is_read_without_surprise(kernels: tuple[ModuleType, ModuleType, ModuleType]) -> None:
    frames = sum(examine(path.read_bytes(), *kernels) for path in CORPUS)
    assert frames > len(CORPUS) // 4


def test_the_corpus_reaches_runs_of_both_kinds() -> None:
    sends, acks, _ = KERNELS[0]
    streams = [path.read_bytes() for path in CORPUS]
    assert any(sends.take_sends(data, 0, len(data), 36, 9) for data in streams)
    assert any(acks.take_acks(data, 0, len(data)) for data in streams)
