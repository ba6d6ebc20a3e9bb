"""`interpulse autorecovery`: an auditor and a replication worker in a process of their own, until a signal ends it.

Owns the process; `cli.autorecovery.server` owns its parts. Exit codes: 0 after a clean stop, 1 when it could not start or
failed.
"""

import argparse
import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.web.settings import BookieWebSettings
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.auto_recovery import AutoRecovery
from cli.autorecovery.server import SETTINGS, auto_recovery
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import BOOKIE
from cli.serving import interpreter
from cli.serving.ledgers_store import open_ledgers_store
from cli.serving.process import end_on_signal, heed_configuration, stop_on_signal
from cli.serving.ready_file import write_whole
from cli.serving.start_failures import start_failure
from metadata.store import MetadataError
from ports.clock import RealClock
from ports.logs import configure_logs, line
from ports.rng import RealRng
from ports.settings import BadSetting

if TYPE_CHECKING:
    from ports.network.tls_port import TlsPort

log = logging.getLogger("interpulse")


def run_autorecovery(options: argparse.Namespace) -> int:
    """Runs until SIGTERM or SIGINT."""
    configure_logs()
    configuration: Configuration | None = None
    try:
        files = [(options.config, Path(options.config).read_text())] if options.config else []
        configuration = load_configuration(files, options.set)
        return uvloop.run(_serve(configuration, options.json_ready))
    except (BadSetting, LedgerError, MetadataError, OSError) as error:
        print(f"interpulse autorecovery: {start_failure(error, configuration, (BookieWebSettings,))}", file=sys.stderr)
        return 1


async def _serve(configuration: Configuration, json_ready: str | None) -> int:
    heed_configuration(configuration, BOOKIE, SETTINGS)
    for settings in SETTINGS:
        configuration.settings(settings)
    stop = stop_on_signal()
    store = await open_ledgers_store(configuration.settings(BookieServerSettings))
    try:
        owner, recovery = auto_recovery(configuration, RealClock(), RealRng(), store, store)
        await recovery.start()
        web = await _serve_web(configuration, recovery)
        interpreter.settle()
        _tell_ready(owner, web, json_ready)
        failing = asyncio.create_task(recovery.until_it_failed(), name="autorecovery fails")
        stopping = asyncio.create_task(stop.wait(), name="autorecovery is told to stop")
        await asyncio.wait([failing, stopping], return_when=asyncio.FIRST_COMPLETED)
        end_on_signal()
        log.info(line("stopping"))
        for task in (failing, stopping):
            task.cancel()
        if not stop.is_set():
            log.critical(line("autorecovery died"), exc_info=failing.exception())
        if web is not None:
            web.close()
        await recovery.stop()
    finally:
        await store.close()
    log.info(line("stopped"))
    return 0 if stop.is_set() else 1


async def _serve_web(configuration: Configuration, recovery: AutoRecovery) -> "asyncio.Server | TlsPort | None":
    """The HTTP server; None when httpServerEnabled is false. BadTls."""
    settings = configuration.settings(BookieWebSettings)
    if not settings.http_server_enabled:
        return None
    from bookie.web.app import bookie_app, serve_bookie_web
    from bookie.web.settings import web_tls
    from cli.autorecovery.web import RepairRoutes

    tls = web_tls(settings, configuration.settings(BookieSecuritySettings), asyncio.get_running_loop().time)
    app = bookie_app(RepairRoutes(recovery.counters))
    return await serve_bookie_web(app, settings.http_server_host, settings.http_server_port, tls)


def _tell_ready(owner: str, web: "asyncio.Server | TlsPort | None", json_ready: str | None) -> None:
    ready: dict[str, object] = {"bookieId": owner, "pid": os.getpid()}
    if web is not None:
        from bookie.web.app import port_of

        ready["httpServerPort"] = port_of(web)
    log.info(line("ready", **ready))
    if json_ready:
        write_whole(Path(json_ready), json.dumps(ready))
