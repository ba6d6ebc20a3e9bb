"""Failures that others have had, by their number in the catalogue of scenarios, on whole clusters with clients."""

import asyncio
import io
from typing import Any

import pytest

from broker.service.topic_name import TopicName
from simulation.clients.client import Connection, RequestFailed
from simulation.clients.producer import ProducerShape
from simulation.cluster.client import ClusterClient
from simulation.cluster.faults import _load
from simulation.cluster.machines import ASKED, SESSION_SECONDS, BrokerMachine
from simulation.cluster.plan import QUIET_SETTINGS, ClusterFault, ClusterPlan, Kind, TopicPlan
from simulation.cluster.scenario import ClusterScenario, TopicWork
from simulation.planted import PLANTED
from simulation.world.rng import stream
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand

TOPIC = "persistent://public/default/sim-0"
BUNDLE = "/namespace/public/default/0x00000000_0xffffffff"
EXCLUSIVE, WAITING, FENCING = pb.Exclusive, pb.WaitForExclusive, pb.ExclusiveWithFencing
"""Access modes, as the wire has them."""
UNDER_WAY_SECONDS = 0.1
"""An answer that was sent before a session was over has come by then."""
TAKEN_SECONDS_MAX = 1.0
"""Time from the end of the owner's session until another broker has the topic open, where nothing else goes wrong."""
RETRY_SECONDS = 0.2
TRIES_MAX = 100
LAPS = 3
WOKEN_SECONDS_MAX = 5.0


def plan_of(seed: int, *faults: ClusterFault, entries: int = 60) -> ClusterPlan:
    """Two brokers, three bookies, one topic in one bundle, one producer that has many messages under way."""
    quorum = {"EnsembleSize": "3", "WriteQuorum": "3", "AckQuorum": "2"}
    settings = {**QUIET_SETTINGS, "defaultNumberOfNamespaceBundles": "1", "loadBalancerEnabled": "false"}
    settings |= {f"managedLedgerDefault{name}": value for name, value in quorum.items()}
    producers = ((0, ProducerShape("p0", entries, 1, 50, 20, 3.0 / entries, 1)),) if entries else ()
    bookies = {"autoRecoveryDaemonEnabled": "false", "journalAlignmentSize": "512"}
    return ClusterPlan(seed, 2, 3, 1, settings, bookies, (TopicPlan(TOPIC, producers, ()),), True, faults, ("stay", "stay"))


class OwnerHit(ClusterScenario):
    """Knows whom the fault hit, when that one's session was over, whom lookups named, who had the bundle after all healed."""

    def __init__(self, plan: ClusterPlan, sink: io.StringIO | None = None) -> None:
        super().__init__(plan, sink)
        self.named: list[tuple[float, str]] = []
        self.hit: BrokerMachine | None = None
        self.hit_at = self.over_at = 0.0
        self.owner_after = b""
        hit = {Kind.KILL_BROKER: self._kill, Kind.PAUSE_BROKER: self._pause}
        self.faults._actions = {**self.faults._actions, **hit}
        self._expire, self.zookeeper.expire = self.zookeeper.expire, self._note_end  # type: ignore[method-assign]

    def _owner(self) -> BrokerMachine:
        self.hit = next(broker for broker in self.brokers if broker.host == self.topics[0].owner())
        self.hit_at, self._session = self.loop.time(), self.hit.session_id
        return self.hit

    def _kill(self, seconds: float) -> None:
        owner = self._owner()
        owner.back_at = self.loop.time() + seconds
        owner.process.kill()

    def _pause(self, seconds: float) -> None:
        owner = self._owner()
        owner.process.pause()
        self.loop.hardware_later(seconds, owner.process.go_on)
        self.loop.hardware_later(SESSION_SECONDS + UNDER_WAY_SECONDS, self._visit_other)

    def _visit_other(self) -> None:
        """Somebody asks the other broker for the topic."""
        other = next(broker for broker in self.brokers if broker is not self.hit)
        other.process.spawn(self.faults._as_asked(_load(other, TopicName.parse(TOPIC))), ASKED)

    def _note_end(self, session_id: int) -> None:
        if self.hit is not None and session_id == self._session:
            self.over_at = self.over_at or self.loop.time()
        self._expire(session_id)

    def _client(self, topic: TopicWork, who: str) -> ClusterClient:
        hosts = [broker.host for broker in self.brokers]
        return NotingClient(
            self.named, topic.recorder, topic.plan.name, hosts, stream(self.seed, f"{who} of {topic.plan.name}")
        )

    async def _end_brokers(self) -> None:
        found = self.zookeeper.nodes.get(BUNDLE)
        self.owner_after = found.value if found is not None else b""
        await super()._end_brokers()


class NotingClient(ClusterClient):
    """Writes down the broker that each look-up names, and when."""

    def __init__(self, named: list[tuple[float, str]], *rest: Any) -> None:
        super().__init__(*rest)
        self._named = named

    async def _look_up(self, connection: Connection, *, authoritative: bool) -> pb.CommandLookupTopicResponse:
        found = await super()._look_up(connection, authoritative=authoritative)
        self._named.append((asyncio.get_running_loop().time(), found.broker_service_url))
        return found


def an_owner_that_sleeps(seed: int) -> tuple[OwnerHit, str | None, str]:
    """Longer than its session, with messages under way; with what failed, and the trace."""
    trace = io.StringIO()
    scenario = OwnerHit(plan_of(seed, ClusterFault(1.0, Kind.PAUSE_BROKER, 3.5)), trace)
    return scenario, scenario.run().failure, trace.getvalue()


def test_f29_what_an_owner_that_slept_has_under_way_is_fenced_and_the_bundle_stays_with_the_next() -> None:
    """P#23011, P#295, P#6259: it wakes, and neither has anything acknowledged that the next one has not found, as the checker
    sees, nor removes the next one's node. In some it writes before it has heard that its session is over."""
    traces = ""
    for seed in range(4):
        scenario, failure, trace = an_owner_that_sleeps(seed)
        assert failure is None
        assert scenario.hit is not None
        assert scenario.topics[0].checker.truth.takeovers == 1
        assert scenario.owner_after
        assert scenario.hit.host.encode() not in scenario.owner_after
        traces += trace
    assert "EFENCED" in traces


def test_f29_is_red_where_the_next_owner_fences_nothing() -> None:
    with PLANTED["takeover-without-fence"].planted():
        assert any(failure for _, failure, _ in map(an_owner_that_sleeps, range(4)))


@pytest.mark.parametrize("seed", range(4))
def test_f32_no_lookup_names_a_killed_broker_once_its_session_is_over_and_clients_go_on(seed: int) -> None:
    """P#9297. It does not come back until all heals, and the producer has all its receipts (the scenario sees to that)."""
    scenario = OwnerHit(plan_of(seed, ClusterFault(1.0, Kind.KILL_BROKER, 60.0)))
    assert scenario.run().failure is None
    assert scenario.hit is not None
    assert scenario.hit_at < scenario.over_at <= scenario.hit_at + SESSION_SECONDS
    late = [at for at, url in scenario.named if scenario.hit.host in url and at > scenario.over_at + UNDER_WAY_SECONDS]
    assert late == []
    truth = scenario.topics[0].checker.truth
    assert truth.takeovers == 1
    assert scenario.over_at <= truth.last_opened_at <= scenario.over_at + TAKEN_SECONDS_MAX


class Epochs(ClusterScenario):
    """Producers that want a topic for themselves, in all ways, while clients and brokers are killed."""

    def __init__(self, seed: int) -> None:
        super().__init__(plan_of(seed, entries=0))
        self.granted: list[int] = []
        """The epochs of the topic, one for each who got it."""

    async def _play(self) -> None:
        await self._start()
        tending = asyncio.create_task(self.faults.tend())
        for _ in range(LAPS):
            await self._on_host("somebody", self._lap)
        self.faults.heal()
        await self._until(lambda: all(broker.is_serving for broker in self.brokers), "brokers did not start again")
        tending.cancel()
        await self._stop(self.brokers)
        await self._stop(self.bookies)

    async def _lap(self) -> None:
        alone, _ = await self._open(EXCLUSIVE)
        with pytest.raises(RequestFailed, match="existing exclusive producer"):
            await self._ask(await self._way(), EXCLUSIVE)
        waiting, number = await self._open(WAITING)
        alone.abort()
        await self._woken(waiting, number)
        fencing, _ = await self._open(FENCING)
        for epoch in self.granted[:-1]:
            with pytest.raises(RequestFailed, match="ProducerFenced"):
                await self._ask(await self._way(), FENCING, epoch)
        owner = next(broker for broker in self.brokers if broker.host == self.topics[0].owner())
        owner.back_at = self.loop.time() + 2 * SESSION_SECONDS
        owner.process.kill()
        await fencing.lost.wait()

    async def _way(self) -> Connection:
        return await self._client(self.topics[0], "epochs").connection()

    async def _ask(
        self, connection: Connection, mode: pb.ProducerAccessMode, epoch: int | None = None
    ) -> pb.CommandProducerSuccess:
        number = connection.next_id()
        asked = pb.CommandProducer(
            topic=TOPIC, producer_id=number, request_id=number, producer_access_mode=mode, topic_epoch=epoch
        )
        answer = await connection.request(BaseCommand(type=BaseCommand.PRODUCER, producer=asked), number)
        if answer.producer_success.producer_ready:
            self.granted.append(answer.producer_success.topic_epoch)
        return answer.producer_success

    async def _open(self, mode: pb.ProducerAccessMode) -> tuple[Connection, int]:
        """Tries again while no broker serves the topic; returns the connection and the id of the answered request."""
        for _ in range(TRIES_MAX):
            try:
                connection = await self._way()
                answer = await self._ask(connection, mode)
            except (OSError, RequestFailed):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            assert answer.producer_ready == (mode != WAITING)
            return connection, answer.request_id
        raise AssertionError("nobody serves the topic")

    async def _woken(self, waiting: Connection, number: int) -> None:
        """A second answer to the request tells it that the topic is its own."""
        told: asyncio.Future[BaseCommand] = asyncio.get_running_loop().create_future()
        waiting._requests[number] = (told, self.loop.time())
        async with asyncio.timeout(WOKEN_SECONDS_MAX):
            answer = await told
        assert answer.producer_success.producer_ready
        self.granted.append(answer.producer_success.topic_epoch)


@pytest.mark.parametrize("seed", range(3))
def test_f30_whoever_gets_a_topic_for_himself_gets_a_higher_epoch_also_after_its_broker_was_killed(seed: int) -> None:
    """P#15488, P#9554, P#21809: one at a time; who waits is woken when the one before is gone; who comes with an epoch of
    before is refused."""
    scenario = Epochs(seed)
    assert scenario.run().failure is None
    assert len(scenario.granted) == 3 * LAPS
    assert scenario.granted == sorted(set(scenario.granted))
