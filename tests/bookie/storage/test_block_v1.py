"""Blocks of entry logs, version 1."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.storage.block_v1 import BLOCK_BYTES_MAX, DamagedBlock, block_size, decode_block, encode_block, plan_blocks
from tests.bookie.runs import entries_of, sealed


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 200_000), st.booleans()), min_size=1, max_size=8))
def test_blocks_hold_all_entries_in_order_within_their_bounds(plan: list[tuple[int, int, bool]]) -> None:
    runs, next_id = [], 0
    for count, size, gap in plan:
        next_id += 5 if gap else 0
        runs.append(sealed(1, next_id, count, size))
        next_id += count
    found: dict[int, bytes] = {}
    for together in plan_blocks(runs):
        buffers, size = encode_block(together)
        block = b"".join(buffers)
        assert len(block) == size == block_size(block)
        run = decode_block(block, check_data=True)
        assert run.first_entry_id not in found
        assert run.count == 1 or run.size_bytes <= BLOCK_BYTES_MAX
        assert list(found) == sorted(found)
        found.update(entries_of(run))
    assert found == {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}


def test_runs_that_follow_one_another_share_a_block() -> None:
    assert len(list(plan_blocks([sealed(1, first, 10, 100) for first in range(0, 1000, 10)]))) == 1
    assert len(list(plan_blocks([sealed(1, 0), sealed(1, 2)]))) == 2


def test_any_changed_bit_of_a_block_is_noticed() -> None:
    buffers, _ = encode_block([sealed(1, 0, 2, 10), sealed(1, 2, 1, 5).entries(2, 1)])
    good = b"".join(buffers)
    for bit in range(len(good) * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedBlock):
            decode_block(bytes(bad), check_data=True)
