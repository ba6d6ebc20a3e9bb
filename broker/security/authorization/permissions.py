"""Permissions: whether the grants allow a role an operation (PulsarAuthorizationProvider). Pure. Operations outside these
tables are denied to all but super-users, and those on a tenant, a namespace or a topic to all but the admins of its tenant.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .grants import Grants
from .needs import Kind, Need

_LOOKUP = frozenset({"LOOKUP", "GET_STATS", "GET_METADATA"})
_CONSUME = frozenset(
    {
        "GET_SUBSCRIPTIONS",
        "CONSUME",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "SKIP",
        "EXPIRE_MESSAGES",
        "PEEK_MESSAGES",
        "RESET_CURSOR",
        "GET_BACKLOG_SIZE",
        "SET_REPLICATED_SUBSCRIPTION_STATUS",
        "GET_REPLICATED_SUBSCRIPTION_STATUS",
    }
)
_NAMESPACE: Mapping[str, tuple[str, ...]] = {
    "PACKAGES": ("packages",),
    "GET_TOPIC": ("consume", "produce"),
    "GET_TOPICS": ("consume", "produce"),
    "GET_BUNDLE": ("consume", "produce"),
    "UNSUBSCRIBE": ("consume",),
    "TRIM_TOPIC": ("consume",),
    "CLEAR_BACKLOG": ("consume",),
}
"""Actions of which one is enough, by operation on a namespace."""
_OF_A_TENANT = frozenset({Kind.TENANT, Kind.TENANT_ADMIN, Kind.NAMESPACE, Kind.NAMESPACE_POLICY, Kind.TOPIC, Kind.TOPIC_POLICY})
_PARTITION = "-partition-"


class PrefixMissing(Exception):
    """subscriptionAuthMode Prefix, and the subscription's name does not begin with the role. The message is for the peer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in the settings."""

    super_user_roles: frozenset[str]
    proxy_roles: frozenset[str] = frozenset()
    allow_wildcards: bool = False

    def may(self, role: str, need: Need, admins: frozenset[str], granted: Grants | None) -> bool:
        """`admins` of the need's tenant; the grants of its namespace, None when it does not exist. PrefixMissing."""
        if need.kind is Kind.ANYBODY or role in self.super_user_roles:
            return True
        if need.kind is Kind.AUTHENTICATED:
            return True
        if need.kind in _OF_A_TENANT and need.tenant and role in admins:
            return True
        if granted is None:
            return False
        if need.kind is Kind.NAMESPACE:
            return any(self._has(role, action, granted.namespace) for action in _NAMESPACE.get(need.operation, ()))
        return need.kind is Kind.TOPIC and self._may_topic(role, need, granted)

    def _may_topic(self, role: str, need: Need, granted: Grants) -> bool:
        if need.operation == "PRODUCE":
            return self._on_topic(role, "produce", need.topic, granted)
        if need.operation in _LOOKUP:
            return any(self._on_topic(role, action, need.topic, granted) for action in ("produce", "consume"))
        return need.operation in _CONSUME and self._may_consume(role, need, granted)

    def _may_consume(self, role: str, need: Need, granted: Grants) -> bool:
        name = need.subscription.strip()
        if name:
            roles = granted.subscriptions.get(need.subscription)
            if roles and role not in roles:
                return False
            if granted.needs_prefix and not need.subscription.startswith(role):
                told = "The subscription name needs to be prefixed by the authentication role"
                raise PrefixMissing(f"{told}, like {role}-xxxx for topic: {need.topic}")
        return self._on_topic(role, "consume", need.topic, granted)

    def _on_topic(self, role: str, action: str, topic: str, granted: Grants) -> bool:
        """Whether the role may do this on the topic; grants on a partitioned topic hold for its partitions."""
        whole, mark, index = topic.rpartition(_PARTITION)
        names = (topic, whole) if mark and index.isdecimal() else (topic,)
        return self._has(role, action, granted.namespace) or any(
            self._has(role, action, granted.of_topic(name)) for name in names
        )

    def _has(self, role: str, action: str, granted: Mapping[str, frozenset[str]]) -> bool:
        if action in granted.get(role, ()):
            return True
        return self.allow_wildcards and any(action in actions and _fits(role, each) for each, actions in granted.items())


def _fits(role: str, pattern: str) -> bool:
    """`*`, `name*` and `*name`."""
    if pattern.endswith("*") and role.startswith(pattern[:-1]):
        return True
    return pattern.startswith("*") and role.endswith(pattern[1:])
