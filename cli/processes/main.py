"""`interpulse broker --processes N` and `interpulse bookie --processes N`: the supervisor's own process.

Owns the ports in front, the directory of the sockets for metrics, the ready line. Exit codes: 0 after a stop that was asked
for, 1 when the processes could not be started or all were given up.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cli.command_line.server_options import PROCESS_OF
from cli.configuration.loading import Configuration, load_configuration
from cli.configuration.verdicts import BOOKIE, BROKER
from cli.processes.local_http import PATH_BYTES_MAX
from cli.processes.place import Place
from cli.processes.plan import ProcessesPlan, checked_count
from cli.processes.supervisor import Supervisor
from cli.serving.ready_file import write_whole
from cli.serving.start_failures import start_failure
from ports.logs import configure_logs, line
from ports.settings import BadSetting

log = logging.getLogger("interpulse")

KINDS = (BROKER, BOOKIE)
STANDALONE_REFUSAL = (
    "--processes: a standalone's metadata and bookie are in its one process and other processes cannot reach them: for several"
    " processes run `interpulse devcluster --brokers N`, or ZooKeeper, bookies and `interpulse broker --processes N`"
)


def run_processes(options: argparse.Namespace) -> int:
    """Until SIGTERM or SIGINT; SIGHUP restarts one process after another."""
    kind = str(options.command)
    if kind not in KINDS:
        print(f"interpulse {kind}: {STANDALONE_REFUSAL}", file=sys.stderr)
        return 1
    configure_logs(process="supervisor")
    configuration: Configuration | None = None
    try:
        count = checked_count(f"interpulse {kind}", options.processes)
        files = [(options.config, Path(options.config).read_text())] if options.config else []
        configuration = load_configuration(files, options.set)
        plan = _plan(kind, configuration, count)
        with ExitStack() as held:
            fronts = {each.key: held.enter_context(_bound(each.host, each.port)) for each in plan.fronts}
            directory = held.enter_context(_directory())
            gc.enable()
            return asyncio.run(_serve(plan, _command(options, plan), fronts, directory, options.json_ready))
    except (BadSetting, OSError) as error:
        print(f"interpulse {kind}: {start_failure(error, configuration, _port_settings(kind))}", file=sys.stderr)
        return 1


def _plan(kind: str, configuration: Configuration, count: int) -> ProcessesPlan:
    if kind == BROKER:
        from cli.broker.server import advertised_host
        from cli.configuration.server_settings import ServerSettings
        from cli.processes.plan import broker_plan

        return broker_plan(configuration, advertised_host(configuration.settings(ServerSettings)), count)
    from cli.processes.plan import bookie_plan

    return bookie_plan(configuration, count)


def _port_settings(kind: str) -> Sequence[type]:
    """Those that name a port, for a failure to listen."""
    if kind == BROKER:
        from broker.security.tls_settings import TlsSettings
        from cli.configuration.server_settings import ServerSettings

        return (ServerSettings, TlsSettings)
    from bookie.server.settings import BookieServerSettings
    from bookie.web.settings import BookieWebSettings

    return (BookieServerSettings, BookieWebSettings)


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket, which does not listen before a process is ready. Another server on this port is found now."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port} in front of all processes: {error.strerror}") from error
    return bound


@contextmanager
def _directory() -> Iterator[str]:
    """Directory of the sockets for metrics: this user's alone."""
    path = tempfile.mkdtemp(prefix="pulsar-processes-")
    try:
        if len(path) > PATH_BYTES_MAX:
            raise BadSetting(f"TMPDIR={tempfile.gettempdir()}: too long for the sockets in it: set TMPDIR to a shorter path")
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _command(options: argparse.Namespace, plan: ProcessesPlan) -> Callable[[Place], Sequence[str]]:
    """Command line of a process: the options given here, and those of its place."""
    given = [*(("--config", options.config) if options.config else ()), *(("--from-env",) if options.from_env else ())]
    shared = [word for each in options.set for word in ("--set", each)]

    def command(place: Place) -> Sequence[str]:
        own = [word for each in plan.settings[place.number] for word in ("--set", each)]
        return (sys.executable, "-P", "-m", "cli", plan.kind, *given, *shared, *own, PROCESS_OF, place.text())

    return command


async def _serve(
    plan: ProcessesPlan,
    command: Callable[[Place], Sequence[str]],
    fronts: dict[str, socket.socket],
    directory: str,
    json_ready: str | None,
) -> int:
    def tell(supervisor: Supervisor) -> None:
        processes = [{"number": child.number, **child.ready} for child in supervisor.children.values()]
        if json_ready:
            write_whole(Path(json_ready), json.dumps({**plan.urls, "pid": os.getpid(), "processes": processes}))

    async def begin(supervisor: Supervisor) -> asyncio.Server:
        """Serves the metrics before the ready line: its reader may ask for them at once."""
        try:
            return await _serve_metrics(supervisor, directory)
        finally:
            log.info(line("ready", **plan.urls, processes=len(supervisor.children), pid=os.getpid()))
            tell(supervisor)

    def on_ready(supervisor: Supervisor) -> None:
        if not told:
            told.append(asyncio.create_task(begin(supervisor), name="metrics of all processes"))
        elif told[0].done():
            tell(supervisor)

    told: list[asyncio.Task[asyncio.Server]] = []
    numbers = {key: bound.fileno() for key, bound in fronts.items()}
    supervisor = Supervisor(plan, command, numbers, directory, on_ready)
    code = await supervisor.run()
    for task in told:
        (await task).close()
    log.info(line("stopped", exit_code=code))
    return code


async def _serve_metrics(supervisor: Supervisor, directory: str) -> asyncio.Server:
    from cli.processes.gathering import Gathering

    return await Gathering(supervisor, directory).serve(Place(0, 0, 0, {}, directory).all_metrics)
