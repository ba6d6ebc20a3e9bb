"""A lookup of what a dead broker still owns waits for the end of its session, and no longer than a client does."""

import asyncio

from broker.service.addresses import Advertised
from broker.service.neighbours.members import ownership_data
from broker.service.ownership import absent_owners
from broker.service.ownership.absent_owners import refuses_connections
from tests.broker.service.houses import TOPICS, House, a_cluster, play

BEFORE = Advertised("pulsar://before:6650", "http://before:8080")


async def everybody_refuses(_: Advertised) -> bool:
    return True


async def of_another(house: House) -> str:
    """The bundle of a topic is BEFORE's; its node."""
    cut = await house.service.lookup.owners.cut(TOPICS[0].namespace)
    assert cut is not None
    path = cut.of(TOPICS[0]).path
    await house.store.put(path, ownership_data(BEFORE, {}))
    return path


def test_a_lookup_waits_for_the_node_of_a_dead_owner_and_goes_on_at_once() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            path = await of_another(house)
            house.refuses = everybody_refuses
            asked = asyncio.ensure_future(house.service.lookup.find(TOPICS[0]))
            await asyncio.sleep(absent_owners.WAIT_SECONDS_MAX / 2)
            assert not asked.done()
            await house.store.delete(path)
            before = asyncio.get_running_loop().time()
            assert (await asked).address == house.advertised
            assert asyncio.get_running_loop().time() - before < 1

    play(scenario)


def test_a_dead_owner_whose_session_goes_on_is_named_in_time_for_the_client() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await of_another(house)
            house.refuses = everybody_refuses
            before = asyncio.get_running_loop().time()
            assert (await house.service.lookup.find(TOPICS[0])).address == BEFORE
            assert asyncio.get_running_loop().time() - before <= absent_owners.WAIT_SECONDS_MAX + 1

    play(scenario)


def test_a_living_owner_is_named_at_once_and_asked_once_a_second() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            (house,) = houses.values()
            await of_another(house)
            asked: list[Advertised] = []

            async def accepts(address: Advertised) -> bool:
                asked.append(address)
                return False

            house.refuses = accepts
            for _ in range(5):
                assert (await house.service.lookup.find(TOPICS[0])).address == BEFORE
            assert asked == [BEFORE]
            await asyncio.sleep(2)
            await house.service.lookup.find(TOPICS[0])
            assert len(asked) == 2

    play(scenario)


def test_only_a_refused_connection_says_that_nobody_is_there() -> None:
    asyncio.run(probes())


async def probes() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert not await refuses_connections(Advertised(f"pulsar://127.0.0.1:{port}", ""))
    server.close()
    await server.wait_closed()
    assert await refuses_connections(Advertised(f"pulsar://127.0.0.1:{port}", ""))
    assert not await refuses_connections(Advertised("pulsar://no-such-host.invalid:6650", ""))
    assert not await refuses_connections(Advertised("", ""))
