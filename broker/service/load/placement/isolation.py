"""Isolation: which brokers may serve which namespaces, as the policies of the cluster say. Pure.

Apache's SimpleResourceAllocationPolicies on NamespaceIsolationPolicies, applied as LoadManagerShared.applyNamespacePolicies
does. A policy names namespaces and brokers by regular expressions that must match as a whole; of a broker its host is matched,
without the port. Expressions are Python's, which for what names are made of are Java's.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from metadata.store import MetadataError

from ...catalogue.namespaces import to_json
from ...catalogue.topic_lists import UnusablePattern, linear_pattern

UNLOAD_SCOPES = ("all_matching", "none", "changed")
"""PIP-369: which namespaces are unloaded when a policy is set."""


class InvalidPolicy(ValueError):
    """Value that is no isolation policy; says why."""


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """Apache's NamespaceIsolationDataImpl. Fewer than `min_limit` primaries: the secondaries help out."""

    namespaces: tuple[str, ...]
    primary: tuple[str, ...]
    secondary: tuple[str, ...]
    min_limit: int
    usage_threshold: int
    """Percent from which a primary would not count; read and kept, and of no account in placement, there as here."""
    unload_scope: str | None = None

    def covers(self, namespace: str) -> bool:
        return _matches(self.namespaces, namespace)

    def is_primary(self, broker: str) -> bool:
        return _matches(self.primary, host_of(broker))

    def is_secondary(self, broker: str) -> bool:
        return _matches(self.secondary, host_of(broker))


@dataclass(frozen=True, slots=True)
class IsolationPolicies:
    """A cluster's policies, by name. The first one that covers a namespace counts."""

    by_name: Mapping[str, IsolationPolicy] = field(default_factory=dict)

    def of(self, namespace: str) -> IsolationPolicy | None:
        return next((policy for policy in self.by_name.values() if policy.covers(namespace)), None)

    def is_shared(self, broker: str) -> bool:
        """No policy has it as a primary: it serves the namespaces that no policy covers."""
        return not any(policy.is_primary(broker) for policy in self.by_name.values())

    def allowed(self, namespace: str, brokers: Collection[str]) -> list[str]:
        """The given brokers (`host:port`) that may serve the namespace now, in the given order; empty where none may."""
        policy = self.of(namespace)
        if policy is None:
            return [broker for broker in brokers if self.is_shared(broker)]
        primaries = [broker for broker in brokers if policy.is_primary(broker)]
        if len(primaries) >= policy.min_limit:
            return primaries
        return [broker for broker in brokers if policy.is_primary(broker) or policy.is_secondary(broker)]


def host_of(broker: str) -> str:
    return broker.rpartition(":")[0] or broker


def to_unload(namespaces: Collection[str], old: IsolationPolicy | None, new: IsolationPolicy) -> list[str]:
    """Returns the namespaces whose brokers are chosen anew once `new` has replaced `old`
    (ClustersBase.filterAndUnloadMatchedNamespaceAsync).

    Scope `changed`, which is the default, skips namespaces of an expression that is in both, if the primaries are the same.
    Unlike there, namespaces of the old policy alone are unloaded too: their brokers change as well.
    """
    if new.unload_scope == "none":
        return []
    expressions = {*new.namespaces, *(old.namespaces if old else ())}
    if old is not None and new.unload_scope != "all_matching" and set(old.primary) == set(new.primary):
        expressions -= {*new.namespaces} & {*old.namespaces}
    return [namespace for namespace in namespaces if _matches(sorted(expressions), namespace)]


# Apache's JSON


def parse_policy(document: Any) -> IsolationPolicy:
    """Returns the policy in NamespaceIsolationDataImpl, checked as its `validate` and MinAvailablePolicy do. InvalidPolicy."""
    if not isinstance(document, dict):
        raise InvalidPolicy("expected an object with namespaces, primary, secondary and auto_failover_policy")
    namespaces, primary = _expressions(document, "namespaces"), _expressions(document, "primary")
    if not namespaces or not primary:
        raise InvalidPolicy("namespaces and primary: at least one regular expression each")
    scope = document.get("unload_scope")
    if scope is not None and scope not in UNLOAD_SCOPES:
        raise InvalidPolicy(f"unload_scope: expected one of {', '.join(UNLOAD_SCOPES)}")
    failover = document.get("auto_failover_policy")
    if not isinstance(failover, dict) or failover.get("policy_type") != "min_available":
        raise InvalidPolicy("auto_failover_policy: expected policy_type min_available with parameters")
    parameters = failover.get("parameters")
    limits = [_integer(parameters, name) for name in ("min_limit", "usage_threshold")]
    return IsolationPolicy(namespaces, primary, _expressions(document, "secondary"), limits[0], limits[1], scope)


def policy_document(policy: IsolationPolicy) -> dict[str, Any]:
    parameters = {"min_limit": str(policy.min_limit), "usage_threshold": str(policy.usage_threshold)}
    document: dict[str, Any] = {
        "namespaces": list(policy.namespaces),
        "primary": list(policy.primary),
        "secondary": list(policy.secondary),
        "auto_failover_policy": {"policy_type": "min_available", "parameters": parameters},
    }
    return document if policy.unload_scope is None else document | {"unload_scope": policy.unload_scope}


def decode_policies(value: bytes) -> IsolationPolicies:
    """MetadataError."""
    try:
        found = json.loads(value or b"{}")
        return IsolationPolicies({name: parse_policy(each) for name, each in found.items()})
    except (ValueError, AttributeError) as error:
        raise MetadataError(f"unreadable isolation policies: {error}") from error


def encode_policies(policies: IsolationPolicies) -> bytes:
    return to_json({name: policy_document(policy) for name, policy in policies.by_name.items()})


def _expressions(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidPolicy(f"{name}: expected a list of regular expressions")
    for each in found:
        try:
            linear_pattern(each)
        except UnusablePattern as error:
            raise InvalidPolicy(f"{name}: invalid policy regex {each[:200]}: {error}") from error
    return tuple(found)


def _integer(parameters: Any, name: str) -> int:
    try:
        return int(parameters[name])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidPolicy(f"auto_failover_policy: parameters need the number {name}") from error


def _matches(expressions: Collection[str], text: str) -> bool:
    return any(linear_pattern(expression).fullmatch(text) for expression in expressions)
