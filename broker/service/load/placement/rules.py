"""PlacementRules: brokers that may have a bundle, independently of load: isolation first, then anti-affinity. Pure.

Anti-affinity: the namespaces of one group are spread over failure domains, and within these over brokers (Apache's
LoadManagerShared.filterAntiAffinityGroupOwnedBrokers, which counts the namespaces of a group on each broker, the placed one
included, as often as a broker has any bundle of them).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from .isolation import IsolationPolicies

DEFAULT_DOMAIN = "default"
"""Domain of brokers that are in none."""


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


def namespace_of_bundle(bundle: str) -> str:
    """`tenant/namespace` of `tenant/namespace/0x00000000_0x40000000`."""
    return bundle.rpartition("/")[0]


def namespaces_of(bundles: Collection[str]) -> set[str]:
    return {namespace_of_bundle(bundle) for bundle in bundles}


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """Rules at one moment."""

    isolation: IsolationPolicies = field(default_factory=IsolationPolicies)
    groups: Mapping[str, str] = field(default_factory=dict)
    """Anti-affinity groups by namespace, of those that have one."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """Failure domains by broker; empty where they are of no account (failureDomainsEnabled=false)."""

    def homes(self, bundle: str, brokers: Collection[str], hosted: Mapping[str, Collection[str]]) -> list[str]:
        """The given brokers that may have the bundle. `hosted`: bundles by broker; `bundle` among them is ignored."""
        namespace = namespace_of_bundle(bundle)
        allowed = self.isolation.allowed(namespace, brokers)
        group = self.groups.get(namespace)
        if not group or not allowed:
            return allowed
        others = {broker: namespaces_of([each for each in bundles if each != bundle]) for broker, bundles in hosted.items()}
        return spread(allowed, namespace_counts(group, self.groups, others), self.domains)
