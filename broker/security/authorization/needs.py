"""Needs: permissions required for a command or a route. Operations are constants of Apache's enums. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kind of object that a permission is needed for. Names in braces are, for a route, the parameters of its path of that
    name."""

    ANYBODY = "anybody"
    """Every caller, also an unauthenticated one."""
    AUTHENTICATED = "authenticated"
    SUPER_USER = "super-user"
    CLUSTER = "cluster"
    """{cluster}, if the path has it; Apache's ClusterOperation."""
    CLUSTER_POLICY = "cluster policy"
    """Apache's PolicyName, READ or WRITE, of {cluster}."""
    BROKER = "broker"
    """Apache's BrokerOperation."""
    TENANT_ADMIN = "tenant admin"
    """Admin of {tenant} (Apache: validateAdminAccessForTenant)."""
    TENANT = "tenant"
    """{tenant}, if the path has it; Apache's TenantOperation."""
    NAMESPACE = "namespace"
    """{tenant}, {namespace}; Apache's NamespaceOperation."""
    NAMESPACE_POLICY = "namespace policy"
    """{tenant}, {namespace}; Apache's PolicyName, READ or WRITE."""
    TOPIC = "topic"
    """{tenant}, {namespace}, {topic}, and {domain}, {subscription} where there is one; Apache's TopicOperation."""
    TOPIC_POLICY = "topic policy"
    """{tenant}, {namespace}, {topic}; Apache's PolicyName, READ or WRITE."""


@dataclass(frozen=True, slots=True)
class Need:
    """Names are empty where the kind has none. `topic`: the full name."""

    kind: Kind
    operation: str = ""
    tenant: str = ""
    namespace: str = ""
    """`tenant/namespace`."""
    topic: str = ""
    subscription: str = ""

    def __str__(self) -> str:
        what = self.topic or self.namespace or self.tenant
        return " ".join(part for part in (self.kind.value, self.operation, what) if part)


def topic_need(operation: str, topic: str, subscription: str = "") -> Need:
    """`topic`: a full name, `domain://tenant/namespace/local`."""
    tenant, namespace, _ = topic.partition("://")[2].split("/", 2)
    return Need(Kind.TOPIC, operation, tenant, f"{tenant}/{namespace}", topic, subscription)


def namespace_need(operation: str, namespace: str) -> Need:
    return Need(Kind.NAMESPACE, operation, namespace.partition("/")[0], namespace)
