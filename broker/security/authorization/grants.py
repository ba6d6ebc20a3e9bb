"""Grants: permissions of roles, as stored with tenants and namespaces (TenantInfoImpl, Policies.auth_policies). Pure.

Unreadable documents grant nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NOBODY: Mapping[str, frozenset[str]] = {}


@dataclass(frozen=True, slots=True)
class Grants:
    """Grants in a namespace: actions (`produce`, `consume`, `functions`, `sources`, `sinks`, `packages`) by role."""

    namespace: Mapping[str, frozenset[str]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Grants on topics: actions by full name of the topic, then by role."""
    subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles, by name of the subscription. A subscription that is absent, or has no roles, is open to every role that may
    consume.
    """
    needs_prefix: bool = False
    """subscriptionAuthMode Prefix: a subscription's name begins with the role."""

    def of_topic(self, topic: str) -> Mapping[str, frozenset[str]]:
        return self.topics.get(topic, _NOBODY)


def admin_roles(value: bytes) -> frozenset[str]:
    """Returns the admin roles in a stored TenantInfoImpl."""
    return _texts(_object(_parsed(value)).get("adminRoles"))


def grants(value: bytes) -> Grants:
    """Returns the grants in stored Policies."""
    document = _object(_parsed(value))
    given = _object(document.get("auth_policies"))
    return Grants(
        _actions(given.get("namespace_auth")),
        {topic: _actions(roles) for topic, roles in _object(given.get("destination_auth")).items()},
        {name: _texts(roles) for name, roles in _object(given.get("subscription_auth_roles")).items()},
        document.get("subscription_auth_mode") == "Prefix",
    )


def _parsed(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> frozenset[str]:
    return frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()


def _actions(value: Any) -> Mapping[str, frozenset[str]]:
    return {role: _texts(actions) for role, actions in _object(value).items()}
