"""`interpulse broker`: the real ports, one process, signals, and the line that says it is ready.

Owns the process; `cli.broker.server` owns its parts. Exit codes: 0 after a clean stop, 1 when it could not start or failed.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import uvloop

from bookkeeper.ledger_metadata.paths import ROOT
from broker.security.tls_settings import TlsSettings
from broker.service.settings import BrokerSettings
from cli.broker.process import served_urls, settle_interpreter, tell_ready
from cli.broker.server import SETTINGS, BrokerFailed, BrokerServer
from cli.broker.web_ports import WebPorts, bound_web_ports
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.server_settings import ClusterSettings, ServerSettings
from cli.configuration.verdicts import BROKER
from cli.processes.member import Member, watched_member
from cli.serving.process import end_on_signal, heed_configuration, stop_on_signal
from cli.serving.start_failures import start_failure
from metadata.store import MetadataError
from metadata.zookeeper.connect_string import parse_service_uri, servers_of
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.settings import ZooKeeperSettings
from metadata.zookeeper.store import ZooKeeperStore
from ports.clock import RealClock
from ports.logs import configure_logs, line
from ports.rng import RealRng
from ports.settings import BadSetting

log = logging.getLogger("interpulse")


def run_broker(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, alone or as one of several (`--processes`)."""
    member: Member | None = None
    configuration: Configuration | None = None
    try:
        if options.process_of is not None:
            member = watched_member(options.process_of)
        configure_logs(process=member.name if member else "")
        files = [(options.config, Path(options.config).read_text())] if options.config else []
        configuration = load_configuration(files, options.set)
        return uvloop.run(_serve(configuration, options.json_ready, member))
    except (BadSetting, BrokerFailed, MetadataError, OSError) as error:
        print(f"interpulse broker: {start_failure(error, configuration, (ServerSettings, TlsSettings))}", file=sys.stderr)
        return 1


def metadata_servers(configuration: Configuration) -> str:
    """Servers of the one ZooKeeper that has all metadata, with chroot. BadSetting, MetadataError."""
    url = configuration.settings(ZooKeeperSettings).metadata_store_url
    cluster = configuration.settings(ClusterSettings)
    if not url:
        raise BadSetting("metadataStoreUrl is not set: such as zk:host1:2181,host2:2181")
    servers = servers_of(url)
    elsewhere = cluster.configuration_metadata_store_url
    if elsewhere and servers_of(elsewhere) != servers:
        raise BadSetting(f"configurationMetadataStoreUrl={elsewhere}: must be metadataStoreUrl, or not be set")
    ledgers = cluster.bookkeeper_metadata_service_uri
    if ledgers:
        found = parse_service_uri(ledgers)
        if (found.servers, found.ledgers_root) != (servers, ROOT):
            raise BadSetting(f"bookkeeperMetadataServiceUri={ledgers}: must be {ROOT} in metadataStoreUrl, or not be set")
    return servers


async def _open_store(configuration: Configuration, member: Member | None) -> ZooKeeperStore:
    servers = metadata_servers(configuration)
    if configuration.settings(BrokerSettings).cluster_name == "" or "clusterName" not in configuration.values:
        raise BadSetting("clusterName is not set: the name of the cluster that this broker is a member of")
    settings = configuration.settings(ZooKeeperSettings)
    on_key = None if member is None else member.tell_session
    open_session = partial(KazooSession, servers, settings.metadata_store_session_timeout_millis / 1000, on_key=on_key)
    return await ZooKeeperStore.open(open_session, settings.metadata_store_operation_timeout_seconds, servers)


async def _serve(configuration: Configuration, json_ready: str | None, member: Member | None) -> int:
    heed_configuration(configuration, BROKER, SETTINGS)
    stop = stop_on_signal()
    store = await _open_store(configuration, member)
    server = BrokerServer(configuration, RealClock(), RealRng(), store, store)
    try:
        await _serve_until(stop, server, store, json_ready, member)
    finally:
        await server.stop()
        await store.close()
    log.info(line("stopped"))
    return 0


async def _serve_until(
    stop: asyncio.Event, server: BrokerServer, store: ZooKeeperStore, json_ready: str | None, member: Member | None
) -> None:
    with closing(bound_web_ports(server.server_settings, server.tls_settings)) as web, ExitStack() as in_front:
        await server.start()
        await server.serve(web.number, web.tls_number)
        await web.serve(server.service, store, server.security, server.tls, server.coordinators, server.websockets)
        if member is not None:
            in_front.callback(await _serve_in_front(member, server, web))
        settle_interpreter()
        tell_ready(server.service, json_ready)
        if member is not None:
            member.tell_ready(served_urls(server.service.lookup.advertised))
        await stop.wait()
        end_on_signal()
        log.info(line("stopping"))
        in_front.close()
        await server.drain()


async def _serve_in_front(member: Member, server: BrokerServer, web: WebPorts) -> Callable[[], None]:
    """The ports that it shares with the other processes; what is returned ends that."""
    from cli.processes.broker_fronts import BrokerFronts

    fronts = BrokerFronts(member, server, web)
    await fronts.open()

    def leave() -> None:
        member.stopping()
        fronts.close()

    return leave
