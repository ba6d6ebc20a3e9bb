"""A bundle is cut in two: its topics stay open and owned at every moment, and no other broker gets them meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest

from broker.errors import BrokerError
from broker.service.errors import BundleNotFound, TopicElsewhere
from broker.service.load.splitting import CannotSplit, cut_boundaries, in_two
from broker.service.ownership.bundles import Bundle, Bundles, parse_bundles
from broker.service.ownership.namespace_bundles import LOCAL_POLICIES, CutChanged
from broker.service.topic_name import NamespaceName, TopicName
from metadata.sessions import SessionEvent
from metadata.store import MUST_NOT_EXIST
from tests.broker.service.houses import TOPICS, House, a_cluster, play

DEFAULT = NamespaceName("public", "default")


def halves(cut: Bundles, bundle: Bundle) -> Sequence[int]:
    return cut_boundaries(cut.boundaries, bundle, in_two(bundle, []), 128)


def too_many(cut: Bundles, bundle: Bundle) -> Sequence[int]:
    return cut_boundaries(cut.boundaries, bundle, in_two(bundle, []), 4)


async def cut_of(house: House) -> Bundles:
    found = await house.store.get(f"{LOCAL_POLICIES}/{DEFAULT}")
    cut = None if found is None else parse_bundles(DEFAULT, found.value)
    assert cut is not None
    return cut


async def owned_by(first: House, houses: dict[str, House]) -> tuple[House, list[TopicName], Bundle]:
    """Returns the owner of the bundle of the first topic, and all topics in it, loaded."""
    owner = await first.follow(TOPICS[0], houses)
    cut = await cut_of(first)
    bundle = cut.of(TOPICS[0])
    topics = [topic for topic in TOPICS if cut.of(topic) == bundle]
    for topic in topics:
        await owner.load(topic)
    return owner, topics, bundle


def test_topics_stay_open_and_owned_through_a_split() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owner, topics, bundle = await owned_by(first, houses)
            other = second if owner is first else first
            loaded = [owner.service.catalogue.loaded_topic(topic) for topic in topics]
            assert await owner.service.lookup.owners.split(DEFAULT, bundle.range, halves, unload=False) is None
            assert [owner.service.catalogue.loaded_topic(topic) for topic in topics] == loaded
            cut = await cut_of(first)
            assert len(cut.all()) == 5
            assert len({cut.of(topic) for topic in topics}) == 2
            for topic in topics:
                assert owner.service.lookup.owners.serves(topic)
                assert await other.follow(topic, houses) is owner
                with pytest.raises(TopicElsewhere):
                    await other.load(topic)
            assert await first.store.get(bundle.path) is None

    play(scenario)


def test_with_unload_the_parts_are_free_and_their_topics_closed() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, _ = houses.values()
            owner, topics, bundle = await owned_by(first, houses)
            await owner.service.lookup.owners.split(DEFAULT, bundle.range, halves, unload=True)
            assert all(owner.service.catalogue.loaded_topic(topic) is None for topic in topics)
            cut = await cut_of(first)
            for part in cut.all():
                if bundle.low <= part.low < bundle.high:
                    assert await first.store.get(part.path) is None
            for topic in topics:
                taken_by = await first.follow(topic, houses)
                await taken_by.load(topic)

    play(scenario)


def test_a_split_is_the_owners_and_of_what_is_there() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owner, _, bundle = await owned_by(first, houses)
            other = second if owner is first else first
            elsewhere = await other.service.lookup.owners.split(DEFAULT, bundle.range, halves, unload=False)
            assert elsewhere is not None
            assert elsewhere.address == owner.advertised
            with pytest.raises(BundleNotFound):
                await owner.service.lookup.owners.split(DEFAULT, "0x00000000_0x00000001", halves, unload=False)
            with pytest.raises(CannotSplit, match="MaximumBundles"):
                await owner.service.lookup.owners.split(DEFAULT, bundle.range, too_many, unload=False)
            assert len((await cut_of(first)).all()) == 4

    play(scenario)


def test_a_bundle_that_nobody_owns_is_taken_to_be_split() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await house.service.lookup.owners.split(DEFAULT, "0x40000000_0x80000000", halves, unload=False)
            assert [bundle.range for bundle in (await cut_of(house)).all()][1:3] == [
                "0x40000000_0x60000000",
                "0x60000000_0x80000000",
            ]

    play(scenario)


def test_a_split_that_comes_second_leaves_everything_as_it_was() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            owner, topics, bundle = await owned_by(house, houses)
            path = f"{LOCAL_POLICIES}/{DEFAULT}"

            def beaten(cut: Bundles, part: Bundle) -> Sequence[int]:
                """Somebody else cuts another bundle after this one was looked at."""
                other = cut.all()[-1] if cut.all()[-1] != part else cut.all()[0]
                edges = sorted({*cut.boundaries, other.low + 5})
                document = b'{"bundles":{"boundaries":[%s]}}' % b",".join(b'"0x%08x"' % edge for edge in edges)
                beating.append(asyncio.ensure_future(house.store.put(path, document)))
                return halves(cut, part)

            beating: list[asyncio.Future[object]] = []
            with pytest.raises(CutChanged):
                await house.service.lookup.owners.split(DEFAULT, bundle.range, beaten, unload=False)
            await asyncio.gather(*beating)
            for topic in topics:
                assert await owner.follow(topic, houses) is owner
                assert owner.service.catalogue.loaded_topic(topic) is not None
            await asyncio.sleep(1)  # of simulated time: the parts are given up after the refusal
            assert await house.store.children(f"/namespace/{DEFAULT}") == [bundle.range]

    play(scenario)


def test_a_part_whose_node_is_anothers_stops_the_split() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            owner, topics, bundle = await owned_by(house, houses)
            upper = Bundle(DEFAULT, bundle.low + (bundle.high - bundle.low) // 2, bundle.high)
            await house.store.put(upper.path, b'{"nativeUrl":"pulsar://other:6650"}', MUST_NOT_EXIST)
            with pytest.raises(Exception, match="held by"):
                await owner.service.lookup.owners.split(DEFAULT, bundle.range, halves, unload=False)
            assert all(owner.service.lookup.owners.serves(topic) for topic in topics)
            assert len((await cut_of(house)).all()) == 4

    play(scenario)


def test_a_session_lost_in_the_middle_of_a_split_leaves_nothing_served() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owner, topics, bundle = await owned_by(first, houses)
            other = second if owner is first else first

            def lost(cut: Bundles, part: Bundle) -> Sequence[int]:
                asyncio.get_running_loop().call_soon(owner.sessions.tell, SessionEvent.SESSION_LOST)
                return halves(cut, part)

            with pytest.raises(BrokerError, match="given up"):
                await owner.service.lookup.owners.split(DEFAULT, bundle.range, lost, unload=False)
            owner.shared.end_session(owner.store.session, 0)
            assert not any(owner.service.lookup.owners.serves(topic) for topic in topics)
            for topic in topics:
                assert await other.follow(topic, houses) is other
                await other.load(topic)

    play(scenario)


def test_a_broker_that_took_a_bundle_by_an_older_cut_gives_it_up() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            owner, topics, bundle = await owned_by(first, houses)
            other = second if owner is first else first
            await other.follow(TOPICS[0], houses)
            await other.store.put(f"{LOCAL_POLICIES}/{DEFAULT}", b'{"bundles":{"boundaries":["0x00000000","0xffffffff"]}}')
            await owner.service.lookup.owners.cut(DEFAULT)
            for topic in topics:
                taken_by = await first.follow(topic, houses)
                await taken_by.load(topic)
            assert await first.store.get(bundle.path) is None
            assert not any((second if taken_by is first else first).service.catalogue.loaded_topic(topic) for topic in topics)

    play(scenario)
