"""Placement: the broker that is asked to serve a bundle without an owner. Pure.

As Apache's LeastLongTermMessageRate: the broker whose bundles have had the least messages per second for long, those that it
was just asked to take included; a broker with an exhausted resource is asked only if all are exhausted. Brokers with equal
load, as in an idle cluster, take turns by the hash of the bundle's place, so that each gets as many as any other.
"""

from collections.abc import Collection, Mapping

from ...ownership.bundles import Bundle, Bundles, place
from ..loads import BrokerLoad, BundleHistory

DEFAULT_RATE = 100.0
"""Messages per second each way assumed for an unknown bundle (Apache's defaultStats 50 in and 50 out)."""


def long_term_rate(history: BundleHistory | None) -> float:
    return DEFAULT_RATE if history is None or not history.long.samples else history.long.msg_rate


def least_loaded(
    cut: Bundles,
    bundle: Bundle,
    candidates: Collection[str],
    loads: Mapping[str, BrokerLoad],
    histories: Mapping[str, BundleHistory],
    asked: Mapping[str, Collection[str]],
    overloaded_share: float,
) -> str | None:
    """`asked`: by broker, the bundles that it is about to take. None without candidates."""

    def rate(broker: str) -> float:
        load = loads.get(broker, BrokerLoad())
        return sum(long_term_rate(histories.get(name)) for name in {*load.bundles, *asked.get(broker, ())})

    fresh = [broker for broker in candidates if loads.get(broker, BrokerLoad()).usage.greatest < overloaded_share]
    rates = {broker: rate(broker) for broker in fresh or candidates}
    least = min(rates.values(), default=0.0)
    return place(cut, bundle, [broker for broker, each in rates.items() if each <= least])
