"""Reports, choices, moves and splits of brokers that share one tree."""

import asyncio
import json

from broker.service.load.board import REPORTS
from broker.service.load.leader import LEADER
from broker.service.load.load_driver import LoadDriver
from broker.topic.statistics.topic_stats import TopicTraffic
from tests.broker.service.houses import a_cluster, play
from tests.broker.service.load.load_parts import leader, reporter, with_topics

BUNDLE = "public/default/0x00000000_0x40000000"


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
