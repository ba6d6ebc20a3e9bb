"""Parts of load balancing on houses of one town, for tests: reporters, leaders, and brokers with topics."""

from collections.abc import Callable

from broker.service.load.leader import LoadLeader, MoveFailed, leader_claim
from broker.service.load.loads import BrokerLoad, BundleStats, Usage
from broker.service.load.reporter import LoadReporter, ServedTopics
from broker.service.load.settings import LoadSettings
from broker.service.load.shedding import Move
from broker.service.ownership.bundles import Bundles
from broker.service.topic_name import NamespaceName
from broker.topic.statistics.topic_stats import TopicTraffic
from ports.clock import RealClock
from ports.metrics.machine_usage import MachineUse
from tests.broker.service.houses import TOPICS, House

DEFAULT = NamespaceName("public", "default")
MB = float(1 << 20)
DEFAULTS = LoadSettings()


class FixedUsage:
    """Machine use that a test sets."""

    def __init__(self, cpu: float = 0.1) -> None:
        self.cpu = cpu

    def sample(self) -> MachineUse:
        return MachineUse(self.cpu)


async def nothing(_: object) -> None:
    """Ignores a look."""


def reporter(house: House, settings: LoadSettings = DEFAULTS, usage: FixedUsage | None = None) -> LoadReporter:
    served = ServedTopics(house.service.catalogue.loaded_topics, house.bundles.known_of)
    return LoadReporter(house.members.own_id, house.board, settings, RealClock(), usage or FixedUsage(), served, nothing)


def leader(house: House, carry_out: Callable[[Move], object], settings: LoadSettings = DEFAULTS) -> LoadLeader:
    async def perform(move: Move) -> None:
        failure = carry_out(move)
        if isinstance(failure, MoveFailed):
            raise failure

    claim = leader_claim(house.store, house.sessions, house.members.own_id, house.advertised)
    return LoadLeader(claim, house.members, house.board, house.policies, settings, perform)


async def cut_of(house: House) -> Bundles:
    cut = await house.service.lookup.owners.cut(DEFAULT)
    assert cut is not None
    return cut


async def with_topics(house: House, traffic: TopicTraffic) -> None:
    """Every topic is served by this one, and does as much."""
    for topic in TOPICS:
        await house.follow(topic, {house.advertised.broker_url: house})
        await house.load(topic)
    for loaded in house.topics.topics.values():
        loaded.traffic_now = traffic


def busy_and_idle(high: House, low: House) -> dict[str, BrokerLoad]:
    bundles = {f"public/default/{index}": BundleStats(msg_throughput_in=30 * MB) for index in range(4)}
    return {high.members.own_id: BrokerLoad(Usage(0.9), bundles), low.members.own_id: BrokerLoad(Usage(0.1))}
