"""Metadata that a new cluster needs before its first bookie and broker start, as Apache's PulsarClusterMetadataSetup has it.

Owns what is written and the checks of what was asked for. Nodes that are there already stay as they are, so that a second run
changes nothing; only a cluster that is new to a tenant or a namespace is added to its list. Never opens a store.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bookkeeper.ledger_metadata.paths import ROOT as LEDGERS
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from broker.service.catalogue.namespaces import cluster_data, default_policies, policies_path, to_json
from broker.service.topic_name import NamespaceName, TopicName
from cli.command_line.tool_options import BUNDLES, COORDINATORS
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore
from ports.rng import Rng

BUNDLES_MAX = 10_000
"""The boundaries of more would near what ZooKeeper takes as one value."""
UPDATES_MAX = 10
BOOKIE_RACKS = "/bookies"
CLUSTERS = "/admin/clusters"
NAMESPACES = (NamespaceName("public", "default"), NamespaceName("pulsar", "system"))
COORDINATOR_ASSIGN = TopicName.parse("persistent://pulsar/system/transaction_coordinator_assign")
GLOBAL = "global"
"""Apache's marker for what is not of one cluster."""
FUNCTIONS = "/pulsar/functions"
_TLS_DEFAULTS = {
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
_NAME = re.compile(r"[-=:.\w]+", re.ASCII)
_HOSTS = re.compile(r"[^\s,/]+(:\d{1,5})?(,[^\s,/]+(:\d{1,5})?)*/?")


class ClusterRefused(Exception):
    """Metadata that must not be written; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class NewCluster:
    """Options of a new cluster. ClusterRefused when it would not work; the options are named as on the command line."""

    name: str
    web_service_url: str
    web_service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    tls_enabled: bool = False
    authentication_plugin: str | None = None
    authentication_parameters: str | None = None
    proxy_url: str | None = None
    proxy_protocol: str | None = None
    bundle_count: int = BUNDLES
    coordinator_count: int = COORDINATORS
    ledgers_servers: str = ""
    """Servers of the ZooKeeper whose ledgers are used, without chroot; noted for Apache's functions, unless empty."""
    ledgers_path: str = LEDGERS
    """Path of the ledgers, with chroot."""
    has_ledgers_elsewhere: bool = False
    """An existing BookKeeper cluster is used: none is laid out."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == GLOBAL:
            raise ClusterRefused(
                f"--cluster {self.name!r}: a name has letters, digits and -=:._ only, and {GLOBAL!r} is Apache's own"
            )
        _check_url("--web-service-url", self.web_service_url, "http")
        _check_url("--web-service-url-tls", self.web_service_url_tls, "https")
        _check_url("--broker-service-url", self.broker_service_url, "pulsar")
        _check_url("--broker-service-url-tls", self.broker_service_url_tls, "pulsar+ssl")
        if not 1 <= self.bundle_count <= BUNDLES_MAX:
            raise ClusterRefused(f"--default-namespace-bundle-number {self.bundle_count}: expected 1 to {BUNDLES_MAX}")
        if self.coordinator_count < 1:
            raise ClusterRefused(f"--initial-num-transaction-coordinators {self.coordinator_count}: at least 1")
        if (self.proxy_url is None) != (self.proxy_protocol is None):
            raise ClusterRefused("--proxy-url and --proxy-protocol go together: give both, or none")

    @property
    def data(self) -> dict[str, Any]:
        """ClusterDataImpl, as Jackson writes it: what is not set is left out."""
        optional = {
            "serviceUrlTls": self.web_service_url_tls,
            "brokerServiceUrlTls": self.broker_service_url_tls,
            "authenticationPlugin": self.authentication_plugin,
            "authenticationParameters": self.authentication_parameters,
            "proxyServiceUrl": self.proxy_url,
            "proxyProtocol": self.proxy_protocol,
        }
        known = cluster_data(self.web_service_url, self.broker_service_url or "") | _TLS_DEFAULTS
        known |= {"brokerClientTlsEnabled": self.tls_enabled, **optional}
        return {key: value for key, value in known.items() if value not in (None, "")}

    @property
    def functions_binding(self) -> bytes:
        """DistributedLog's note of where its ledgers are (BKDLConfig: thrift's JSON, fields by number)."""
        servers = {"str": self.ledgers_servers}
        fields = {"1": servers, "2": {"str": self.ledgers_path}, "3": {"tf": 1}, "4": {"tf": 0}}
        return b"1\nBKDL\n" + to_json(fields | dict.fromkeys(("5", "6", "7"), servers))


def _check_url(option: str, url: str | None, scheme: str) -> None:
    """Checks a URL of one host or several: Apache writes any text, and its brokers and clients fail on it later."""
    if url is None:
        return
    found, separator, hosts = url.partition("://")
    if found != scheme or not _HOSTS.fullmatch(hosts):
        suggestion = f"{scheme}://{hosts if separator else url}" if (separator or "/" not in url) else f"{scheme}://host:port"
        raise ClusterRefused(f"{option} {url}: expected {scheme}://host:port, such as {suggestion}")


class ClusterMetadata:
    """Writes what is missing: `local` is the cluster's own store, `configuration` what clusters may share (often the same)."""

    def __init__(self, local: MetadataStore, configuration: MetadataStore, rng: Rng) -> None:
        self._local, self._configuration, self._rng = local, configuration, rng
        self.done: list[str] = []
        """One line for each thing that was written, or that stands in the way of what was asked for."""

    async def initialise(self, cluster: NewCluster) -> None:
        """MetadataError, LedgerError. Everything is written on its own: after a failure, run it again."""
        if not cluster.has_ledgers_elsewhere and not await self._local.exists(LEDGERS):
            await LedgerRegistry(self._local, self._rng).initialise()
            self.done.append(f"made {LEDGERS}")
        if cluster.ledgers_servers:
            await self._make(self._configuration, FUNCTIONS, cluster.functions_binding)
        await self._make(self._local, BOOKIE_RACKS, to_json({}))
        await self._make_cluster(cluster)
        marker = {key: value for key, value in (cluster_data("", "") | _TLS_DEFAULTS).items() if value != ""}
        await self._make(self._configuration, f"{CLUSTERS}/{GLOBAL}", to_json(marker))
        for namespace in NAMESPACES:
            await self._make_tenant(namespace.tenant, cluster.name)
        for namespace in NAMESPACES:
            is_default = namespace == NAMESPACES[0]
            await self._make_namespace(namespace, cluster.name, cluster.bundle_count if is_default else BUNDLES)
        await self._make_coordinator_topic(cluster.coordinator_count)

    async def initialise_coordinators(self, cluster: str, count: int) -> None:
        """Makes transaction coordinators and their namespace; more than before, never fewer. MetadataError."""
        namespace = NAMESPACES[1]
        await self._make_tenant(namespace.tenant, cluster)
        await self._make_namespace(namespace, cluster, BUNDLES)
        await self._make_coordinator_topic(count)

    async def _make_cluster(self, cluster: NewCluster) -> None:
        path = f"{CLUSTERS}/{cluster.name}"
        if await self._make(self._configuration, path, to_json(cluster.data)):
            return
        found = await self._configuration.get(path)
        if found is not None and _parsed(path, found.value) != cluster.data:
            self.done.append(f"kept {path}, which says something else: change it with `pulsar-admin clusters update`")

    async def _make_tenant(self, tenant: str, cluster: str) -> None:
        path = f"/admin/policies/{tenant}"
        new = {"adminRoles": [], "allowedClusters": [cluster]}
        if not await self._make(self._configuration, path, to_json(new)):
            await self._change(path, lambda value: _with_member(value, "allowedClusters", cluster))

    async def _make_namespace(self, namespace: NamespaceName, cluster: str, bundle_count: int) -> None:
        path = policies_path(namespace)
        new = default_policies(cluster, bundle_count)
        if not await self._make(self._configuration, path, to_json(new)):
            await self._change(path, lambda value: _with_member(value, "replication_clusters", cluster))

    async def _make_coordinator_topic(self, count: int) -> None:
        path = COORDINATOR_ASSIGN.partitions_path
        if not await self._make(self._configuration, path, to_json({"partitions": count, "deleted": False})):
            await self._change(path, lambda value: value | {"partitions": max(count, int(value.get("partitions", 0)))})

    async def _make(self, store: MetadataStore, path: str, value: bytes) -> bool:
        """Makes the node; returns whether it was not there."""
        if await store.exists(path):
            return False
        try:
            await store.put(path, value, MUST_NOT_EXIST)
        except BadVersion:
            return False  # another client was first
        self.done.append(f"made {path}")
        return True

    async def _change(self, path: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Compare-and-set; nothing is written when nothing changes."""
        for _ in range(UPDATES_MAX):
            found = await self._configuration.get(path)
            if found is None:
                raise MetadataError(f"{path}: was removed meanwhile; run the command again")
            before = _parsed(path, found.value)
            after = change(before)
            if after == before:
                return
            try:
                await self._configuration.put(path, to_json(after), found.stat.version)
            except BadVersion:
                continue
            self.done.append(f"changed {path}")
            return
        raise MetadataError(f"{path}: others changed it {UPDATES_MAX} times in a row; run the command again")


def _parsed(path: str, value: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise MetadataError(f"{path}: not JSON ({error}); repair or remove it") from error
    if not isinstance(parsed, dict):
        raise MetadataError(f"{path}: not an object of JSON; repair or remove it")
    return parsed


def _with_member(value: dict[str, Any], key: str, member: str) -> dict[str, Any]:
    members = list(value.get(key) or [])
    return value if member in members else value | {key: [*members, member]}
