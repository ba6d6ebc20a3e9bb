"""Clusters, tenants and namespaces in metadata: the ones that a standalone needs at its first start, and the existence of a
namespace.

Values are Apache's JSON (ClusterDataImpl, TenantInfoImpl, Policies, LocalPolicies; nulls left out), written with Apache's
defaults. Never interprets policies.

`GoneNamespaces` notifies listeners with state of a namespace of its deletion, here or by another broker. Each listener drops
its own state; otherwise a broker would keep state of every deleted namespace.
"""

import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataStore, StoreFull
from ports.logs import line

from ..errors import NamespaceNotFound
from ..topic_name import NamespaceName, TopicName

log = logging.getLogger(__name__)

STANDALONE_NAMESPACES = (
    NamespaceName("public", "default"),
    NamespaceName("public", "functions"),
    NamespaceName("pulsar", "system"),
)

_POLICY_DEFAULTS: Mapping[str, Any] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "allowed_clusters": [],
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
Listener = Callable[[NamespaceName], None]


def to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def policies_path(namespace: NamespaceName) -> str:
    return f"/admin/policies/{namespace}"


def bundles(count: int) -> dict[str, Any]:
    """BundlesData: the 32-bit hash space cut into `count` even ranges."""
    boundaries = [f"0x{min(index * (1 << 32) // count, 0xFFFFFFFF):08x}" for index in range(count + 1)]
    return {"boundaries": boundaries, "numBundles": count}


def default_policies(cluster: str, bundle_count: int) -> dict[str, Any]:
    """Policies of a new namespace, as Apache writes them."""
    return {**_POLICY_DEFAULTS, "replication_clusters": [cluster], "bundles": bundles(bundle_count)}


def cluster_data(service_url: str, broker_service_url: str) -> dict[str, Any]:
    return {
        "serviceUrl": service_url,
        "brokerServiceUrl": broker_service_url,
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
        "brokerClientTlsEnabledWithKeyStore": False,
    }


class Namespaces:
    """The namespaces in one metadata store."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def require(self, namespace: NamespaceName) -> None:
        """NamespaceNotFound when there are no policies of that name."""
        if not await self._store.exists(policies_path(namespace)):
            raise NamespaceNotFound(str(namespace))

    async def require_growing(self, namespace: NamespaceName) -> None:
        """NamespaceNotFound also while it is being deleted: a topic made now would never be deleted (Apache: `deleted` in its
        policies, at which brokers do not make topics)."""
        found = await self._store.get(policies_path(namespace))
        if found is None or _is_being_deleted(found.value):
            raise NamespaceNotFound(str(namespace))

    async def create(self, namespace: NamespaceName, cluster: str, bundle_count: int) -> None:
        """Creates the namespace with Apache's default policies; does nothing when it is there."""
        policies = default_policies(cluster, bundle_count)
        await self._put_missing(policies_path(namespace), policies)
        await self._put_missing(f"/admin/local-policies/{namespace}", {"bundles": policies["bundles"], "migrated": False})

    async def bootstrap_standalone(self, cluster: str, bundle_count: int, service_url: str, broker_service_url: str) -> None:
        """Creates the same metadata as `initialize-cluster-metadata`. The addresses of the cluster are brought up to date each
        time."""
        await self._put_changed(f"/admin/clusters/{cluster}", to_json(cluster_data(service_url, broker_service_url)))
        for tenant in dict.fromkeys(namespace.tenant for namespace in STANDALONE_NAMESPACES):
            await self._put_missing(f"/admin/policies/{tenant}", {"adminRoles": [], "allowedClusters": [cluster]})
        for namespace in STANDALONE_NAMESPACES:
            await self.create(namespace, cluster, bundle_count)

    async def _put_changed(self, path: str, value: bytes) -> None:
        """A full disk does not prevent a start if there is a value at all: the start has to make room."""
        found = await self._store.get(path)
        if found is not None and found.value == value:
            return
        try:
            await self._store.put(path, value)
        except StoreFull as error:
            if found is None:
                raise
            log.warning(line("metadata not updated: its store has no room", path=path, reason=error))

    async def _put_missing(self, path: str, value: dict[str, Any]) -> None:
        if await self._store.exists(path):
            return
        try:
            await self._store.put(path, to_json(value), MUST_NOT_EXIST)
        except BadVersion:
            return  # another broker was first


def _is_being_deleted(policies: bytes) -> bool:
    """False for unreadable metadata: other code reports that."""
    try:
        document = json.loads(policies)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("deleted") is True


async def listed(topics: Coroutine[Any, Any, list[TopicName]]) -> list[TopicName]:
    """The topics of a namespace as clients get them: none for an absent namespace, which may still be made. Apache does this
    for persistent topics; an error would make clients ask again for 30 s, and then fail.
    """
    try:
        return await topics
    except NamespaceNotFound:
        return []


class GoneNamespaces:
    """Notifier of deleted namespaces on one broker. `topics` names those that are loaded, or are being loaded or closed."""

    def __init__(self, topics: Callable[[], Iterable[str]]) -> None:
        self.listeners: list[Listener] = []
        self._topics = topics

    def gone(self, namespace: NamespaceName) -> None:
        """Does nothing if the namespace exists again, with topics: these rely on the state."""
        start = f"persistent://{namespace}/"
        if any(name.removeprefix("non-").startswith(start) for name in self._topics()):
            return
        for each in self.listeners:
            each(namespace)
