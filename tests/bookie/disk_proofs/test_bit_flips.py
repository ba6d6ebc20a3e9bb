"""Bits that change in the files of a bookie: detected, never served, and healed from replicas."""

import asyncio
from pathlib import Path

import pytest

from tests.bookie.disk_proofs.bit_flips import heal, on_files

ROUNDS = 10


@pytest.mark.parametrize("kind", ["*.journal", "*.log", "*.index", "*.ledgers", "checkpoint", "VERSION"])
def test_damage_is_detected_and_never_served(tmp_path: Path, kind: str) -> None:
    found = asyncio.run(on_files(tmp_path, seed=3).run(kind, ROUNDS))
    assert found.total() == ROUNDS
    if kind in ("*.journal", "*.ledgers", "checkpoint"):
        assert found["refused to start"]
    if kind == "*.log":
        assert found["detected"]
    if kind == "*.index":
        assert found["harmless"] == ROUNDS  # it is made again from its entry log


def test_a_scrub_heals_damage_from_replicas(tmp_path: Path) -> None:
    rounds = on_files(tmp_path, seed=4)
    healed = [asyncio.run(heal(rounds.directory, rounds.chance)) for _ in range(ROUNDS // 2)]
    assert any(healed)
