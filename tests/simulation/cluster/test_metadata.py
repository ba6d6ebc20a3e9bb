"""The simulated metadata: sessions that are lost early or late, on either side; and processes that are stopped and go on."""

import asyncio
from functools import partial

from metadata.sessions import SessionEvent
from metadata.zookeeper.store import ZooKeeperStore
from simulation.cluster.session import SimSession
from simulation.cluster.zookeeper import HOST, SimZooKeeper
from simulation.world.process import SimProcess
from tests.simulation.worlds import World, run

TIMEOUT = 2.0
NODE = "/mine"


class Holder:
    """A process with a session and an ephemeral node; `told` has the session's events, each with its time."""

    def __init__(self, world: World) -> None:
        self.world, self.told = world, list[tuple[float, SessionEvent]]()
        self.zookeeper = SimZooKeeper(world.loop, world.network)
        self.process = SimProcess(world.loop, world.network, "holder", None, self._main)
        self.is_ready = asyncio.Event()
        self.session_id = 0
        self.was_there_when_lost = False

    async def _main(self) -> None:
        store = await ZooKeeperStore.open(partial(SimSession, self.zookeeper, TIMEOUT), 10.0)
        store.watch_session(self._on_session)
        await store.put(NODE, b"", ephemeral=True)
        self.session_id = store.session_id
        self.is_ready.set()
        await asyncio.get_running_loop().create_future()

    def _on_session(self, event: SessionEvent) -> None:
        self.told.append((self.world.loop.time(), event))
        if event is SessionEvent.SESSION_LOST:
            self.was_there_when_lost = self.is_there

    async def start(self) -> None:
        self.zookeeper.process.start()
        self.process.start()
        await self.is_ready.wait()

    @property
    def is_there(self) -> bool:
        return self.zookeeper.nodes.get(NODE) is not None

    def told_at(self, event: SessionEvent) -> float:
        return next(at for at, each in self.told if each is event)


def test_a_holder_that_is_parted_gives_up_before_the_server_ends_its_session() -> None:
    async def scenario(world: World) -> None:
        holder = Holder(world)
        await holder.start()
        world.network.cut("holder", HOST)
        world.network.cut(HOST, "holder")
        await asyncio.sleep(2 * TIMEOUT)
        assert SessionEvent.SESSION_LOST in [event for _, event in holder.told]
        assert holder.was_there_when_lost
        world.network.heal()
        await asyncio.sleep(TIMEOUT)
        assert not holder.is_there
        assert holder.told[-1][1] is SessionEvent.SESSION_REESTABLISHED

    run(scenario)


def test_a_holder_that_is_stopped_learns_late() -> None:
    async def scenario(world: World) -> None:
        holder = Holder(world)
        await holder.start()
        holder.process.pause()
        await asyncio.sleep(3 * TIMEOUT)
        assert not holder.is_there
        assert not holder.told
        holder.process.go_on()
        await asyncio.sleep(TIMEOUT)
        assert holder.told_at(SessionEvent.SESSION_LOST) > 3 * TIMEOUT
        assert holder.told[-1][1] is SessionEvent.SESSION_REESTABLISHED

    run(scenario)


def test_a_session_that_the_server_ends_is_known_to_its_holder_as_soon_as_it_can_be_told() -> None:
    async def scenario(world: World) -> None:
        holder = Holder(world)
        await holder.start()
        holder.zookeeper.expire(holder.session_id)
        assert not holder.is_there
        await asyncio.sleep(TIMEOUT)
        assert holder.told_at(SessionEvent.SESSION_LOST) < TIMEOUT / 2

    run(scenario)


def test_sessions_outlive_a_restart_of_the_server() -> None:
    async def scenario(world: World) -> None:
        holder = Holder(world)
        await holder.start()
        holder.zookeeper.process.kill()
        await asyncio.sleep(TIMEOUT / 2)
        holder.zookeeper.process.start()
        await asyncio.sleep(2 * TIMEOUT)
        assert holder.is_there
        assert [event for _, event in holder.told] == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]

    run(scenario)


def test_a_process_that_is_stopped_does_nothing_until_it_goes_on() -> None:
    async def scenario(world: World) -> None:
        done: list[float] = []

        async def main() -> None:
            for _ in range(3):
                await asyncio.sleep(1.0)
                done.append(world.loop.time())

        process = SimProcess(world.loop, world.network, "host", None, main)
        process.start()
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(5.0)
        assert len(done) == 1
        process.go_on()
        await process.ended.wait()
        assert done[1] > 6.0
        assert done[2] > done[1]

    run(scenario)


def test_a_process_may_be_killed_while_it_is_stopped() -> None:
    async def scenario(world: World) -> None:
        process = SimProcess(world.loop, world.network, "host", None, partial(asyncio.sleep, 1.0))
        process.start()
        process.pause()
        process.kill()
        process.go_on()
        assert not process.alive
        process.start()
        await process.ended.wait()

    run(scenario)
