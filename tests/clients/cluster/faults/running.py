"""One schedule against one cluster, and the verdict."""

import uuid
from dataclasses import dataclass, field
from time import monotonic

from tests.clients.cluster.faults.checker import Topic
from tests.clients.cluster.faults.cluster import FaultCluster
from tests.clients.cluster.faults.copies import Copies
from tests.clients.cluster.faults.performer import Performer
from tests.clients.cluster.faults.schedule import Schedule
from tests.clients.cluster.faults.traffic import Hangs, Traffic

TOPICS = 4
HEALED_SECONDS_MAX = 300.0
"""After everything is healed, for each of: a message goes through, all is answered, all is received, all copies are there."""


@dataclass(slots=True)
class Verdict:
    """Verdict on one run. The cluster survived when nothing is wrong."""

    wrong: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    acknowledged: int = 0
    sent: int = 0
    troubles: list[str] = field(default_factory=list)
    """Errors that clients got meanwhile."""
    fault_seconds: float = 0.0
    healing_seconds: float = 0.0
    """Time from the end of the last fault until nothing is left to wait for."""
    records: dict[str, Topic] = field(default_factory=dict)
    """Record of each topic, with the answers that producers got: for other judges."""


def survive(cluster: FaultCluster, copies: Copies, schedule: Schedule, seconds_max: float = HEALED_SECONDS_MAX) -> Verdict:
    """Performs it under traffic on topics of its own."""
    name = uuid.uuid4().hex[:12]
    topics = [f"persistent://public/default/faults-{name}-{number}" for number in range(TOPICS)]
    verdict, performer = Verdict(), Performer(cluster)
    verdict.story = performer.story
    with Traffic(cluster.service_url, topics, cluster.directory / "clients.log") as traffic:
        try:
            traffic.start(seconds_max)
            begin = monotonic()
            performer.perform(schedule)
            verdict.fault_seconds = monotonic() - begin
            verdict.wrong += performer.wrong
            verdict.wrong += cluster.ended()
            traffic.more(seconds_max)
            traffic.end(seconds_max)
        except Hangs as error:
            verdict.wrong.append(str(error))
        verdict.wrong += traffic.faults()
        verdict.records = traffic.topics
        for topic in traffic.topics.values():
            verdict.acknowledged += len(topic.acknowledged)
            verdict.sent += sum(topic.sent.values())
            verdict.troubles += [*topic.refused, *topic.troubles]
    verdict.wrong += copies.lacking(seconds_max)
    verdict.healing_seconds = monotonic() - begin - verdict.fault_seconds
    return verdict
