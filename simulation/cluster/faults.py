"""ClusterFaults: what goes wrong in a cluster, and what its operators ask for, at the times of a plan; and its healing.

Machines that are down are started again by `tend`. When a fault comes, the truth tells the owner of
a topic: most faults hit one.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.errors import BrokerError
from broker.service.load.bundle_splits import LARGEST
from broker.service.load.splitting import BundleReplaced, CannotSplit
from broker.service.ownership.bundles import Bundle
from broker.service.topic_name import TopicName
from metadata.store import MetadataError
from simulation.cluster.machines import ASKED, SESSION_SECONDS, WEB_PORT, BookieMachine, BrokerMachine, Machine
from simulation.cluster.plan import ClusterFault, Kind
from simulation.cluster.zookeeper import HOST as ZOOKEEPER
from simulation.cluster.zookeeper import SimZooKeeper
from simulation.world.loop import HARDWARE, SimLoop
from simulation.world.network import SimNetwork
from simulation.world.transport import Mark

TEND_SECONDS = 0.1
LEFT_BYTES = (0, 0, 4096, 100_000)
"""Free bytes that are left on a disk that others fill."""
ALONE_SECONDS_MAX = 0.9
"""Less than a broker waits for a bookie before it looks for another."""
MOMENTS = (
    "",
    "commit created /managed-ledgers",
    "commit modified /managed-ledgers",
    "commit",
    "Acknowledged",
    "AckSent",
    "sync",
)
"""First words of trace lines at which a machine may end: in the middle of what happens then."""
REFUSALS = (BrokerError, MetadataError, CannotSplit, BundleReplaced)
"""Errors that an operator may get."""


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines that faults befall; clients are hosts without a machine's disk."""

    brokers: Sequence[BrokerMachine]
    bookies: Sequence[BookieMachine]
    clients: Sequence[str]


class ClusterFaults:
    """Faults of one run. `topics`: for each topic, the machine that opened it last, if any did."""

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        rng: random.Random,
        zookeeper: SimZooKeeper,
        machines: Machines,
        topics: Mapping[str, Callable[[], str | None]],
    ) -> None:
        self.counts: dict[str, int] = {}
        self._loop, self._network, self._rng, self._zookeeper = loop, network, rng, zookeeper
        self._brokers, self._bookies, self._clients = machines.brokers, machines.bookies, machines.clients
        self._topics = topics
        self._zookeeper_back_at = 0.0
        self._actions: Mapping[Kind, Callable[[float], None]] = {
            Kind.KILL_BROKER: self._kill_broker,
            Kind.PAUSE_BROKER: self._pause_broker,
            Kind.STOP_BROKER: lambda seconds: self._stop(self._broker(), seconds),
            Kind.KILL_BOOKIE: lambda seconds: self._crash(self._bookie(), seconds, "kill"),
            Kind.CUT_POWER: lambda seconds: self._crash(self._bookie(), seconds, "cut_power"),
            Kind.STOP_BOOKIE: lambda seconds: self._stop(self._bookie(), seconds),
            Kind.PARTITION: self._partition,
            Kind.PART_FROM_METADATA: self._part_from_metadata,
            Kind.METADATA_DOWN: self._take_metadata_down,
            Kind.EXPIRE: self._expire,
            Kind.EXPIRE_UNTOLD: self._expire_unnoticed,
            Kind.VISIT: lambda _: self._visit(),
            Kind.UNLOAD: lambda _: self._ask(_unload),
            Kind.SPLIT: lambda _: self._ask(_split),
            Kind.SLOW_DISK: self._slow_disk,
            Kind.STALL_DISK: lambda seconds: self._bookie().disk.stall(min(seconds, 2.5)),
            Kind.FAIL_SYNC: self._fail_sync,
            Kind.SLOW_LINK: self._slow_link,
            Kind.RESET: lambda _: self._reset(half=False),
            Kind.HALF_RESET: lambda _: self._reset(half=True),
            Kind.LEAVE_ONE_COPY: self._leave_one_copy,
            Kind.FULL_DISK: self._fill_disk,
        }

    @property
    def machines(self) -> list[Machine]:
        return [*self._bookies, *self._brokers]

    async def play(self, faults: Sequence[ClusterFault], began: float) -> None:
        """Each at its time, whatever became of those before."""
        for fault in faults:
            await asyncio.sleep(max(0.0, began + fault.at - self._loop.time()))
            self.count(fault.kind.value)
            self._actions[fault.kind](fault.seconds)

    async def tend(self) -> None:
        """Starts machines again when their time has come, for ever."""
        while True:
            await asyncio.sleep(TEND_SECONDS)
            if not self._zookeeper.process.alive and self._loop.time() >= self._zookeeper_back_at:
                self._zookeeper.process.start()
            for machine in self.machines:
                machine.tend()

    def heal(self) -> None:
        """Nothing goes wrong from now on."""
        self._loop.trace.record("fault", "heal")
        self._loop.trace.wake_no_more()
        self._network.heal()
        self._zookeeper_back_at = 0.0
        for machine in self.machines:
            machine.back_at = 0.0
            machine.process.go_on()
        for bookie in self._bookies:
            if bookie.has_failed_disk:
                bookie.process.kill()  # it may take nothing more before its next start
            bookie.disk.heal()
            bookie.disk.make_room()

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self._loop.trace.record("fault", name)

    # Machines to hit

    def _broker(self) -> BrokerMachine:
        """A broker, mostly one that has a topic."""
        owners = [owner for find in self._topics.values() if (owner := find()) is not None]
        if owners and self._rng.random() < 0.8:
            host = self._rng.choice(owners)
            return next(machine for machine in self._brokers if machine.host == host)
        return self._rng.choice(self._brokers)

    def _bookie(self) -> BookieMachine:
        return self._rng.choice(self._bookies)

    # Machines

    def _kill_broker(self, seconds: float) -> None:
        self._crash(self._broker(), seconds, "kill")

    def _crash(self, machine: Machine, seconds: float, how: str) -> None:
        """Now, or in the middle of something."""

        def end() -> None:
            if machine.process.alive:
                machine.back_at = self._loop.time() + seconds
                getattr(machine.process, how)()

        if self._rng.random() < 0.5:
            lines = self._rng.choice((1, 1, 2, 5))
            self._loop.trace.wake_at(self._rng.choice(MOMENTS), lines, lambda: self._loop.hardware_later(0.0, end))
        else:
            end()

    def _leave_one_copy(self, seconds: float) -> None:
        """Lets new writes of the owner reach one bookie alone; then both end before the owner can find others."""
        broker, kept = self._broker(), self._bookie()
        for bookie in self._bookies:
            if bookie is not kept:
                self._network.cut(broker.host, bookie.host)
                self._loop.hardware_later(seconds, self._network.mend, broker.host, bookie.host)
        self._loop.trace.record("fault", f"{broker.host} reaches {kept.host} alone")

        def end() -> None:
            for machine in (broker, kept):
                if machine.process.alive:
                    machine.back_at = self._loop.time() + seconds
                    machine.process.kill()

        self._loop.hardware_later(self._rng.uniform(0.1, ALONE_SECONDS_MAX), end)

    def _stop(self, machine: Machine, seconds: float) -> None:
        machine.back_at = self._loop.time() + seconds
        machine.stop()

    def _pause_broker(self, seconds: float) -> None:
        process = self._broker().process
        process.pause()
        self._loop.hardware_later(seconds, process.go_on)
        if seconds > SESSION_SECONDS:
            for _ in self._topics:
                self._visit_later(SESSION_SECONDS)

    def _take_metadata_down(self, seconds: float) -> None:
        self._zookeeper_back_at = self._loop.time() + seconds
        self._zookeeper.process.kill()

    def _expire(self, _: float) -> None:
        ids = self._zookeeper.session_ids()
        if ids:
            self._zookeeper.expire(self._rng.choice(ids))

    def _expire_unnoticed(self, seconds: float) -> None:
        """Expires a session; for so long the broker believes that it owns its topics, and others may take them."""
        broker = self._broker()
        self._zookeeper.expire(broker.session_id)
        for way in ((broker.host, ZOOKEEPER), (ZOOKEEPER, broker.host)):
            self._network.cut(*way)
            self._loop.hardware_later(max(seconds, 0.5), self._network.mend, *way)
        self._visit_later(0.0)

    def _visit_later(self, seconds: float) -> None:
        self._loop.hardware_later(seconds + self._rng.uniform(0.0, 0.3), self._visit)

    def _visit(self) -> None:
        """Somebody asks for a topic at any broker, which may be the first that it hears of it."""
        topic, machine = self._rng.choice(list(self._topics)), self._rng.choice(self._brokers)
        if machine.is_serving:
            task = machine.process.spawn(self._as_asked(_load(machine, TopicName.parse(topic))), ASKED)
            task.add_done_callback(partial(_must_not_fail, self._loop), context=HARDWARE)

    # The network

    def _partition(self, seconds: float) -> None:
        """Between any two hosts, of which one is a broker or a bookie."""
        one = self._rng.choice((self._broker(), self._broker(), self._bookie())).host
        others = [*(machine.host for machine in self.machines if machine.host != one), *self._clients, ZOOKEEPER]
        self._part(one, self._rng.choice(others), seconds)

    def _part_from_metadata(self, seconds: float) -> None:
        self._part(self._broker().host, ZOOKEEPER, seconds)

    def _part(self, one: str, other: str, seconds: float) -> None:
        ways = self._rng.choice((((one, other), (other, one)), ((one, other),), ((other, one),)))
        self._loop.trace.record("fault", " and ".join(f"{source} to {target}" for source, target in ways))
        for way in ways:
            self._network.cut(*way)
            self._loop.hardware_later(seconds, self._network.mend, *way)

    def _slow_link(self, seconds: float) -> None:
        others = [machine.host for machine in self.machines]
        one, other = self._broker().host, self._rng.choice([*others, ZOOKEEPER, *self._clients])
        for way in ((one, other), (other, one)):
            self._network.slow(*way, self._rng.choice((30.0, 300.0)))
            self._loop.hardware_later(seconds, self._network.slow, *way, 1.0)

    def _reset(self, *, half: bool) -> None:
        """Some connections of a broker; of half of one only one end hears, the other when it sends next."""
        host = self._broker().host
        ends = [end for end in self._network.transports if host in (end.name[0], end.peer_name[0])]
        for end in self._rng.sample(ends, min(len(ends), self._rng.choice((1, 3)))):
            if half:
                self._loop.hardware_later(0.0, end.receive, Mark.RST)
            else:
                self._network.reset(end)

    # Disks

    def _slow_disk(self, seconds: float) -> None:
        disk = self._bookie().disk
        disk.slowness = 30.0
        self._loop.hardware_later(seconds, disk.speed_up)

    def _fill_disk(self, seconds: float) -> None:
        machine = self._bookie()
        left_bytes, is_greedy = self._rng.choice(LEFT_BYTES), self._rng.random() < 0.5
        self._loop.trace.record("fault", f"{machine.host} has {left_bytes} bytes left{' and no more' if is_greedy else ''}")
        machine.disk.fill(left_bytes, is_greedy=is_greedy)
        self._loop.hardware_later(seconds, machine.disk.make_room)

    def _fail_sync(self, _: float) -> None:
        machine = self._bookie()
        if machine.is_serving:
            machine.has_failed_disk = True
            machine.disk.fail("sync", errno.EIO, "", 1)

    # Operators

    def _ask(self, work: "Callable[[BrokerMachine, TopicName, str, random.Random], Coroutine[Any, Any, None]]") -> None:
        """Asks the broker that has the topic, or any."""
        machine, topic = self._broker(), TopicName.parse(self._rng.choice(list(self._topics)))
        heir = self._rng.choice(["", *(f"{each.host}:{WEB_PORT}" for each in self._brokers if each is not machine)])
        if machine.is_serving:
            task = machine.process.spawn(self._as_asked(work(machine, topic, heir, self._rng)), ASKED)
            task.add_done_callback(partial(_must_not_fail, self._loop), context=HARDWARE)

    async def _as_asked(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except REFUSALS as refusal:
            self._loop.trace.record("fault", f"refused: {refusal}")
            return
        self.count("done as asked")


def _must_not_fail(loop: SimLoop, task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        loop.fail(error)


async def _bundle(machine: BrokerMachine, topic: TopicName) -> Bundle:
    assert machine.server is not None
    cut = await machine.server.service.lookup.owners.cut(topic.namespace)
    assert cut is not None
    return cut.of(topic)


async def _load(machine: BrokerMachine, topic: TopicName) -> None:
    """Loads a topic like a client that was sent to this broker."""
    assert machine.server is not None
    found = await machine.server.service.lookup.find(topic, authoritative=True)
    if found.address.broker_url == machine.server.service.lookup.advertised.broker_url:
        await machine.server.service.lifecycle.topic(topic, may_create=True)


async def _unload(machine: BrokerMachine, topic: TopicName, heir: str, _: random.Random) -> None:
    assert machine.server is not None
    await machine.server.service.lookup.owners.unload(topic.namespace, (await _bundle(machine, topic)).range, heir)


async def _split(machine: BrokerMachine, topic: TopicName, _: str, rng: random.Random) -> None:
    assert machine.server is not None
    which = LARGEST if rng.random() < 0.3 else (await _bundle(machine, topic)).range
    await machine.server.service.splits.split(topic.namespace, which, unload=rng.random() < 0.5)
