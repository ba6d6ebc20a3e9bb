"""Weights of bookies by their free disk space."""

import asyncio
from collections import Counter
from random import Random

import pytest

from bookkeeper.placement.disk_weights import DiskWeights, weights_by_free_space
from bookkeeper.placement.rack_placement import AnyPlace, SpreadPlacement, choose_ensemble
from bookkeeper.ports import BookieClient, DiskSpace
from tests.bookkeeper.fake_bookies import FakeBookie
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode, BookieError


def test_a_weight_is_the_free_space_with_a_bound_above_and_one_below() -> None:
    assert weights_by_free_space({"a": 10, "b": 20, "c": 30}) == {"a": 10, "b": 20, "c": 30}
    assert weights_by_free_space({"a": 10, "b": 20, "c": 3000}) == {"a": 10, "b": 20, "c": 60}
    assert weights_by_free_space({"a": 0, "b": 20, "c": 30}) == {"a": 20, "b": 20, "c": 30}
    assert weights_by_free_space({"a": 0, "b": 0}) == {"a": 1, "b": 1}
    assert weights_by_free_space({"a": 0, "b": 0, "c": 5}) == {"a": 5, "b": 5, "c": 5}
    assert weights_by_free_space({}) == {}


@pytest.mark.parametrize("scale", [1.0, 1e12])
def test_bookies_are_chosen_as_often_as_their_weights_say(scale: float) -> None:
    rng, weights = Random(1), {"a": 1 * scale, "b": 2 * scale, "c": 3 * scale}
    drawn = Counter(choose_ensemble(weights, 1, rng, weights.__getitem__)[0] for _ in range(6000))
    assert [drawn[name] for name in "abc"] == pytest.approx([1000, 2000, 3000], rel=0.1)
    replaced = Counter(AnyPlace(rng, weights.__getitem__).replacement((), 0, 1, list(weights)) for _ in range(6000))
    assert [replaced[name] for name in "abc"] == pytest.approx([1000, 2000, 3000], rel=0.1)
    spread = SpreadPlacement({"a": "/x", "b": "/y", "c": "/y"}.__getitem__, 2, rng, weight_of=weights.__getitem__)
    partner = Counter(name for _ in range(3000) for name in spread.ensemble(weights, 2, 2) if name != "a")
    assert partner["c"] > 1.2 * partner["b"], "as the racks say first, then as the weights do"


class Disk(FakeBookie):
    """Tells how much is free; `asked` times."""

    def __init__(self, free_bytes: int) -> None:
        super().__init__()
        self.free_bytes, self.asked = free_bytes, 0

    async def disk_space(self) -> DiskSpace:
        self.asked += 1
        if "disk_space" in self.failures:
            raise BookieError(BookieCode.EIO, -1)
        return DiskSpace(1000, self.free_bytes)

    add_deferred = force = write_lac = read_lac = wait_lac = list_entries = FakeBookie.last_entry_id


def test_bookies_are_asked_for_their_disk_again_and_new_ones_soon() -> None:
    async def scenario() -> None:
        disks = {"a": Disk(10), "b": Disk(20), "c": Disk(20)}
        disks["c"].failures["disk_space"] = BookieCode.EIO
        bookies: dict[str, BookieClient] = {**disks, "plain": FakeBookie()}
        weights = DiskWeights(bookies, interval_seconds=3600, retry_seconds=60)
        assert weights.weight_of("a") == weights.weight_of("b") == 1
        weights.open()
        await asyncio.sleep(10)
        assert [weights.weight_of(name) for name in ("a", "b", "c", "plain")] == [10, 20, 10, 10]
        disks["c"].failures.clear()
        bookies["d"] = disks["d"] = Disk(30)
        await asyncio.sleep(60)
        assert [weights.weight_of(name) for name in ("c", "d")] == [20, 30]
        disks["a"].free_bytes = 15
        await asyncio.sleep(3600)
        assert weights.weight_of("a") == 15
        assert [disks[name].asked for name in "abcd"] == [2, 2, 3, 2]
        await weights.close()
        await weights.close()

    on_loop(lambda _: scenario())
