"""Scenario: one run from a seed. A server and its clients work while faults happen; then all is healed and must end well.

Phases: subscriptions are made; work and faults; healing, after which producers must get their receipts (liveness); consumers
leave; each subscription is drained by a consumer that acknowledges everything; the server stops cleanly. Time is virtual and
bounded.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TextIO

from broker.topic.contract import SubscriptionType
from simulation.checks.checker import Checker
from simulation.checks.history import DrainEnded, DrainStarted, Stop, Violation
from simulation.checks.memory import watch_in_force
from simulation.checks.model import Publishes
from simulation.clients.client import Client, Recorder
from simulation.clients.consumer import ConsumerShape, SimConsumer
from simulation.clients.producer import SimProducer
from simulation.standalone.faults import Faults
from simulation.standalone.machine import ServerMachine
from simulation.standalone.plan import FaultKind, Plan, draw_plan
from simulation.world.bounded import bounded
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import SimProcess, start_program
from simulation.world.rng import stream
from simulation.world.trace import Trace

TOPIC = "persistent://public/default/sim"
AUDIT = "audit"
"""A subscription without consumers until the end: it must then get every acknowledged message."""
LIVENESS_SECONDS_MAX = 40.0
"""After healing: time-outs of requests and keep-alives of half-open connections have to pass first."""
CALLBACKS_MAX = 3_000_000
ENDING = frozenset({FaultKind.KILL, FaultKind.POWER_CUT, FaultKind.RESTART, FaultKind.DISK_ERROR, FaultKind.FULL_DISK})
"""Faults in which the server ends, or which it may not outlive."""
SETTLE_SECONDS = 5.0
"""Before it is looked what the server holds: acknowledgements wait for their turn to be stored."""


class Scenario:
    """The run of one plan."""

    machine: type[ServerMachine] = ServerMachine

    def __init__(self, plan: Plan, sink: TextIO | None = None, publishes: Publishes | None = None) -> None:
        self.plan = plan
        self.loop = SimLoop(stream(plan.seed, "loop"), Trace(sink), CALLBACKS_MAX, is_slow=plan.is_slow)
        self.network = SimNetwork(self.loop, stream(plan.seed, "network"))
        self.server = self.machine(self.loop, self.network, plan.seed, plan.settings)
        self.server.disk.seconds["sync"] = plan.sync_seconds
        self.checker = Checker(publishes)
        self.recorder = Recorder(self.checker, self.loop.trace, self.loop.time)
        self.faults = self._make_faults()
        self._producers: list[SimProducer] = []
        self._consumers: list[SimConsumer] = []

    def _make_faults(self) -> Faults:
        return Faults(self.loop, self.network, self.server, self.recorder, stream(self.plan.seed, "faults"), TOPIC)

    def run(self) -> Outcome:
        return play(self.plan.seed, self.loop, self._play(), self.recorder.kinds)

    async def _play(self) -> None:
        await self.server.start()
        await self._on_host("setup", self._make_subscriptions)
        watch = watch_in_force()
        if watch is not None:
            watch.begin(self._held_by_server())
        programs = [self._start_client(number) for number in range(self.plan.clients)]
        await self.faults.play(self.plan.faults)
        await self._until(self._has_published, "producers got no receipts after healing")
        await self._until(lambda: self.checker.left_behind() is None, "somebody did not get a message that is for him")
        for consumer in self._consumers:
            consumer.stop()
        await self._until(lambda: not any(program.alive for program in programs), "consumers could not close")
        if is_killed_before_draining(self.plan.seed):
            await self.faults.restart(Stop.KILL)
        for name, kind in sorted({**self.plan.subscriptions, AUDIT: SubscriptionType.EXCLUSIVE}.items()):
            await self._on_host(f"drain-{name}", functools.partial(self._drain, name, kind))
        if watch is not None:
            await asyncio.sleep(SETTLE_SECONDS)
            watch.end(self._held_by_server())
        await self.server.stop()

    def _held_by_server(self) -> list[object]:
        return [self.server.standalone, *self.loop.unfinished(self.server.process.life)]

    # Clients

    def _start_client(self, number: int) -> SimProcess:
        client = Client(self.recorder, TOPIC)
        works: list[Coroutine[Any, Any, None]] = []
        for index, (where, shape) in enumerate(self.plan.producers):
            if where == number:
                producer = SimProducer(client, shape, stream(self.plan.seed, f"producer {index}"), index)
                self._producers.append(producer)
                works.append(producer.run())
        for index, (where, consumer_shape) in enumerate(self.plan.consumers):
            if where == number:
                consumer = SimConsumer(client, consumer_shape, stream(self.plan.seed, f"consumer {index}"), index)
                self._consumers.append(consumer)
                works.append(consumer.run())

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(work)

        program = SimProcess(self.loop, self.network, f"client-{number}", None, main)
        program.start()
        return program

    def _has_published(self) -> bool:
        return all(producer.is_done for producer in self._producers)

    async def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = self.loop.time() + LIVENESS_SECONDS_MAX
        while not condition():
            if self.loop.time() > deadline:
                left = self.checker.left_behind() or "none"
                raise Violation(f"not live: {otherwise} within {LIVENESS_SECONDS_MAX:.0f} s (left behind: {left})")
            await asyncio.sleep(0.05)

    async def _on_host(self, host: str, work: Callable[[], Awaitable[None]]) -> None:
        program = start_program(self.loop, self.network, host, work)
        await self._until(lambda: not program.alive, f"{host} did not end")

    # Beginning and end

    async def _make_subscriptions(self) -> None:
        client = Client(self.recorder, TOPIC)
        for name, kind in sorted({**self.plan.subscriptions, AUDIT: SubscriptionType.EXCLUSIVE}.items()):
            consumer = SimConsumer(client, _plain(name, kind), stream(self.plan.seed, f"setup {name}"), 0)
            connection = await client.connection()
            await consumer.open_and_close(connection)

    async def _drain(self, name: str, kind: SubscriptionType) -> None:
        self.recorder.record(DrainStarted(self.recorder.clock(), name))
        client = Client(self.recorder, TOPIC)
        consumer = SimConsumer(client, _plain(name, kind), stream(self.plan.seed, f"drain {name}"), 0)
        task = asyncio.create_task(consumer.run())
        await consumer.drained.wait()
        consumer.stop()
        await task
        self.recorder.record(DrainEnded(self.recorder.clock(), name))


def _plain(name: str, kind: SubscriptionType) -> ConsumerShape:
    """A consumer that acknowledges everything and does nothing else."""
    return ConsumerShape(name, kind, "drain", 100, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.02)


def is_killed_before_draining(seed: int) -> bool:
    return stream(seed, "drain").random() < 0.5


def lives_through(plan: Plan) -> bool:
    """Whether one server takes all of the plan: what it holds at the end came since its start."""
    return not ENDING & {fault.kind for fault in plan.faults} and not is_killed_before_draining(plan.seed)


@bounded
def run_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a standalone that this seed stands for."""
    return Scenario(draw_plan(seed), sink).run()
