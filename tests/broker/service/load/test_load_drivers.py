"""Reports, choices, moves and splits of brokers that share one tree."""

import asyncio
import json
from collections.abc import Callable

import pytest

from broker.service.errors import NoSuchBroker
from broker.service.load.auto_split import HITS, AutoSplit
from broker.service.load.board import REPORTS, Report, decode_report, encode_report
from broker.service.load.leader import LEADER, LoadLeader, MoveFailed, leader_claim
from broker.service.load.load_driver import LoadDriver
from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats, Usage
from broker.service.load.reporter import LoadReporter, ServedTopics
from broker.service.load.settings import TRANSFER_SHEDDER, LoadSettings
from broker.service.load.shedding import Move
from broker.service.ownership.bundles import Bundles
from broker.service.topic_name import NamespaceName
from broker.topic.statistics.topic_stats import TopicTraffic
from metadata.store import MetadataError
from ports.clock import RealClock
from ports.metrics.machine_usage import MachineUse
from tests.broker.service.houses import TOPICS, House, a_cluster, play

DEFAULT = NamespaceName("public", "default")
BUNDLE = "public/default/0x00000000_0x40000000"
MB = float(1 << 20)
TURNS_MAX = 1000
DEFAULTS = LoadSettings()


class FixedUsage:
    """Whatever a test says."""

    def __init__(self, cpu: float = 0.1) -> None:
        self.cpu = cpu

    def sample(self) -> MachineUse:
        return MachineUse(self.cpu)


async def nothing(_: object) -> None:
    """Ignores a look."""


def reporter(house: House, settings: LoadSettings = DEFAULTS, usage: FixedUsage | None = None) -> LoadReporter:
    served = ServedTopics(house.service.catalogue.loaded_topics, house.bundles.known_of)
    return LoadReporter(house.members.own_id, house.board, settings, RealClock(), usage or FixedUsage(), served, nothing)


def leader(house: House, carry_out: Callable[[Move], object], settings: LoadSettings = DEFAULTS) -> LoadLeader:
    async def perform(move: Move) -> None:
        failure = carry_out(move)
        if isinstance(failure, MoveFailed):
            raise failure

    claim = leader_claim(house.store, house.sessions, house.members.own_id, house.advertised)
    return LoadLeader(claim, house.members, house.board, house.policies, settings, perform)


async def cut_of(house: House) -> Bundles:
    cut = await house.service.lookup.owners.cut(DEFAULT)
    assert cut is not None
    return cut


async def with_topics(house: House, traffic: TopicTraffic) -> None:
    """Every topic is served by this one, and does as much."""
    for topic in TOPICS:
        await house.follow(topic, {house.advertised.broker_url: house})
        await house.load(topic)
    for loaded in house.topics.topics.values():
        loaded.traffic_now = traffic


# Reports


def test_a_broker_reports_what_its_bundles_do_and_again_when_that_has_changed() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await with_topics(house, TopicTraffic(10.0, 20.0, 1000.0, 2000.0, 1, 2))
            path, usage = f"{REPORTS}/{house.members.own_id}", FixedUsage()
            reporting = reporter(house, usage=usage)
            await reporting.look()
            found = await house.store.get(path)
            assert found is not None
            report = decode_report(found.value)
            assert report.load.total == BundleStats(240.0, 480.0, 24_000.0, 48_000.0, 24, 48, 24)
            assert set(report.load.bundles) == {str(bundle) for bundle in (await cut_of(house)).all()}
            assert report.histories.keys() == report.load.bundles.keys()
            await reporting.look()
            unchanged = await house.store.get(path)
            assert unchanged is not None
            assert unchanged.stat.version == found.stat.version, "nothing to tell"
            usage.cpu = 0.2
            await reporting.look()
            changed = await house.store.get(path)
            assert changed is not None
            assert changed.stat.version == found.stat.version + 1
            assert reporting.reported.usage.cpu == 0.2

    play(scenario)


def test_a_report_is_read_back_and_what_is_none_is_an_error() -> None:
    report = Report(BrokerLoad(Usage(0.5), {"t/n/r": BundleStats(1.0)}, 7), {"t/n/r": BundleHistory(topics=3)})
    assert decode_report(encode_report(report)) == report
    for value in (b"", b"{", b'{"bundleData":7}', b'{"bundleData":{"a":{}}}'):
        with pytest.raises(MetadataError):
            decode_report(value)


# Choices


def test_a_bundle_goes_to_the_broker_that_has_had_the_least_to_do() -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            first, second, third = houses.values()
            busy = {"x/y/0x00000000_0xffffffff": BundleHistory().after(BundleStats(msg_rate_in=5000.0))}
            load = BrokerLoad(bundles=dict.fromkeys(busy, BundleStats()))
            for house in (first, third):
                await house.board.put(house.members.own_id, Report(load, busy))
            owners = {(await first.follow(topic, houses)).members.own_id for topic in TOPICS}
            assert owners == {second.members.own_id}

    play(scenario)


def test_bundles_that_were_sent_somewhere_count_before_they_are_reported() -> None:
    async def scenario() -> None:
        async with a_cluster(4, by_load=True) as houses:
            first = next(iter(houses.values()))
            owners = [(await first.follow(topic, houses)).members.own_id for topic in TOPICS]
            assert len(set(owners)) == 4

    play(scenario)


@pytest.mark.parametrize("by_load", [True, False], ids=["by load", "loadBalancerEnabled=false"])
def test_an_unloaded_bundle_goes_where_it_was_wished_to(by_load: bool) -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=by_load) as houses:
            first, *_ = houses.values()
            owner = await first.follow(TOPICS[0], houses)
            await owner.load(TOPICS[0])
            bundle = (await cut_of(first)).of(TOPICS[0])
            for target in houses.values():
                holder = await first.follow(TOPICS[0], houses)
                if holder is not target:
                    await holder.service.lookup.owners.unload(DEFAULT, bundle.range, target.members.own_id)
                    assert await first.follow(TOPICS[0], houses) is target
            with pytest.raises(NoSuchBroker, match="nowhere"):
                await target.service.lookup.owners.unload(DEFAULT, bundle.range, "nowhere:8080")
            assert target.service.lookup.owners.serves(TOPICS[0])

    play(scenario)


def test_whoever_is_told_of_a_wish_an_owner_that_is_not_told_gives_up_for_it() -> None:
    """An owner need not understand `destinationBroker`: of Apache's, only the leader may get it."""

    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            owner = await next(iter(houses.values())).follow(TOPICS[0], houses)
            told, target = (house for house in houses.values() if house is not owner)
            bundle = (await cut_of(told)).of(TOPICS[0])
            elsewhere = await told.service.lookup.owners.unload(DEFAULT, bundle.range, target.members.own_id)
            assert elsewhere is not None
            assert elsewhere.address == owner.advertised
            await owner.service.lookup.owners.unload(DEFAULT, bundle.range)
            assert await owner.follow(TOPICS[0], houses) is target

    play(scenario)


def test_a_broker_of_apaches_is_as_busy_as_its_own_node_says() -> None:
    async def scenario() -> None:
        async with a_cluster(1, by_load=True) as houses:
            (house,) = houses.values()
            assert not await house.board.reports(["apache:8080", house.members.own_id])
            for cpu, share in ((50.0, 0.25), (150.0, 0.75)):
                stats = {"msgRateIn": 3.0, "msgRateOut": 4.0, "topics": 2}
                value = {"cpu": {"usage": cpu, "limit": 200.0}, "lastStats": {BUNDLE: stats}, "lastUpdate": 5}
                await house.store.put("/loadbalance/brokers/apache:8080", json.dumps(value).encode())
                report = (await house.board.reports(["apache:8080"]))["apache:8080"]
                assert (report.is_apaches, report.load.usage.cpu, report.load.total.topics) == (True, share, 2)
                assert report.histories[BUNDLE].long.msg_rate == 7.0

    play(scenario)


def test_a_leader_of_apaches_is_told_apart_from_one_of_ours() -> None:
    async def scenario() -> None:
        async with a_cluster(1, by_load=True) as houses:
            (house,) = houses.values()
            ours = LoadDriver(house.members.own_id, house.board, reporter(house), leader(house, lambda _: None))
            leading = {"brokerId": "apache:8080", "serviceUrl": "http://apache:8080"}
            await house.store.put(LEADER, json.dumps(leading).encode())
            ours.start()
            try:
                for _ in range(TURNS_MAX):
                    if ours.leader():
                        break
                    await asyncio.sleep(0)
                assert await ours.apaches_leader() == ""
                await house.store.put("/loadbalance/brokers/apache:8080", b'{"lastUpdate": 5}')
                assert await ours.apaches_leader() == "http://apache:8080"
            finally:
                await ours.stop()

    play(scenario)


# The leader


def busy_and_idle(high: House, low: House) -> dict[str, BrokerLoad]:
    bundles = {f"public/default/{index}": BundleStats(msg_throughput_in=30 * MB) for index in range(4)}
    return {high.members.own_id: BrokerLoad(Usage(0.9), bundles), low.members.own_id: BrokerLoad(Usage(0.1))}


def test_one_is_elected_and_another_when_it_goes() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            leaders = [leader(house, lambda move: None) for house in (first, second)]
            running = [asyncio.ensure_future(each.run()) for each in leaders]
            await asyncio.sleep(1)
            assert [each.is_leader for each in leaders] == [True, False]
            for each in leaders:
                assert each.leader() == {"brokerId": "b0:8080", "serviceUrl": "http://b0:8080"}
            running[0].cancel()
            await leaders[0].close()
            await asyncio.sleep(1)
            assert leaders[1].is_leader
            assert leaders[1].leader()["brokerId"] == "b1:8080"
            running[1].cancel()
            await leaders[1].close()
            assert await first.store.get(LEADER) is None

    play(scenario)


@pytest.mark.parametrize("strategy", [LoadSettings().load_balancer_load_shedding_strategy, TRANSFER_SHEDDER])
def test_the_leader_moves_bundles_once_and_then_lets_them_rest(strategy: str) -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            moves: list[Move] = []
            leading = leader(first, moves.append, LoadSettings(load_balancer_load_shedding_strategy=strategy))
            for house_id, load in busy_and_idle(second, first).items():
                await first.board.put(house_id, Report(load))
            moved = await leading.shed()
            assert moves == moved
            assert {move.source for move in moved} == {second.members.own_id}
            assert all(move.destination in (None, first.members.own_id) for move in moved)
            again = await leading.shed()
            assert not {move.bundle for move in again} & {move.bundle for move in moved}
            await leading.close()

    play(scenario)


def test_a_broker_that_is_not_registered_any_more_counts_for_nothing() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            for house_id, load in busy_and_idle(second, first).items():
                await first.board.put(house_id, Report(load))
            leading = leader(first, lambda move: None)
            await second.members.leave()
            assert await leading.shed() == []
            await leading.close()

    play(scenario)


def test_a_move_that_fails_is_tried_again() -> None:
    async def scenario() -> None:
        async with a_cluster(2) as houses:
            first, second = houses.values()
            for house_id, load in busy_and_idle(second, first).items():
                await first.board.put(house_id, Report(load))
            tried: list[str] = []

            def fail(move: Move) -> MoveFailed:
                tried.append(move.bundle)
                return MoveFailed("it does not want to")

            leading = leader(first, fail)
            assert await leading.shed() == []
            assert await leading.shed() == []
            assert tried == tried[: len(tried) // 2] * 2
            await leading.close()

    play(scenario)


# Splits


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


# All of it


def test_a_driver_that_is_stopped_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with a_cluster(1, by_load=True) as houses:
            (house,) = houses.values()
            await with_topics(house, TopicTraffic())
            driver = LoadDriver(house.members.own_id, house.board, reporter(house), leader(house, lambda move: None))
            driver.start()
            await asyncio.sleep(1)
            assert driver.reported().total.topics == 24
            assert driver.leader()["brokerId"] == house.members.own_id
            await driver.stop()
            await driver.stop()
            assert await house.store.children(REPORTS) == []
            assert await house.store.get(LEADER) is None

    play(scenario)
