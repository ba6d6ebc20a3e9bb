"""Bundles of a namespace over REST, and their splits."""

import pytest

from broker.service.addresses import Advertised
from broker.service.addresses import Answer as Elsewhere
from broker.service.ownership.bundles import Bundles, topic_hash
from broker.service.ownership.owners import OwnerOfAll, SoleOwner
from broker.service.topic_name import NamespaceName
from tests.broker.admin.admin_world import AdminWorld, Answer, play
from tests.broker.service.houses import TOPICS, House, a_cluster
from tests.broker.service.houses import play as play_cluster

NAMESPACE = "/admin/v2/namespaces/public/default"
DEFAULT = NamespaceName("public", "default")


def edges_of(answer: Answer) -> list[str]:
    edges: list[str] = answer.json["boundaries"]
    assert answer.json["numBundles"] == len(edges) - 1
    return edges


def test_a_standalone_splits_its_bundles_as_it_is_asked_and_serves_their_topics_on() -> None:
    """Bundles after each request are those of Apache."""

    async def scenario(world: AdminWorld) -> None:
        for name in "abcdefgh":
            await world.done("PUT", name)
        whole = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
        assert edges_of(await world.get(f"{NAMESPACE}/bundles")) == whole
        loaded = dict(world.service.catalogue.loaded_topics)
        for text, query, body, edges in (
            ("0x00000000_0x40000000", "", None, ["0x00000000", "0x20000000", *whole[1:]]),
            ("0x00000000_0x20000000", "?unload=true", None, ["0x00000000", "0x10000000", "0x20000000", *whole[1:]]),
            (
                "0xc0000000_0xffffffff",
                "?splitAlgorithmName=specified_positions_divide",
                [0xD0000000, 0xE0000000],
                ["0x00000000", "0x10000000", "0x20000000", *whole[1:4], "0xd0000000", "0xe0000000", "0xffffffff"],
            ),
        ):
            answer = await world.call("PUT", f"{NAMESPACE}/{text}/split{query}", body)
            assert (answer.status, answer.body) == (204, b"")
            assert edges_of(await world.get(f"{NAMESPACE}/bundles")) == edges
            assert edges == (await world.get(NAMESPACE)).json["bundles"]["boundaries"]
        assert world.service.catalogue.loaded_topics == {
            name: topic
            for name, topic in loaded.items()
            if topic_hash(name) >= 0x20000000  # the others were in what was given up
        }
        answer = await world.call("PUT", f"{NAMESPACE}/0x00000000_0x40000000/split")
        reason = "Invalid bundle range: 0x00000000_0x40000000 is no bundle of namespace public/default"
        assert answer.refused == (412, reason)
        assert (await world.get("/admin/v2/namespaces/public/none/bundles")).status == 404

    play(scenario)


def test_a_bundle_of_a_standalone_is_unloaded_with_its_topics_alone() -> None:
    async def scenario(world: AdminWorld) -> None:
        for name in "abcdefgh":
            await world.done("PUT", name)
        loaded = set(world.service.catalogue.loaded_topics)
        gone = {name for name in loaded if topic_hash(name) < 0x40000000}
        assert gone
        assert gone != loaded
        assert (await world.call("PUT", f"{NAMESPACE}/0x00000000_0x40000000/unload")).status == 204
        assert set(world.service.catalogue.loaded_topics) == loaded - gone
        assert (await world.call("PUT", f"{NAMESPACE}/unload")).status == 204
        assert set(world.service.catalogue.loaded_topics) == set()

    play(scenario)


def test_a_bundle_split_of_a_standalone_is_known_after_a_restart() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.call("PUT", f"{NAMESPACE}/0x00000000_0x40000000/split")).status == 204
        again = OwnerOfAll(world.store, 4, world.service.lifecycle.close_topics)
        cut = await again.cut(DEFAULT)
        await again.close()
        assert cut is not None
        assert cut.boundaries[:3] == (0, 0x20000000, 0x40000000)

    play(scenario)


@pytest.mark.parametrize(
    ("query", "body", "status", "reason"),
    [
        ("?splitAlgorithmName=by_taste", None, 412, "supported algorithms are [range_equally_divide, topic"),
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
    cut = await house.service.lookup.owners.cut(DEFAULT)
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
        class Others(SoleOwner):
            async def split(self, *_: object, **__: object) -> Elsewhere:
                return Elsewhere(Advertised("pulsar://other:6650", "http://other:8080"))

        world.service.lookup.owners = Others()
        path = f"{NAMESPACE}/0x00000000_0x40000000/split?unload=true"
        answer = await world.call("PUT", path)
        assert (answer.status, answer.headers["location"]) == (307, f"http://other:8080{path}")

    play(scenario)
