"""ClusterScenario: whole clusters, one from each seed. Two or three brokers, three or four bookies, metadata, and clients.

Brokers and bookies are those of `bin/pulsar`, each on a host of its own with a session of its own (`cluster_session`); clients
look up, follow redirects, reconnect, and know what was acknowledged. Phases: the cluster starts, subscriptions are made; work
and faults; healing, after which every producer must get its receipts and every consumer what is for it, within a bound;
consumers leave; brokers end in one way or another; each subscription is drained; everything stops cleanly, and leaves nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TextIO, TypeVar
from unittest.mock import patch

from broker.service.topic_name import TopicName
from broker.topic.contract import SubscriptionType
from cli.broker import load as broker_load
from cli.initialize_cluster.metadata import ClusterMetadata, NewCluster
from managed_ledger.contract import ManagedLedger
from metadata.zookeeper.store import ZooKeeperStore
from simulation.checks.history import DrainEnded, DrainStarted, Violation
from simulation.clients.client import Recorder, RequestFailed
from simulation.clients.consumer import ConsumerShape, SimConsumer
from simulation.clients.producer import SimProducer
from simulation.cluster.checker import ClusterChecker
from simulation.cluster.client import ClusterClient
from simulation.cluster.faults import ClusterFaults, Machines
from simulation.cluster.machines import (
    BROKER_PORT,
    METADATA_SECONDS_MAX,
    SESSION_SECONDS,
    WEB_PORT,
    BookieMachine,
    BrokerMachine,
    Machine,
    SomeUsage,
)
from simulation.cluster.plan import WORK_SECONDS, ClusterPlan, TopicPlan, draw_cluster_plan
from simulation.cluster.session import SimSession
from simulation.cluster.zookeeper import SimZooKeeper
from simulation.world.bounded import bounded
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import SimProcess, start_program
from simulation.world.rng import stream
from simulation.world.trace import Trace

T = TypeVar("T")
AUDIT = "audit"
LIVE_SECONDS_MAX = 40.0
"""After healing, and for each step after that: sessions, time-outs of requests and keep-alives have to pass first."""
LOOK_SECONDS = 0.05
RETRY_SECONDS = 0.3
CALLBACKS_MAX = 4_000_000


class TopicWork:
    """One topic: what is known of it, and who works on it."""

    def __init__(self, scenario: "ClusterScenario", plan: TopicPlan) -> None:
        self.plan = plan
        self.checker = ClusterChecker(plan.name)
        self.log_name = TopicName.parse(plan.name).managed_ledger_name
        self.recorder = Recorder(self.checker, scenario.loop.trace, scenario.loop.time, scenario.events)
        self.producers: list[SimProducer] = []
        self.consumers: list[SimConsumer] = []
        self.subscriptions = dict(plan.subscriptions)
        if scenario.plan.has_audit:
            self.subscriptions[AUDIT] = SubscriptionType.EXCLUSIVE

    def owner(self) -> str | None:
        """The host of the broker that opened it last."""
        life = self.checker.truth.last_life
        return None if life is None else life.partition("#")[0]


class ClusterScenario:
    """The run of one plan."""

    def __init__(self, plan: ClusterPlan, sink: TextIO | None = None) -> None:
        self.plan, self.seed = plan, plan.seed
        self.events: dict[str, int] = {}
        self.loop = SimLoop(stream(plan.seed, "loop"), Trace(sink), CALLBACKS_MAX)
        self.network = SimNetwork(self.loop, stream(plan.seed, "network"))
        self.zookeeper = SimZooKeeper(self.loop, self.network)
        where = self.loop, self.network, self.zookeeper
        self.bookies = [
            BookieMachine(*where, f"bookie-{number}", plan.seed, plan.bookie_settings) for number in range(plan.bookies)
        ]
        self.brokers = [
            BrokerMachine(*where, f"broker-{number}", plan.seed, plan.broker_settings, self._on_opened)
            for number in range(plan.brokers)
        ]
        self.topics = [TopicWork(self, topic) for topic in plan.topics]
        self.faults = ClusterFaults(
            self.loop,
            self.network,
            stream(plan.seed, "faults"),
            self.zookeeper,
            Machines(self.brokers, self.bookies, [_client_host(number) for number in range(plan.clients)]),
            {topic.plan.name: topic.owner for topic in self.topics},
        )

    def run(self) -> Outcome:
        usage = stream(self.seed, "usage")
        with patch.object(broker_load, "LinuxUsage", lambda _: SomeUsage(usage)):
            return play(self.seed, self.loop, self._play(), self.events)

    async def _play(self) -> None:
        await self._start()
        programs = [self._client_program(number) for number in range(self.plan.clients)]
        tending = asyncio.create_task(self.faults.tend())
        began = self.loop.time()
        await self.faults.play(self.plan.faults, began)
        await asyncio.sleep(max(0.0, began + WORK_SECONDS - self.loop.time()))
        self.faults.heal()
        await self._recover(programs)
        tending.cancel()
        await self._end_brokers()
        await asyncio.gather(*(self._drain(topic, name) for topic in self.topics for name in sorted(topic.subscriptions)))
        for topic in self.topics:
            topic.checker.check_order()
            await self._until(partial(self._has_one_owner, topic), f"{topic.plan.name} is owned by two", self.brokers)
        await self._stop(self.brokers)
        await self._stop(self.bookies)
        self._sum_up()

    # Beginning

    async def _start(self) -> None:
        self.zookeeper.process.start()
        await self._on_host("operator", self._initialise)
        for bookie in self.bookies:
            bookie.start()
        await self._until(lambda: all(bookie.is_serving for bookie in self.bookies), "bookies did not start")
        for broker in self.brokers:
            broker.start()
        await self._until(lambda: all(broker.is_serving for broker in self.brokers), "brokers did not start")
        for topic in self.topics:
            await self._on_host("setup", partial(self._make_subscriptions, topic))

    async def _initialise(self) -> None:
        """`bin/pulsar initialize-cluster-metadata`."""
        store = await ZooKeeperStore.open(partial(SimSession, self.zookeeper, SESSION_SECONDS), METADATA_SECONDS_MAX)
        bundles = int(self.plan.broker_settings["defaultNumberOfNamespaceBundles"])
        urls = f"http://broker-0:{WEB_PORT}", f"pulsar://broker-0:{BROKER_PORT}"
        new = NewCluster(self.plan.broker_settings["clusterName"], urls[0], broker_service_url=urls[1], bundle_count=bundles)
        await ClusterMetadata(store, store, stream(self.seed, "operator")).initialise(new)
        await store.close()

    async def _make_subscriptions(self, topic: TopicWork) -> None:
        client = self._client(topic, "setup")
        for name, kind in sorted(topic.subscriptions.items()):
            consumer = SimConsumer(client, _plain(name, kind), stream(self.seed, f"setup {topic.plan.name} {name}"), 0)
            while True:
                try:
                    await consumer.open_and_close(await client.connection())
                    break
                except (OSError, RequestFailed):
                    await asyncio.sleep(RETRY_SECONDS)

    def _client_program(self, number: int) -> SimProcess:
        works: list[Coroutine[Any, Any, None]] = []
        for topic in self.topics:
            client = self._client(topic, f"client {number}")
            for index, (where, shape) in enumerate(topic.plan.producers):
                if where == number:
                    rng = stream(self.seed, f"producer {topic.plan.name} {index}")
                    topic.producers.append(SimProducer(client, shape, rng, index))
                    works.append(topic.producers[-1].run())
            for index, (where, consumer_shape) in enumerate(topic.plan.consumers):
                if where == number:
                    rng = stream(self.seed, f"consumer {topic.plan.name} {index}")
                    topic.consumers.append(SimConsumer(client, consumer_shape, rng, index))
                    works.append(topic.consumers[-1].run())

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(work)

        program = SimProcess(self.loop, self.network, _client_host(number), None, main)
        program.start()
        return program

    def _client(self, topic: TopicWork, who: str) -> ClusterClient:
        rng = stream(self.seed, f"{who} of {topic.plan.name}")
        return ClusterClient(topic.recorder, topic.plan.name, [broker.host for broker in self.brokers], rng)

    # The truth

    def _on_opened(self, life: str, began: float, log: ManagedLedger) -> Callable[[], None]:
        checker = next((topic.checker for topic in self.topics if topic.log_name == log.name), None)
        if checker is None:
            return lambda: None
        self.loop.trace.record(life, f"opened {log.name}")
        ledgers = [(ledger.ledger_id, ledger.entries) for ledger in log.ledgers()]
        opening = self._judged(lambda: checker.on_opened(life, began, self.loop.time(), ledgers, log.cursors))
        if opening is None:
            return lambda: None
        return lambda: self._judged(lambda: checker.truth.on_confirmed(opening, log.last_confirmed))

    def _judged(self, judge: Callable[[], T]) -> T | None:
        """A violation seen from within a broker is no error of the broker's: it ends the run."""
        try:
            return judge()
        except Violation as violation:
            self.loop.fail(violation)
            return None

    # Healing and the end

    async def _recover(self, programs: list[SimProcess]) -> None:
        machines: list[Machine] = self.faults.machines
        await self._until(lambda: all(each.is_serving for each in machines), "a machine does not serve after healing", machines)
        done = lambda: all(producer.is_done for topic in self.topics for producer in topic.producers)  # noqa: E731
        await self._until(done, "producers got no receipts after healing")
        await self._until(lambda: self._left_behind() is None, "somebody did not get a message that is for him")
        for topic in self.topics:
            for consumer in topic.consumers:
                consumer.stop()
        await self._until(lambda: not any(program.alive for program in programs), "consumers could not close")

    async def _end_brokers(self) -> None:
        """Then all of them are up again."""
        for broker, end in zip(self.brokers, self.plan.ends, strict=True):
            if end == "kill":
                broker.process.kill()
            elif end == "stop":
                await self._stop([broker])
        for broker in self.brokers:
            if not broker.process.alive:
                broker.start()
        tending = asyncio.create_task(self.faults.tend())
        await self._until(lambda: all(each.is_serving for each in self.brokers), "brokers did not start again")
        tending.cancel()

    async def _drain(self, topic: TopicWork, name: str) -> None:
        number = self.topics.index(topic)
        await self._on_host(f"drain-{number}-{name}", partial(self._drain_here, topic, name))

    async def _drain_here(self, topic: TopicWork, name: str) -> None:
        topic.recorder.record(DrainStarted(topic.recorder.clock(), name))
        rng = stream(self.seed, f"drain {topic.plan.name} {name}")
        consumer = SimConsumer(self._client(topic, f"drain {name}"), _plain(name, topic.subscriptions[name]), rng, 0)
        task = asyncio.create_task(consumer.run())
        await consumer.drained.wait()
        consumer.stop()
        await task
        topic.recorder.record(DrainEnded(topic.recorder.clock(), name))

    def _has_one_owner(self, topic: TopicWork) -> bool:
        """Or none: the owner before has seen that it is another's."""
        name = TopicName.parse(topic.plan.name)
        return sum(each.server is not None and each.server.service.lookup.owners.serves(name) for each in self.brokers) < 2

    async def _stop(self, machines: "list[BrokerMachine] | list[BookieMachine]") -> None:
        for machine in machines:
            machine.stop()
        await self._until(lambda: not any(each.process.alive for each in machines), "a process did not stop", machines)

    async def _on_host(self, host: str, work: Callable[[], Awaitable[None]]) -> None:
        program = start_program(self.loop, self.network, host, work)
        await self._until(lambda: not program.alive, f"{host} did not end")

    async def _until(self, condition: Callable[[], bool], otherwise: str, machines: Any = ()) -> None:
        deadline = self.loop.time() + LIVE_SECONDS_MAX
        while not condition():
            if self.loop.time() > deadline:
                states = ", ".join(f"{each.host} {'serves' if each.is_serving else 'does not'}" for each in machines)
                left = self._left_behind() or "none"
                raise Violation(f"not live: {otherwise} within {LIVE_SECONDS_MAX:.0f} s ({states or f'left behind: {left}'})")
            await asyncio.sleep(LOOK_SECONDS)

    def _left_behind(self) -> str | None:
        return next(filter(None, (topic.checker.left_behind() for topic in self.topics)), None)

    def _sum_up(self) -> None:
        for name, count in self.faults.counts.items():
            self.events[f"fault {name}"] = count
        self.events["takeovers"] = sum(topic.checker.truth.takeovers for topic in self.topics)
        self.events["late confirms"] = sum(topic.checker.truth.late_confirms for topic in self.topics)
        self.events["sessions expired"] = self.zookeeper.expired
        self.events["refused starts"] = sum(machine.refused_starts for machine in self.faults.machines)


def _client_host(number: int) -> str:
    return f"client-{number}"


def _plain(name: str, kind: SubscriptionType) -> ConsumerShape:
    """A consumer that acknowledges everything and does nothing else."""
    return ConsumerShape(name, kind, "drain", 100, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.02)


@bounded
def run_cluster_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a cluster that this seed stands for."""
    return ClusterScenario(draw_cluster_plan(seed), sink).run()
