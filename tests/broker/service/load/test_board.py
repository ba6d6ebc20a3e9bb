"""Histories of bundles on the load board, kept over owners."""

import asyncio

import pytest

from broker.service.load.board import BUNDLE_DATA, Report
from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats, decode_history, encode_history
from broker.service.load.reporter import HISTORY_SECONDS
from broker.service.load.settings import LoadSettings
from broker.service.ownership.bundles import Bundle, Bundles
from broker.topic.contract import TopicActivity
from broker.topic.statistics.topic_stats import TopicTraffic
from metadata.store import MetadataError
from tests.broker.service.houses import TOPICS, House, a_cluster, play
from tests.broker.service.load.load_parts import cut_of, reporter, with_topics


def history(rate: float, reports: int = 1) -> BundleHistory:
    found = BundleHistory()
    for _ in range(reports):
        found = found.after(BundleStats(msg_rate_in=rate, topics=2))
    return found


async def one_with_load(house: House) -> tuple[Bundles, Bundle]:
    await with_topics(house, TopicTraffic(msg_rate_in=50.0))
    for topic in house.topics.topics.values():
        topic.now = TopicActivity(1, 0, 0, 0, 0)  # nothing that is in use is taken away
    cut = await cut_of(house)
    return cut, cut.of(TOPICS[0])


def test_the_next_owner_goes_on_where_the_one_before_left_off() -> None:
    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, second = houses.values()
            for bundle in (await first.bundles.of(TOPICS[0].namespace)).all():
                await first.board.wish(bundle, first.members.own_id)
            _, bundle = await one_with_load(first)
            before, after = reporter(first), reporter(second)
            first.hand_over = before.hand_over
            for _ in range(3):
                await before.look()
                await asyncio.sleep(HISTORY_SECONDS)
            await first.service.lookup.owners.unload(bundle.namespace, bundle.range, second.members.own_id)
            for topic in TOPICS:
                if bundle.covers(topic):
                    await second.load(topic)
            await after.look()
            taken = (await second.board.reports([second.members.own_id]))[second.members.own_id].histories
            long = taken[str(bundle)].long
            assert (long.samples, long.msg_rate) == (4, 225.0), "three times 300 there, and once 0 here"

    play(scenario)


def test_a_bundle_history_is_read_from_its_node_and_an_invalid_one_is_an_error() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            assert await house.board.history("t/n/0x0_0xf") is None
            await house.store.put(f"{BUNDLE_DATA}/t/n/0x0_0xf", encode_history(history(7.0, 4)))
            assert await house.board.history("t/n/0x0_0xf") == history(7.0, 4)
            await house.store.put(f"{BUNDLE_DATA}/t/n/0x0_0xf", b"[]")
            with pytest.raises(MetadataError):
                await house.board.history("t/n/0x0_0xf")

    play(scenario)


def test_the_history_of_a_killed_broker_is_a_quarter_of_an_hour_old_at_most() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            _, bundle = await one_with_load(house)
            reporting = reporter(house, LoadSettings(load_balancer_resource_quota_update_interval_minutes=2))
            await reporting.look()
            assert await house.store.get(f"{BUNDLE_DATA}/{bundle}") is None
            await asyncio.sleep(120)
            await reporting.look()
            found = await house.store.get(f"{BUNDLE_DATA}/{bundle}")
            assert found is not None
            assert decode_history(found.value).long.samples == 2

    play(scenario)


def test_a_history_that_cannot_be_read_or_written_is_as_good_as_none(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            _, bundle = await one_with_load(house)
            await house.store.put(f"{BUNDLE_DATA}/{bundle}", b"{")
            reporting = reporter(house)
            await reporting.look()
            assert str(bundle) in reporting.reported.bundles

            async def hang(name: str, kept: BundleHistory) -> None:
                await asyncio.get_running_loop().create_future()

            monkeypatch.setattr(house.board, "keep_history", hang)
            await reporting.hand_over(bundle)

    play(scenario)
    assert "load of a bundle cannot be read: it starts at nothing" in caplog.text
    assert "load of a bundle not stored for its next owner" in caplog.text


def test_a_bundle_counts_for_what_it_has_done_before_its_new_owner_reports_it() -> None:
    """Two heavy ones on their way to one broker: the third goes to the other, which has many that are light."""

    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, second = houses.values()
            cut = await cut_of(first)
            light = {f"x/y/{index}": history(60.0) for index in range(5)}
            stats = dict.fromkeys(light, BundleStats())
            await first.board.put(second.members.own_id, Report(BrokerLoad(bundles=stats), light))
            heavy, *_, last = cut.all()
            await first.board.keep_history(str(heavy), history(5000.0))
            ids = [house.members.own_id for house in houses.values()]
            assert await first.chooser.choose(cut, heavy, ids) == first.members.own_id
            assert await first.chooser.choose(cut, last, ids) == second.members.own_id

    play(scenario)
