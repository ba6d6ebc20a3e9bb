"""Defects that seeds have found: each seed, and a scenario that explains it."""

import asyncio

import pytest

from broker.topic.contract import SubscriptionType
from simulation.checks.checker import Checker
from simulation.checks.history import ActiveNotified, Event
from simulation.clients.client import Client, Connection, Recorder
from simulation.clients.consumer import ConsumerShape, SimConsumer
from simulation.standalone.machine import ServerMachine
from simulation.standalone.scenario import TOPIC, run_seed
from simulation.world.rng import stream
from simulation.world.trace import Trace
from tests.simulation.worlds import World, run
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand

SEEDS = {
    10155: "the notice of who is active, with the answer to SUBSCRIBE in one read, was not taken by the simulated consumer",
    20028: "an unload after a restart, before anybody came: TopicNotFound",
    20152: "the same after a kill",
    117: "the checker: an acknowledgement that was sent while a seek was on its way came before it",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_that_failed_once_passes(seed: int) -> None:
    assert run_seed(seed).failure is None, SEEDS[seed]


def test_unloading_what_nobody_has_loaded_since_the_restart_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        server = ServerMachine(world.loop, world.network, 0, {})
        await server.start()
        unloading = server.unload(TOPIC)
        assert unloading is not None
        await unloading
        await server.stop()

    run(scenario)


class EagerConnection:
    """A connection that has the notice and the answer in one read."""

    number = 1

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.consumers: dict[int, SimConsumer] = {}

    def next_id(self) -> int:
        return 1

    def send(self, command: BaseCommand) -> None:
        """FLOW."""

    async def request(self, command: BaseCommand, request_id: int) -> BaseCommand:
        change = pb.CommandActiveConsumerChange(consumer_id=0, is_active=True)
        self.consumers[0].on_command(BaseCommand(type=BaseCommand.ACTIVE_CONSUMER_CHANGE, active_consumer_change=change), b"")
        return BaseCommand(type=BaseCommand.SUCCESS)


class Remembering(Checker):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Event] = []

    def handle(self, event: Event) -> None:
        self.seen.append(event)


def test_a_consumer_that_is_told_at_once_that_it_is_active_knows_it() -> None:
    async def scenario(world: World) -> None:
        checker = Remembering()
        client = Client(Recorder(checker, Trace(), world.loop.time), TOPIC)
        shape = ConsumerShape("s", SubscriptionType.FAILOVER, "c", 1, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02)
        consumer = SimConsumer(client, shape, stream(0, "consumer"), 0)
        connection: Connection = EagerConnection()  # type: ignore[assignment]  # as much of one as it takes
        await consumer._subscribe(connection)
        told = checker.seen[-1]
        assert isinstance(told, ActiveNotified)
        assert told.is_active

    run(scenario)
