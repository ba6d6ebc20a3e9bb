"""`bin/pulsar standalone`: the real ports, one process, signals, and the line that says it is ready.

Owns the process; `cli.standalone` owns what runs in it. Exit codes: 0 after a clean stop, 1 when it could not start or failed.
"""

import asyncio
import fcntl
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from cli.configuration import CONF, Configuration, load_configuration
from cli.standalone import SETTINGS, VERSION, Standalone, StandaloneFailed
from metadata.embedded import EmbeddedStore
from metadata.store import MetadataError
from ports.clock import RealClock
from ports.logs import configure_logs, line
from ports.real_disk import RealDisk
from ports.rng import RealRng
from ports.settings import BadSetting
from wire.kernels import sends

log = logging.getLogger("magnetar")

ROOT = Path(__file__).resolve().parent.parent
READ_BUFFERS_BEFORE_GC = 50_000
"""Allocations between two runs of the cycle collector; nothing on the message path makes cycles."""


def run_standalone(data_dir: str | None, config: str | None, overrides: Sequence[str], json_ready: str | None) -> int:
    """Serve until SIGTERM or SIGINT."""
    configure_logs()
    try:
        configuration = _configuration(config, overrides)
        directory = Path(data_dir) if data_dir else ROOT / "data" / "standalone"
        with _exclusively(directory):
            return uvloop.run(_serve(configuration, directory, json_ready))
    except (BadSetting, StandaloneFailed, MetadataError, OSError) as error:
        print(f"bin/pulsar standalone: {error}", file=sys.stderr)
        return 1


def _configuration(config: str | None, overrides: Sequence[str]) -> Configuration:
    path = Path(config) if config else CONF / "standalone.conf"
    return load_configuration([(str(path), path.read_text())], overrides)


class _exclusively:  # noqa: N801  # reads as a clause
    """Holds the data directory for this process; StandaloneFailed when another has it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "lock"
        self._file = self._path.open("a+")

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StandaloneFailed(f"{self._path.parent} is in use by another process") from None

    def __exit__(self, *_: object) -> None:
        self._file.close()


async def _serve(configuration: Configuration, directory: Path, json_ready: str | None) -> int:
    _tell_what_has_no_effect(configuration)
    stop = asyncio.Event()
    failures: list[str] = []

    def fail(reason: str) -> None:
        failures.append(reason)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    disk, clock = RealDisk(), RealClock()
    store = await EmbeddedStore.open(str(directory / "metadata"), clock, fail)
    standalone = Standalone(configuration, str(directory), disk, clock, RealRng(), store)
    await standalone.start()
    where = standalone.server_settings
    web_socket = _bound(where.bind_address, where.web_service_port)
    await standalone.serve(web_socket.getsockname()[1])
    web = await _serve_web(standalone, store, web_socket)
    gc.collect()
    gc.freeze()
    gc.set_threshold(READ_BUFFERS_BEFORE_GC, 20, 50)
    _tell_ready(standalone, json_ready)
    await stop.wait()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)  # a second signal ends the process at once
    log.info(line("stopping"))
    web.close()
    await standalone.stop()
    await store.close()
    disk.close()
    for reason in failures:
        log.error(line("stopped by a failure", reason=reason))
    log.info(line("stopped"))
    return 1 if failures else 0


def _bound(host: str, port: int) -> socket.socket:
    """Where the web server will listen. OSError names the address."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"the web server cannot listen on {host}:{port}: {error.strerror}") from error
    return bound


async def _serve_web(standalone: Standalone, store: EmbeddedStore, web_socket: socket.socket) -> asyncio.Server:
    """Last, and imported only now: a fifth of the time to start is this import, and publishing does not need it."""
    from broker.admin.app import admin_app, serve_admin

    return await serve_admin(admin_app(standalone.service, store, VERSION), web_socket)


def _tell_what_has_no_effect(configuration: Configuration) -> None:
    unused = configuration.without_effect(*SETTINGS)
    if unused:
        log.warning(line("settings without effect here", keys=",".join(unused)))


def _tell_ready(standalone: Standalone, json_ready: str | None) -> None:
    found = standalone.service.advertised
    kernels = (
        "compiled" if not sends.__file__.endswith(".py") else "NOT COMPILED (no C compiler at installation): slower, see README"
    )
    log.info(line("ready", brokerServiceUrl=found.broker_url, webServiceUrl=found.http_url, pid=os.getpid(), kernels=kernels))
    if json_ready:
        _write_whole(
            Path(json_ready),
            json.dumps({"brokerServiceUrl": found.broker_url, "webServiceUrl": found.http_url, "pid": os.getpid()}),
        )


def _write_whole(path: Path, text: str) -> None:
    """So that whoever waits for the file never reads half of it."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(text + "\n")
    partial.replace(path)
