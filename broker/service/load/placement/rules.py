"""PlacementRules: brokers that may have a bundle, independently of load: isolation first, then anti-affinity. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from .affinity import namespace_counts, spread
from .isolation import IsolationPolicies


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
        """Those of the brokers that may have the bundle. `hosted`: other bundles by broker."""
        namespace = namespace_of_bundle(bundle)
        allowed = self.isolation.allowed(namespace, brokers)
        group = self.groups.get(namespace)
        if not group or not allowed:
            return allowed
        others = {broker: namespaces_of([each for each in bundles if each != bundle]) for broker, bundles in hosted.items()}
        return spread(allowed, namespace_counts(group, self.groups, others), self.domains)
