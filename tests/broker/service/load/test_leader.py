"""The leader that moves bundles."""

import asyncio
import json

import pytest

from broker.service.load.board import Report
from broker.service.load.leader import LEADER, MoveFailed
from broker.service.load.load_driver import LoadDriver
from broker.service.load.settings import TRANSFER_SHEDDER, LoadSettings
from broker.service.load.shedding import Move
from tests.broker.service.houses import a_cluster, play
from tests.broker.service.load.load_parts import busy_and_idle, leader, reporter

TURNS_MAX = 1000


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
