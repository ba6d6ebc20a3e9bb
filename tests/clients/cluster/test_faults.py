"""A whole cluster under five short schedules of faults, and two brokers that both believe they own a topic.

Longer ones are a command: benchmarks/cluster/faults.py. Results: docs/results/2026-11-21-cluster-faults.md.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

import pulsar
import pytest

from tests.clients.cluster.faults.checker import Topic
from tests.clients.cluster.faults.cluster import FaultCluster, fault_cluster
from tests.clients.cluster.faults.copies import Copies
from tests.clients.cluster.faults.members import Member
from tests.clients.cluster.faults.requests import serving
from tests.clients.cluster.faults.running import survive
from tests.clients.cluster.faults.schedule import Kind, generated
from tests.clients.cluster.faults.traffic import KEPT, OPERATION_SECONDS_MAX, Consumer, Publisher
from tests.clients.python_client import until

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

SEEDS = range(2, 7)
"""Five that have every kind of fault between them."""
LASTS_MS, FAULTS_MAX = 6000, 4
SECONDS_MAX = 180.0
"""Longest time of each wait."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("faults")) as started:
        yield started


def test_the_five_schedules_have_every_kind_of_fault() -> None:
    assert {fault.kind for seed in SEEDS for fault in generated(seed, LASTS_MS, FAULTS_MAX).faults} == set(Kind)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_out_of_order_and_nobody_hangs(cluster: FaultCluster, seed: int) -> None:
    schedule = generated(seed, LASTS_MS, FAULTS_MAX)
    verdict = survive(cluster, Copies(cluster.servers), schedule)
    assert verdict.wrong == [], "\n".join([str(schedule), *verdict.story, *verdict.troubles])
    assert verdict.acknowledged > 0


def patient_client(url: str) -> pulsar.Client:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(url, logger=logger, operation_timeout_seconds=OPERATION_SECONDS_MAX)


@contextmanager
def parted_from_zookeeper(cluster: FaultCluster, member: Member) -> Iterator[None]:
    """Member that cannot reach ZooKeeper: it is not told that its session has ended."""
    with ExitStack() as parted:
        for name in cluster.shape.zookeepers:
            cluster.network.part(member.name, name)
            parted.callback(cluster.network.join, member.name, name)
        yield


@contextmanager
def asleep(_: FaultCluster, member: Member) -> Iterator[None]:
    """Member that sleeps: it wakes with messages to add, and does not know how late it is."""
    member.pause()
    try:
        yield
    finally:
        member.go_on()


@pytest.mark.parametrize("away", [parted_from_zookeeper, asleep])
def test_one_of_two_brokers_that_believe_they_own_a_topic_gets_adds_acknowledged(
    cluster: FaultCluster, away: Callable[[FaultCluster, Member], AbstractContextManager[None]]
) -> None:
    topic = f"persistent://public/default/owned-twice-{uuid.uuid4().hex[:12]}"
    first = owner_of(cluster, topic, cluster.brokers[0], None)
    other = next(each for each in cluster.brokers if each is not first)
    record = Topic()
    with ExitStack() as running:
        early, late = (patient_client(f"pulsar://{each.address}:6650") for each in (first, other))
        running.callback(early.shutdown)
        running.callback(late.shutdown)
        early.subscribe(topic, KEPT).close()  # from now on nothing is trimmed
        publishers = [Publisher(early, topic, "early", record), Publisher(late, topic, "late", record)]
        for publisher in publishers:
            running.callback(publisher.end)
        publishers[0].thread.start()
        until(lambda: acknowledged(record, "early") > 10, SECONDS_MAX)
        with away(cluster, first):
            owner_of(cluster, topic, other, first)
            publishers[1].thread.start()
            until(lambda: acknowledged(record, "late") > 10, SECONDS_MAX)
        for publisher in publishers:
            already = acknowledged(record, publisher.name)
            until(lambda: acknowledged(record, publisher.name) > already + 10, SECONDS_MAX)  # noqa: B023
            publisher.end()
        until(lambda: not record.unanswered(), SECONDS_MAX)
        reader = Consumer(late, topic, KEPT, record)
        running.callback(reader.thread.join)
        running.callback(reader.end)
        reader.thread.start()
        with suppress(AssertionError):  # what is missing is told below
            until(lambda: not record.unseen_by(KEPT), SECONDS_MAX)
    assert record.faults() == []


def owner_of(cluster: FaultCluster, topic: str, asked: Member, before: Member | None) -> Member:
    """Owner of the topic, once it is another than before."""
    found: list[Member | None] = []

    def is_there() -> bool:
        found[:] = [serving(cluster, topic, asked)]
        return found[0] not in (None, before)

    until(is_there, SECONDS_MAX)
    assert found[0] is not None
    return found[0]


def acknowledged(record: Topic, producer: str) -> int:
    return sum(message.producer == producer for message in record.acknowledged.copy())
