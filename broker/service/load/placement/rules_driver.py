"""PlacementPolicies: reads the inputs of the rules of placement, and keeps them current by watches.

Apache's nodes: /admin/clusters/<cluster>/namespaceIsolationPolicies, /admin/clusters/<cluster>/failureDomain/<name>, and in
/admin/local-policies/<namespace> the field namespaceAntiAffinityGroup. Owns their cache. An unreadable node is logged and
counts as absent, so that no mistake in a policy prevents the serving of topics.
"""

import json
import logging
from collections.abc import Collection, Mapping

from metadata.store import MetadataError, MetadataStore, Notification
from ports.logs import line

from ...ownership.namespace_bundles import LOCAL_POLICIES
from .isolation import IsolationPolicies, decode_policies
from .rules import PlacementRules, namespace_of_bundle, namespaces_of

ANTI_AFFINITY_GROUP = "namespaceAntiAffinityGroup"
log = logging.getLogger(__name__)


def isolation_path(cluster: str) -> str:
    return f"/admin/clusters/{cluster}/namespaceIsolationPolicies"


def domains_path(cluster: str) -> str:
    """Below it, one node for each failure domain: Apache's FailureDomainImpl, `{"brokers": [...]}`."""
    return f"/admin/clusters/{cluster}/failureDomain"


def decode_brokers(value: bytes) -> list[str]:
    """Returns the brokers of a failure domain. MetadataError."""
    try:
        return [str(broker) for broker in json.loads(value).get("brokers") or ()]
    except (ValueError, TypeError, AttributeError) as error:
        raise MetadataError(f"unreadable failure domain: {error!r}") from error


def decode_group(value: bytes) -> str:
    """Returns the anti-affinity group of a namespace, from its LocalPolicies; empty when it is in none. MetadataError."""
    try:
        return str(json.loads(value).get(ANTI_AFFINITY_GROUP) or "").strip()
    except (ValueError, AttributeError) as error:
        raise MetadataError(f"unreadable local policies: {error!r}") from error


class PlacementPolicies:
    """Placement policies of one cluster; `close` last. `domains_enabled`: failureDomainsEnabled."""

    def __init__(self, store: MetadataStore, cluster: str, *, domains_enabled: bool) -> None:
        self._store, self._domains_enabled = store, domains_enabled
        self._isolation_path, self._domains_path = isolation_path(cluster), domains_path(cluster)
        self._isolation: IsolationPolicies | None = None
        self._domains: Mapping[str, str] | None = None
        self._groups: dict[str, str] = {}
        self._changes = 0
        """Number of notifications so far: a read during which one came is not kept."""
        watched = (self._isolation_path, self._domains_path, LOCAL_POLICIES)
        self._unwatch = [store.watch(path, self._changed) for path in watched]

    async def rules(self, bundle: str, hosted: Mapping[str, Collection[str]]) -> PlacementRules:
        """Returns the rules for a bundle; `hosted`: the namespaces that brokers serve already. MetadataError."""
        isolation = await self._isolation_policies()
        namespace = namespace_of_bundle(bundle)
        group = await self._group(namespace)
        if not group:
            return PlacementRules(isolation)
        others = sorted({name for bundles in hosted.values() for name in namespaces_of(bundles)} | {namespace})
        groups = {name: found for name in others if (found := await self._group(name))}
        return PlacementRules(isolation, groups, await self._domain_map() if self._domains_enabled else {})

    def close(self) -> None:
        for unwatch in self._unwatch:
            unwatch()

    async def _isolation_policies(self) -> IsolationPolicies:
        if self._isolation is not None:
            return self._isolation
        changes, found, policies = self._changes, await self._store.get(self._isolation_path), IsolationPolicies()
        try:
            policies = policies if found is None else decode_policies(found.value)
        except MetadataError as error:
            log.error(
                line("isolation policies cannot be read: namespaces are not isolated", path=self._isolation_path, reason=error)
            )
        if changes == self._changes:
            self._isolation = policies
        return policies

    async def _domain_map(self) -> Mapping[str, str]:
        if self._domains is not None:
            return self._domains
        changes = self._changes
        domains = {
            broker: domain
            for domain in await self._store.children(self._domains_path)
            for broker in await self._brokers(f"{self._domains_path}/{domain}")
        }
        if changes == self._changes:
            self._domains = domains
        return domains

    async def _brokers(self, path: str) -> list[str]:
        found = await self._store.get(path)
        try:
            return [] if found is None else decode_brokers(found.value)
        except MetadataError as error:
            log.error(line("failure domain cannot be read: no broker is in it", path=path, reason=error))
            return []

    async def _group(self, namespace: str) -> str:
        if namespace in self._groups:
            return self._groups[namespace]
        changes, path = self._changes, f"{LOCAL_POLICIES}/{namespace}"
        found, group = await self._store.get(path), ""
        try:
            group = group if found is None else decode_group(found.value)
        except MetadataError as error:
            log.error(
                line("anti-affinity group of a namespace cannot be read: the namespace has none", path=path, reason=error)
            )
        if changes == self._changes:
            self._groups[namespace] = group
        return group

    def _changed(self, notification: Notification) -> None:
        self._changes += 1
        if notification.path == self._isolation_path:
            self._isolation = None
        elif notification.path.startswith(LOCAL_POLICIES):
            self._groups.pop(notification.path.removeprefix(LOCAL_POLICIES + "/"), None)
        else:
            self._domains = None
