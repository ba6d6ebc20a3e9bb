"""How a namespace is cut, and split, over REST."""

import pytest

from broker.service.bundles import Bundles
from broker.service.lookups import Advertised, Answer
from broker.service.topic_name import NamespaceName
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.service.houses import TOPICS, House, a_cluster
from tests.broker.service.houses import play as play_cluster

NAMESPACE = "/admin/v2/namespaces/public/default"
DEFAULT = NamespaceName("public", "default")


def test_a_standalone_tells_how_its_namespace_was_made_and_splits_nothing() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.get(f"{NAMESPACE}/bundles")).json == {
            "boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"],
            "numBundles": 4,
        }
        answer = await world.call("PUT", f"{NAMESPACE}/0x00000000_0x40000000/split")
        assert answer.status == 405
        assert (await world.call("GET", "/admin/v2/namespaces/public/none/bundles")).status == 404

    play(scenario)


@pytest.mark.parametrize(
    ("query", "body", "status", "reason"),
    [
        ("?splitAlgorithmName=by_taste", None, 406, "supported algorithms are [range_equally_divide, topic"),
        ("?splitAlgorithmName=specified_positions_divide", {"a": 1}, 400, "Expected `array | null`, got `object`"),
    ],
)  # fmt: skip
def test_a_split_that_cannot_be_asked_for(query: str, body: object, status: int, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.call("PUT", f"{NAMESPACE}/0x00000000_0x40000000/split{query}", body)
        assert answer.status == status
        assert reason in answer.refused[1]

    play(scenario)


async def loaded(house: House) -> None:
    for topic in TOPICS:
        await house.follow(topic, {house.advertised.broker_url: house})
        await house.load(topic)


async def cut_of(house: House) -> Bundles:
    cut = await house.service.owners.cut(DEFAULT)
    assert cut is not None
    return cut


def test_a_split_by_topics_halves_them() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await loaded(house)
            bundle = (await cut_of(house)).of(TOPICS[0])
            before = [topic for topic in TOPICS if bundle.covers(topic)]
            await house.service.splits.split(DEFAULT, bundle.range, "topic_count_equally_divide")
            cut = await cut_of(house)
            halves = [cut.of(topic) for topic in before]
            assert abs(2 * halves.count(halves[0]) - len(before)) <= 1

    play_cluster(scenario)


def test_the_largest_bundle_is_the_one_with_the_most_topics() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await loaded(house)
            before = await cut_of(house)
            counts = {bundle: sum(bundle.covers(topic) for topic in TOPICS) for bundle in before.all()}
            await house.service.splits.split(DEFAULT, "LARGEST")
            gone = set(before.all()) - set((await cut_of(house)).all())
            assert [counts[bundle] for bundle in gone] == [max(counts.values())]

    play_cluster(scenario)


def test_a_split_at_positions() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await house.service.splits.split(DEFAULT, "0x00000000_0x40000000", "specified_positions_divide", [7, 3])
            assert (await cut_of(house)).boundaries[:4] == (0, 3, 7, 0x40000000)

    play_cluster(scenario)


def test_a_split_is_sent_on_to_the_owner() -> None:
    async def scenario(world: AdminWorld) -> None:
        class Others(type(world.service.owners)):  # type: ignore[misc]
            async def split(self, *_: object, **__: object) -> Answer:
                return Answer(Advertised("pulsar://other:6650", "http://other:8080"))

        world.service.owners = Others()
        path = f"{NAMESPACE}/0x00000000_0x40000000/split?unload=true"
        answer = await world.call("PUT", path)
        assert (answer.status, answer.headers["location"]) == (307, f"http://other:8080{path}")

    play(scenario)
