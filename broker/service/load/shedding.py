"""Shedding: bundles that leave brokers with more than their share. Pure.

ThresholdShedder: a broker whose usage is more than so many points above the mean gives bundles away, those with the most
traffic first, until they make up the excess. TransferShedder: from the most to the least used, until these differ no more than
the target, each bundle with its new owner. Both as Apache's of these names, on a usage that is averaged. Unlike there, a broker
gives away the share of its traffic that its surplus is of its usage, not of a full machine.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from wire.record import record

from .loads import BrokerLoad

Homes = Callable[[str], Collection[str]]
"""The brokers that may have a bundle (`rules`). A bundle that no other broker may have stays; none goes to a broker that
may not have it.
"""

MIN_THROUGHPUT = 10 * (1 << 20)
"""Bytes per second that are worth a move (loadBalancerBundleUnloadMinThroughputThreshold)."""


@record(frozen=True, slots=True)
class Move:
    """A bundle that is to leave `source`; for `destination`, or the broker chosen at the next lookup."""

    bundle: str
    source: str
    destination: str | None = None


@record(frozen=True, slots=True)
class UsageHistory:
    """A broker's usage, averaged over its reports: a peak alone moves nothing (loadBalancerHistoryResourcePercentage)."""

    usage: float

    def after(self, now: float, weight_of_past: float) -> "UsageHistory":
        return UsageHistory(self.usage * weight_of_past + now * (1 - weight_of_past))


@record(frozen=True, slots=True)
class ThresholdRule:
    """`points`: share above the mean that is borne (0.1: ten points)."""

    points: float
    throughput_min: float = MIN_THROUGHPUT


def by_threshold(
    loads: Mapping[str, BrokerLoad],
    usages: Mapping[str, float],
    rested: Collection[str],
    rule: ThresholdRule,
    homes: Homes | None = None,
) -> list[Move]:
    """`usages`: averaged, of all brokers that may take something. `rested`: bundles that were moved lately and stay."""
    if len(usages) < 2:
        return []
    mean = sum(usages.values()) / len(usages)
    moves: list[Move] = []
    for broker, usage in usages.items():
        load = loads.get(broker)
        if load is None or usage <= mean + rule.points or len(load.bundles) < 2:
            continue
        surplus = load.total.msg_throughput * (usage - mean - rule.points + 0.05) / usage
        if surplus >= rule.throughput_min:
            moves += _busiest(broker, load, surplus, rested, homes)
    return moves


def _busiest(broker: str, load: BrokerLoad, throughput: float, rested: Collection[str], homes: Homes | None) -> Iterator[Move]:
    """Moves of the busiest bundles until `throughput` has gone; the last bundle of a broker stays."""
    left = len(load.bundles)
    for name, stats in sorted(load.bundles.items(), key=lambda item: (-item[1].msg_throughput, item[0])):
        if throughput <= 0 or left < 2:
            return
        if name not in rested and (homes is None or set(homes(name)) - {broker}):
            throughput -= stats.msg_throughput
            left -= 1
            yield Move(name, broker)


@record(frozen=True, slots=True)
class TransferRule:
    """`target`: the standard deviation of usages that is borne; `transfers_max` in a round."""

    target: float = 0.25
    transfers_max: int = 10
    throughput_min: float = 0.0


def by_transfer(
    loads: Mapping[str, BrokerLoad],
    usages: Mapping[str, float],
    rested: Collection[str],
    rule: TransferRule,
    homes: Homes | None = None,
) -> list[Move]:
    """Returns moves from the most to the least used broker, while their usages differ by more than the target."""
    usage = dict(usages)
    moved: dict[str, None] = {}
    moves: list[Move] = []
    while len(moves) < rule.transfers_max and len(usage) > 1 and _deviation(usage) > rule.target:
        high = max(usage, key=lambda name: (usage[name], name))
        found = _transfer(loads.get(high, BrokerLoad()), usage, usages[high], high, {*rested, *moved}, rule, homes)
        if found is None:
            del usage[high]  # it has nothing that can go: look at the others
            continue
        name, share, low = found
        moved[name] = None
        moves.append(Move(name, high, low))
        usage[high] -= share
        usage[low] += share
    return moves


def _transfer(
    load: BrokerLoad,
    usage: Mapping[str, float],
    usage_reported: float,
    high: str,
    kept: Collection[str],
    rule: TransferRule,
    homes: Homes | None,
) -> tuple[str, float, str] | None:
    """A bundle, the share of usage that goes with it, and the least used broker that may have one of those that fit."""
    for low in sorted(usage, key=lambda name: (usage[name], name)):
        if low == high:
            return None
        foreign = [name for name in load.bundles if homes is not None and low not in homes(name)]
        found = _best(load, usage[high] - usage[low], usage_reported, {*kept, *foreign}, rule.throughput_min)
        if found is not None:
            return *found, low
    return None


def _best(load: BrokerLoad, gap: float, usage: float, kept: Collection[str], throughput_min: float) -> tuple[str, float] | None:
    """The bundle with the most traffic that fits into half of the gap, and the share of usage that goes with it."""
    if len(load.bundles) < 2:
        return None
    total = load.total.msg_throughput
    shares = {
        name: usage * stats.msg_throughput / total
        for name, stats in load.bundles.items()
        if total > 0 and name not in kept and stats.msg_throughput > throughput_min
    }
    fitting = {name: share for name, share in shares.items() if share <= gap / 2}
    return max(fitting.items(), key=lambda item: (item[1], item[0]), default=None)


def _deviation(usage: Mapping[str, float]) -> float:
    mean = sum(usage.values()) / len(usage)
    return float((sum((each - mean) ** 2 for each in usage.values()) / len(usage)) ** 0.5)
