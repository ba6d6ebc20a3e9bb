"""Bundles that are split because of their load."""

from broker.service.load.auto_split import HITS, AutoSplit
from broker.service.load.loads import BundleStats
from broker.service.load.settings import LoadSettings
from broker.topic.statistics.topic_stats import TopicTraffic
from tests.broker.service.houses import TOPICS, a_cluster, play
from tests.broker.service.load.load_parts import cut_of, with_topics


def test_a_bundle_that_is_too_much_for_several_looks_is_split_and_given_up() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await with_topics(house, TopicTraffic(msg_rate_in=20_000.0))
            settings = LoadSettings(load_balancer_namespace_maximum_bundles=5)
            splitting = AutoSplit(settings, house.service.splits)
            before = await cut_of(house)
            stats = {bundle: BundleStats(msg_rate_in=1.0, topics=6) for bundle in before.all()}
            busy = before.all()[1]
            stats[busy] = BundleStats(msg_rate_in=120_000.0, topics=6)
            for _ in range(HITS - 1):
                await splitting.on_look(stats)
            await splitting.on_look({**stats, busy: BundleStats(topics=6)})
            for _ in range(HITS - 1):
                await splitting.on_look(stats)
            assert await cut_of(house) == before, "not so many times in a row"
            await splitting.on_look(stats)
            after = await cut_of(house)
            assert len(after.all()) == 5
            assert busy not in after.all()
            assert not any(house.service.lookup.owners.serves(topic) for topic in TOPICS if busy.covers(topic))

    play(scenario)


def test_nothing_is_split_where_that_is_turned_off() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            splitting = AutoSplit(LoadSettings(load_balancer_auto_bundle_split_enabled=False), house.service.splits)
            before = await cut_of(house)
            for _ in range(HITS + 1):
                await splitting.on_look({before.all()[0]: BundleStats(topics=5000)})
            assert await cut_of(house) == before

    play(scenario)
