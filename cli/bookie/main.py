"""`interpulse bookie`: the real ports, one process, signals, and the line that says it is ready.

Owns the process; `cli.bookie.server` owns its parts. Exit codes: 0 after a clean stop, 1 when it could not start or failed.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from bookie.errors import BookieStartError
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from bookie.web.settings import BookieWebSettings
from bookkeeper.ledgers import LedgerError
from cli.bookie.server import SETTINGS, BookieFailed, BookieServer
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import BOOKIE
from cli.processes.member import Member, watched_member
from cli.serving import interpreter
from cli.serving.ledgers_store import open_ledgers_store
from cli.serving.process import end_on_signal, heed_configuration, stop_on_signal
from cli.serving.ready_file import write_whole
from cli.serving.start_failures import start_failure
from metadata.store import MetadataError
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.logs import configure_logs, line
from ports.rng import RealRng
from ports.settings import BadSetting

if TYPE_CHECKING:
    from cli.processes.bookie_fronts import BookieFronts

log = logging.getLogger("interpulse")


def run_bookie(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, alone or as one of several (`--processes`)."""
    member: Member | None = None
    configuration: Configuration | None = None
    try:
        if options.process_of is not None:
            member = watched_member(options.process_of)
        configure_logs(process=member.name if member else "")
        files = [(options.config, Path(options.config).read_text())] if options.config else []
        configuration = load_configuration(files, options.set)
        for settings in SETTINGS:
            configuration.settings(settings)  # what is wrong with any of them is said before anything is opened
        directories = configuration.settings(BookieSettings)
        with contextlib.ExitStack() as held:
            for directory in {*directories.journal_directories, *directories.ledger_directories}:
                held.enter_context(_exclusively(Path(directory)))
            return uvloop.run(_serve(configuration, options.json_ready, member))
    except (BadSetting, BookieFailed, BookieStartError, LedgerError, MetadataError, OSError) as error:
        ports = (BookieServerSettings, BookieWebSettings)
        print(f"interpulse bookie: {start_failure(error, configuration, ports)}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _exclusively(directory: Path) -> Iterator[None]:
    """Holds the directory for this process; BookieFailed when another has it. Leaves no file: what is in it is checked."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BookieFailed(
            f"{directory} is in use by another process: stop that one, or set journalDirectories and ledgerDirectories"
        ) from None
    finally:
        os.close(descriptor)


async def _serve(configuration: Configuration, json_ready: str | None, member: Member | None) -> int:
    heed_configuration(configuration, BOOKIE, SETTINGS)
    stop = stop_on_signal()
    store = await open_ledgers_store(configuration.settings(BookieServerSettings))
    disk = RealDisk()
    try:
        server = BookieServer(configuration, disk, RealClock(), RealRng(), store, store)
        await server.start()
        fronts = None if member is None else await _fronts(member, server)
        interpreter.settle()
        _tell_ready(server, json_ready, member)
        must_end = asyncio.create_task(server.bookie.until_it_must_end(), name="bookie must end")
        stopping = asyncio.create_task(stop.wait(), name="bookie is told to stop")
        await asyncio.wait([must_end, stopping], return_when=asyncio.FIRST_COMPLETED)
        failed = not stop.is_set()
        for task in (must_end, stopping):
            task.cancel()
        end_on_signal()
        log.info(line("stopping"))
        if fronts is not None:
            fronts.close()
        await server.stop()
    finally:
        await store.close()
        disk.close()
    log.info(line("stopped"))
    return 1 if failed else 0


async def _fronts(member: Member, server: BookieServer) -> "BookieFronts":
    from cli.processes.bookie_fronts import BookieFronts

    fronts = BookieFronts(member, server)
    await fronts.open()
    return fronts


def _tell_ready(server: BookieServer, json_ready: str | None, member: Member | None) -> None:
    identity = server.identity
    log.info(line("ready", bookieId=identity.bookie_id, port=identity.port, http=server.web_port or "off", pid=os.getpid()))
    ready: dict[str, object] = {"bookieId": identity.bookie_id, "bookiePort": identity.port, "pid": os.getpid()}
    if server.web_port is not None:
        ready["httpServerPort"] = server.web_port
    if json_ready:
        write_whole(Path(json_ready), json.dumps(ready))
    if member is not None:
        member.tell_ready(ready)
