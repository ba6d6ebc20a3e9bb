"""Anti-affinity: the namespaces of one group are spread over failure domains, and within these over brokers. Pure.

Apache's LoadManagerShared.filterAntiAffinityGroupOwnedBrokers, which counts the namespaces of a group on each broker, the one
that is placed included, as often as a broker has any bundle of them.
"""

from collections.abc import Collection, Mapping

DEFAULT_DOMAIN = "default"
"""Of brokers that are in none."""


def namespace_counts(group: str, groups: Mapping[str, str], hosted: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Returns the number of namespaces of the group by broker, of brokers that have any. `groups`: by namespace; `hosted`:
    namespaces by broker. Names differ by more than their case."""
    counts = {
        broker: sum(groups.get(namespace, "").lower() == group.lower() for namespace in set(namespaces))
        for broker, namespaces in hosted.items()
    }
    return {broker: count for broker, count in counts.items() if count}


def spread(candidates: Collection[str], counts: Mapping[str, int], domains: Mapping[str, str]) -> list[str]:
    """The candidates in the domains with the least, and of these the ones with the least. `domains`: by broker; empty: there
    are none to be spread over."""
    kept = list(candidates)
    if domains:
        in_domain: dict[str, int] = {}
        for broker in kept:
            domain = domains.get(broker, DEFAULT_DOMAIN)
            in_domain[domain] = in_domain.get(domain, 0) + counts.get(broker, 0)
        least = min(in_domain.values(), default=0)
        kept = [broker for broker in kept if in_domain[domains.get(broker, DEFAULT_DOMAIN)] == least]
    least = min((counts.get(broker, 0) for broker in kept), default=0)
    return [broker for broker in kept if counts.get(broker, 0) == least]
