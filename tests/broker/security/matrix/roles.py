"""The roles of the matrix, what each is granted, and how a request is asked in its name.

One tenant `acme` with the namespace `acme/ns`, its topic `t` and the subscription `s1`, which has one role of its own. The
proxy's role may what an admin of the tenant may: so what is decided is what its client may.
"""

from collections.abc import Mapping
from dataclasses import dataclass

TENANT, NAMESPACE, TOPIC, SUBSCRIPTION = "acme", "acme/ns", "persistent://acme/ns/t", "s1"
TENANT_ADMINS = ("tenant-admin", "proxy")
ON_NAMESPACE: Mapping[str, str] = {
    "ns-produce": "produce",
    "ns-consume": "consume",
    "sub-user": "consume",
    "ns-functions": "functions",
    "ns-packages": "packages",
}
ON_TOPIC: Mapping[str, str] = {"topic-produce": "produce", "topic-consume": "consume"}
SUPER_USER = "admin"


@dataclass(frozen=True, slots=True)
class Who:
    """`role` is in the token; None: no token, and a wrong one where it is empty. `original`: for whom a proxy speaks."""

    name: str
    role: str | None
    original: str = ""


ROLES = (
    Who("nobody", None),
    Who("forged", ""),
    Who("stranger", "stranger"),
    Who("other-admin", "other-admin"),
    *(Who(role, role) for role in ON_NAMESPACE),
    *(Who(role, role) for role in ON_TOPIC),
    Who("proxy", "proxy"),
    Who("proxy for proxy", "proxy", "proxy"),
    Who("proxy for stranger", "proxy", "stranger"),
    Who("proxy for ns-consume", "proxy", "ns-consume"),
    Who("proxy for admin", "proxy", "admin"),
    Who("stranger for admin", "stranger", "admin"),
    Who("stranger for stranger", "stranger", "stranger"),
    Who("tenant-admin", "tenant-admin"),
    Who("admin", "admin"),
)
"""Roles in the order in which they ask; those that may change things are last. A decision is a letter at its role's place."""

PATH_VALUES: Mapping[str, str] = {
    "tenant": TENANT,
    "namespace": "ns",
    "topic": "t",
    "topic-domain": "persistent",
    "domain": "persistent",
    "bundle": "0x00000000_0x40000000",
    "subName": SUBSCRIPTION,
    "subscription": SUBSCRIPTION,
    "subscriptionName": SUBSCRIPTION,
    "role": "grantee",
    "cluster": "standalone",
    "clusterName": "standalone",
    "configName": "brokerShutdownTimeoutMs",
    "configValue": "60000",
    "expireTimeInSeconds": "1000000",
    "messagePosition": "1",
    "numMessages": "1",
    "timestamp": "1",
    "ledgerId": "1",
    "entryId": "0",
    "partition": "0",
    "mostSigBits": "1",
    "leastSigBits": "1",
    "coordinatorId": "0",
    "timeout": "1000",
    "resourcegroup": "rg",
    "version": "0",
}
"""Values of path parameters; any other parameter has its own name for its value."""


def filled(path: str) -> str:
    """The path with values for its parameters."""
    parts = [part.removesuffix(":path}").strip("{}") if part.startswith("{") else None for part in path.split("/")]
    return "/".join(
        given if name is None else PATH_VALUES.get(name, name) for name, given in zip(parts, path.split("/"), strict=True)
    )
