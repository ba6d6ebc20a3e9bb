"""`interpulse initialize-cluster-metadata` and `initialize-transaction-coordinator-metadata`, with Apache's options.

Owns the stores that the options name, and prints one line for each thing written; `cli.initialize_cluster.metadata` owns the
nodes. Exit codes: 0 when everything is there, 1 when something was refused or failed, told on stderr.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from bookkeeper.ledger_metadata.paths import ROOT as LEDGERS
from bookkeeper.ledgers import LedgerError
from cli.initialize_cluster.metadata import ClusterMetadata, ClusterRefused, NewCluster
from metadata.store import MetadataError
from metadata.zookeeper.connect_string import parse_service_uri, servers_of
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.store import ZooKeeperStore
from ports.rng import RealRng

_STREAM_STORAGE = "--initial-num-stream-storage-containers: without effect, BookKeeper's stream storage is not offered here"
_REFUSED = {
    "metadata_store_config_path": "--metadata-store-config-path: nothing of ZooKeeper's connection is configured by file here",
    "configuration_store_config_path": "--configuration-metadata-store-config-path: nothing is configured by file here",
}


def run_initialize_cluster(options: argparse.Namespace) -> int:
    """Writes what is missing."""
    try:
        local, configuration = _stores_of(options)
        asyncio.run(_initialise(options, local, configuration))
    except (ClusterRefused, MetadataError, LedgerError, OSError) as error:
        print(f"interpulse {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


def run_initialize_coordinators(options: argparse.Namespace) -> int:
    """Writes what is missing."""
    try:
        if options.configuration_store_config_path:
            raise ClusterRefused(f"{_REFUSED['configuration_store_config_path']}: leave it out")
        _check_session(options)
        if options.initial_num_transaction_coordinators < 1:
            count = options.initial_num_transaction_coordinators
            raise ClusterRefused(f"--initial-num-transaction-coordinators {count}: at least 1")
        asyncio.run(_initialise_coordinators(options))
    except (ClusterRefused, MetadataError, OSError) as error:
        print(f"interpulse {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


async def _initialise_coordinators(options: argparse.Namespace) -> None:
    async with with_chroot(servers_of(options.configuration_store), options.zookeeper_session_timeout_ms / 1000) as store:
        metadata = ClusterMetadata(store, store, RealRng())
        try:
            await metadata.initialise_coordinators(options.cluster, options.initial_num_transaction_coordinators)
        finally:
            for each in metadata.done:
                print(each)
    print(f"cluster {options.cluster} has its transaction coordinators")


def _check_session(options: argparse.Namespace) -> None:
    if options.zookeeper_session_timeout_ms < 1000:
        raise ClusterRefused(f"--zookeeper-session-timeout-ms {options.zookeeper_session_timeout_ms}: at least 1000")


def _stores_of(options: argparse.Namespace) -> tuple[str, str]:
    """Servers with chroot: of the metadata store, and of the configuration store."""
    for name, text in _REFUSED.items():
        if getattr(options, name):
            raise ClusterRefused(f"{text}: leave it out")
    if options.metadata_store and options.zookeeper:
        raise ClusterRefused("--metadata-store and --zookeeper say the same: give one of them")
    if options.configuration_metadata_store and options.configuration_store:
        raise ClusterRefused("--configuration-metadata-store and --configuration-store say the same: give one of them")
    _check_session(options)
    url = options.metadata_store or options.zookeeper
    if not url:
        raise ClusterRefused("where ZooKeeper is, is missing: add --metadata-store zk:host:2181")
    local = servers_of(url)
    elsewhere = options.configuration_metadata_store or options.configuration_store
    return local, servers_of(elsewhere) if elsewhere else local


def _cluster_of(options: argparse.Namespace, local: str) -> NewCluster:
    uri = parse_service_uri(options.service_uri) if options.service_uri else None
    servers, _, chroot = (uri.servers if uri else local).partition("/")
    return NewCluster(
        name=options.cluster,
        web_service_url=options.web_service_url,
        web_service_url_tls=options.web_service_url_tls,
        broker_service_url=options.broker_service_url,
        broker_service_url_tls=options.broker_service_url_tls,
        tls_enabled=options.tls_enable,
        authentication_plugin=options.auth_plugin,
        authentication_parameters=options.auth_parameters,
        proxy_url=options.proxy_url,
        proxy_protocol=options.proxy_protocol,
        bundle_count=options.default_namespace_bundle_number,
        coordinator_count=options.initial_num_transaction_coordinators,
        ledgers_servers=servers,
        ledgers_path=(f"/{chroot}" if chroot else "") + (uri.ledgers_root if uri else LEDGERS),
        has_ledgers_elsewhere=uri is not None,
    )


async def _initialise(options: argparse.Namespace, local: str, configuration: str) -> None:
    cluster = _cluster_of(options, local)
    if options.stream_storage_containers is not None:
        print(_STREAM_STORAGE)
    seconds = options.zookeeper_session_timeout_ms / 1000
    async with AsyncExitStack() as opened:
        names = dict.fromkeys((local, configuration))
        stores = {servers: await opened.enter_async_context(with_chroot(servers, seconds)) for servers in names}
        metadata = ClusterMetadata(stores[local], stores[configuration], RealRng())
        try:
            await metadata.initialise(cluster)
        finally:
            for each in metadata.done:
                print(each)
    print(f"cluster {cluster.name} is set up" if metadata.done else f"cluster {cluster.name} was set up before, nothing to do")


@asynccontextmanager
async def with_chroot(servers: str, seconds: float) -> AsyncIterator[ZooKeeperStore]:
    """A store whose chroot is made when it is missing; `seconds` are the session's, and for each answer. MetadataError."""
    hosts, slash, chroot = servers.partition("/")
    if chroot:
        whole = await ZooKeeperStore.open(partial(KazooSession, hosts, seconds), seconds, hosts)
        try:
            if not await whole.exists(slash + chroot):
                await whole.put(slash + chroot, b"")
        finally:
            await whole.close()
    store = await ZooKeeperStore.open(partial(KazooSession, servers, seconds), seconds, servers)
    try:
        yield store
    finally:
        await store.close()
