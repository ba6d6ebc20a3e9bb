"""`interpulse proxy`: the real ports, one process, signals, and the line that says it is ready.

Owns the process; `cli.proxy.server` owns its parts. Exit codes: 0 after a clean stop, 1 when it could not start or failed.
"""

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
from functools import partial
from pathlib import Path

import uvloop

from broker.proxy.settings import ProxySettings
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import PROXY
from cli.proxy.server import SETTINGS, ProxyServer
from cli.serving import interpreter
from cli.serving.process import end_on_signal, heed_configuration, stop_on_signal
from cli.serving.ready_file import write_whole
from cli.serving.start_failures import start_failure
from metadata.store import MetadataError
from metadata.zookeeper.connect_string import servers_of
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.settings import ZooKeeperSettings
from metadata.zookeeper.store import ZooKeeperStore
from ports.logs import configure_logs, line
from ports.settings import BadSetting

log = logging.getLogger("interpulse")


def run_proxy(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    configure_logs()
    configuration: Configuration | None = None
    try:
        files = [(options.config, Path(options.config).read_text())] if options.config else []
        configuration = load_configuration(files, options.set)
        return uvloop.run(_serve(configuration, options.json_ready))
    except (BadSetting, MetadataError, OSError) as error:
        print(f"interpulse proxy: {start_failure(error, configuration, (ProxySettings,))}", file=sys.stderr)
        return 1


async def _open_store(configuration: Configuration) -> ZooKeeperStore | None:
    settings = configuration.settings(ZooKeeperSettings)
    if not settings.metadata_store_url:
        if not configuration.values.get("brokerServiceURL") or not configuration.values.get("brokerWebServiceURL"):
            raise BadSetting(
                "where the brokers are is not set: metadataStoreUrl, such as zk:host1:2181,host2:2181; or brokerServiceURL and"
                " brokerWebServiceURL"
            )
        return None
    servers = servers_of(settings.metadata_store_url)
    open_session = partial(KazooSession, servers, settings.metadata_store_session_timeout_millis / 1000)
    return await ZooKeeperStore.open(open_session, settings.metadata_store_operation_timeout_seconds, servers)


async def _serve(configuration: Configuration, json_ready: str | None) -> int:
    heed_configuration(configuration, PROXY, SETTINGS)
    stop = stop_on_signal()
    store = await _open_store(configuration)
    try:
        server = ProxyServer(configuration, store)
        try:
            await _serve_until(stop, server, json_ready)
        finally:
            await server.stop()
    finally:
        if store is not None:
            await store.close()
    log.info(line("stopped"))
    return 0


async def _serve_until(stop: asyncio.Event, server: ProxyServer, json_ready: str | None) -> None:
    where = server.settings
    with socket.create_server((where.bind_address, where.web_service_port)) as web_socket:
        await server.start(web_socket)
        interpreter.settle()
        _tell_ready(server, web_socket.getsockname()[1], json_ready)
        await stop.wait()
        end_on_signal()
        log.info(line("stopping"))


def _tell_ready(server: ProxyServer, web_port: int, json_ready: str | None) -> None:
    host = server.settings.bind_address
    shown = "localhost" if host in ("0.0.0.0", "::", "") else host
    ready = {"serviceUrl": f"pulsar://{shown}:{server.listener.port}", "webServiceUrl": f"http://{shown}:{web_port}"}
    if server.listener.port_tls is not None:
        ready["serviceUrlTls"] = f"pulsar+ssl://{shown}:{server.listener.port_tls}"
    if server.web_port_tls is not None:
        ready["webServiceUrlTls"] = f"https://{shown}:{server.web_port_tls}"
    log.info(line("ready", **ready, brokers=server.brokers.count, pid=os.getpid()))
    if json_ready:
        write_whole(Path(json_ready), json.dumps({**ready, "pid": os.getpid()}))
