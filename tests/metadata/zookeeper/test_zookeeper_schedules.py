"""Stores on a ZooKeeper that cuts connections, loses answers and lets sessions expire, in virtual time: a seed decides it all.

An acknowledged write took effect once, a refused one did not, watchers end up knowing what is there, and no two claims are held
at once.
"""

import asyncio
from functools import partial
from random import Random

import pytest

from metadata.claim import Hold
from metadata.claim_driver import Claim
from metadata.store import BadVersion, Change, MetadataError, NoNode, Notification, OutcomeUnknown, SessionExpired
from metadata.zookeeper.store import ZooKeeperStore
from simulation.world.loop import SimLoop
from tests.metadata.zookeeper.fake_zookeeper import FakeZooKeeper

SEEDS = range(60)
FAULTS = 12


def simulate(seed: int, scenario: "type[Schedule]") -> None:
    loop = SimLoop(Random(seed))
    try:
        loop.run_until_complete(scenario(Random(seed + 1)).run())
    finally:
        loop.finish()


class Schedule:
    """Three stores, some faults, then quiet; `work` and `check` are the scenario's."""

    stores: list[ZooKeeperStore]

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.server = FakeZooKeeper(rng)

    async def run(self) -> None:
        self.stores = [await ZooKeeperStore.open(self.server.open) for _ in range(3)]
        await self.begin()
        working = asyncio.gather(*(self.work(number, store) for number, store in enumerate(self.stores)))
        for _ in range(FAULTS):
            await asyncio.sleep(self.rng.uniform(0, 2))
            self.fault()
        await working
        await asyncio.sleep(60)
        await self.check()
        for store in self.stores:
            await store.close()

    def fault(self) -> None:
        sessions = [session for session in self.server.sessions if session.is_alive]
        if not sessions:
            return
        session = self.rng.choice(sessions)
        match self.rng.randrange(4):
            case 0 | 1:
                session.cut(self.rng.choice([0.0, 0.5, 3.5]))
            case 2:
                self.server.expire(session)
            case 3:
                for each in sessions:
                    each.cut()

    async def begin(self) -> None:
        """Begin with these nodes."""

    async def work(self, number: int, store: ZooKeeperStore) -> None:
        raise NotImplementedError

    async def check(self) -> None:
        raise NotImplementedError


class Appends(Schedule):
    """Each client appends its words to one value by compare-and-set."""

    async def begin(self) -> None:
        self.acknowledged: list[bytes] = []
        self.refused: list[bytes] = []
        await self.stores[0].put("/log", b"")

    async def work(self, number: int, store: ZooKeeperStore) -> None:
        for count in range(25):
            word = b"%d.%d " % (number, count)
            try:
                found = await store.get("/log")
                assert found is not None
                await store.put("/log", found.value + word, found.stat.version)
            except BadVersion:
                self.refused.append(word)
            except OutcomeUnknown:
                pass  # it may be there or not
            except MetadataError as error:
                raise AssertionError(f"{word!r}: {error}") from error
            else:
                self.acknowledged.append(word)
            await asyncio.sleep(self.rng.uniform(0, 0.5))

    async def check(self) -> None:
        value = self.server.nodes["/log"].value
        words = [word + b" " for word in value.split()]
        assert len(words) == len(set(words)) == self.server.nodes["/log"].stat.version
        assert set(self.acknowledged) <= set(words)
        assert not set(self.refused) & set(words)
        assert len(self.acknowledged) > 20


class Caches(Schedule):
    """Each client keeps what it read until a watch says that it changed."""

    async def begin(self) -> None:
        self.failures = 0
        self.caches: list[dict[str, bytes | None]] = [{} for _ in self.stores]
        self.known: list[set[str]] = [set() for _ in self.stores]
        await self.stores[0].put("/w/0/a", b"")
        for number, store in enumerate(self.stores):
            store.watch("/w", partial(self.told, number))
            await store.exists("/w")  # answered after the watch was set
            self.known[number] = {path for path in self.server.nodes if path != "/"}

    def told(self, number: int, notification: Notification) -> None:
        self.caches[number].pop(notification.path, None)
        if notification.change is Change.DELETED:
            self.known[number].discard(notification.path)
        else:
            self.known[number].add(notification.path)

    async def work(self, number: int, store: ZooKeeperStore) -> None:
        for count in range(30):
            path = f"/w/{self.rng.randrange(3)}/{self.rng.choice('ab')}"
            try:
                match self.rng.randrange(4):
                    case 0 | 1:
                        await store.put(path, b"%d.%d" % (number, count), ephemeral=self.rng.random() < 0.3)
                    case 2:
                        await store.delete(path)
                    case 3:
                        found = await store.get(path)
                        self.caches[number][path] = None if found is None else found.value
            except (NoNode, OutcomeUnknown, SessionExpired):
                self.failures += 1
            except MetadataError as error:
                raise AssertionError(f"{path}: {error}") from error
            await asyncio.sleep(self.rng.uniform(0, 0.5))

    async def check(self) -> None:
        there = {path: node.value for path, node in self.server.nodes.items() if path != "/"}
        for number, cache in enumerate(self.caches):
            assert self.known[number] == set(there)
            assert {path: value for path, value in cache.items() if there.get(path) != value} == {}


class LateWatchers(Schedule):
    """One client makes and deletes nodes; the others begin to watch at some time, read, and lose the connection at once."""

    async def begin(self) -> None:
        self.known: list[set[str]] = [set() for _ in self.stores]
        for parent in ("/w/0", "/w/1"):
            await self.stores[0].put(parent, b"")

    def told(self, number: int, notification: Notification) -> None:
        if notification.change is Change.DELETED:
            self.known[number].discard(notification.path)
        else:
            self.known[number].add(notification.path)

    async def work(self, number: int, store: ZooKeeperStore) -> None:
        if number == 0:
            await self.come_and_go(store)
            return
        await asyncio.sleep(self.rng.uniform(0, 15))
        store.watch("/w", partial(self.told, number))
        for parent in ("/w/0", "/w/1"):
            self.known[number] |= {f"{parent}/{name}" for name in await store.children(parent)}
        self.server.sessions[store.session_id - 1].cut()

    async def come_and_go(self, store: ZooKeeperStore) -> None:
        for count in range(60):
            there = [path for path in self.server.nodes if path.startswith(("/w/0/", "/w/1/"))]
            try:
                if len(there) < self.rng.randrange(8):
                    await store.put(f"/w/{count % 2}/{count}", b"")
                elif there:
                    await store.delete(self.rng.choice(there))
            except (NoNode, OutcomeUnknown):
                continue
            await asyncio.sleep(self.rng.uniform(0, 0.5))

    async def check(self) -> None:
        for known in self.known[1:]:
            assert known <= set(self.server.nodes)


class Claims(Schedule):
    """All want one node; each is told whether it has it."""

    async def begin(self) -> None:
        self.held: list[bool] = [False] * len(self.stores)
        self.times_held = 0
        self.claims = [
            Claim(store, store, "/lead/er", b"client %d" % number, partial(self.told, number))
            for number, store in enumerate(self.stores)
        ]
        for claim in self.claims:
            claim.want()

    def fault(self) -> None:
        """Cause a fault, but never end a session that has a connection: its claim's holder could not stop in time then."""
        sessions = [session for session in self.server.sessions if session.is_alive]
        for session in self.rng.sample(sessions, self.rng.randint(0, len(sessions))):
            session.cut(self.rng.choice([0.0, 0.5, 3.5]))

    def told(self, number: int, hold: Hold, _holder: bytes) -> None:
        self.held[number] = hold is Hold.HELD
        self.times_held += self.held[number]
        assert sum(self.held) <= 1, self.held

    async def work(self, number: int, store: ZooKeeperStore) -> None:
        for claim in self.claims:
            claim._machine.check_invariants()

    async def check(self) -> None:
        assert sum(self.held) == 1
        leader = self.held.index(True)
        assert self.server.nodes["/lead/er"].value == b"client %d" % leader
        assert [claim.holder for claim in self.claims] == [b"client %d" % leader] * 3
        for claim in self.claims:
            await claim.close()
        assert "/lead/er" not in self.server.nodes


@pytest.mark.parametrize("scenario", [Appends, Caches, LateWatchers, Claims])
def test_each_scenario_holds_under_connection_faults(scenario: type[Schedule]) -> None:
    for seed in SEEDS:
        try:
            simulate(seed, scenario)
        except Exception as error:
            raise AssertionError(f"{scenario.__name__}, seed {seed}") from error
