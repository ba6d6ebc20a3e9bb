"""LARGEST while others cut the namespace too: what was the largest may be gone when it is to be cut."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from broker.service.addresses import Answer
from broker.service.errors import BundleNotFound
from broker.service.load.bundle_splits import LARGEST, LARGEST_ATTEMPTS_MAX, BundleSplits
from broker.service.load.settings import LoadSettings
from broker.service.load.splitting import cut_boundaries, in_two
from broker.service.ownership.bundles import Bundle, Bundles
from broker.service.ownership.namespace_bundles import CutChanged
from broker.service.ownership.owners import SoleOwner
from broker.service.topic_name import NamespaceName
from tests.broker.service.houses import TOPICS, a_cluster, play

DEFAULT = NamespaceName("public", "default")


def halves(cut: Bundles, bundle: Bundle) -> Sequence[int]:
    return cut_boundaries(cut.boundaries, bundle, in_two(bundle, []), 128)


def test_two_who_split_the_largest_at_a_time_both_do() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            for topic in TOPICS:
                await house.follow(topic, houses)
                await house.load(topic)
            before = await house.bundles.of(DEFAULT)
            both = [house.service.splits.split(DEFAULT, LARGEST) for _ in range(2)]
            assert await asyncio.gather(*both) == [None, None]
            after = await house.bundles.of(DEFAULT)
            assert len(after.all()) == len(before.all()) + 2
            assert all(house.service.lookup.owners.serves(topic) for topic in TOPICS)

    play(scenario)


class CutByOthers(SoleOwner):
    """`Owners` of a namespace whose bundle another broker cuts first, the first `times` times."""

    def __init__(self, cut: Bundles, times: int, failure: Callable[[Bundle], Exception] | None) -> None:
        self.now, self.times, self.failure = cut, times, failure
        self.asked: list[str] = []

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        return self.now

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        bundle = self.now.named(bundle_range)
        assert bundle is not None
        self.asked.append(bundle_range)
        if len(self.asked) <= self.times:
            self.now = Bundles(namespace, tuple(halves(self.now, bundle)))
            if self.failure is not None:
                raise self.failure(bundle)
        cuts(self.now, bundle)
        return None


FAILURES = [
    None,  # the cuts find that it is none of the namespace's any more
    lambda bundle: BundleNotFound(str(DEFAULT), bundle.range),
    lambda bundle: CutChanged(DEFAULT),
]


@pytest.mark.parametrize("failure", FAILURES, ids=["replaced", "not found", "cut changed"])
@pytest.mark.parametrize("times", [0, 1, LARGEST_ATTEMPTS_MAX - 1, LARGEST_ATTEMPTS_MAX])
def test_the_largest_is_looked_for_again_so_many_times(times: int, failure: Callable[[Bundle], Exception] | None) -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            owners = CutByOthers(await house.bundles.of(DEFAULT), times, failure)

            for topic in TOPICS:
                await house.follow(topic, houses)
                await house.load(topic)
            house.service.lookup.owners = owners
            splits = BundleSplits(LoadSettings(), house.service.catalogue, house.service.lookup)
            if times < LARGEST_ATTEMPTS_MAX:
                await splits.split(DEFAULT, LARGEST)
                assert len(owners.asked) == times + 1
            else:
                with pytest.raises(Exception, match=r"no bundle|not a bundle|changed by others"):
                    await splits.split(DEFAULT, LARGEST)
                assert len(owners.asked) == LARGEST_ATTEMPTS_MAX

    play(scenario)
