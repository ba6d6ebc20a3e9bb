"""`interpulse zookeeper`: a real Apache ZooKeeper as a child process, for those who have none.

Owns the child: it is ready when it answers as a server that serves, it ends at SIGTERM and SIGINT, and its end ends this
process. Exit codes: 0 after a clean stop, 1 when it could not start or ended by itself.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from cli.data_place import default_data
from cli.serving.process import stop_on_signal
from cli.serving.ready_file import write_whole
from cli.zookeeper.java import (
    ZooKeeperConfiguration,
    ZooKeeperFailed,
    find_classpath,
    find_java,
    java_command,
    write_configuration,
    zookeeper_configuration,
)
from ports.logs import configure_logs, line

log = logging.getLogger("interpulse")

READY_SECONDS_MAX = 120.0
PROBE_SECONDS = 0.05
STOP_SECONDS_MAX = 20.0


def run_zookeeper(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    configure_logs()
    directory = (Path(options.data_dir) if options.data_dir else default_data("zookeeper")).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        configuration = zookeeper_configuration(directory, options.set)
        java = find_java()
        command = java_command(java, find_classpath(directory), write_configuration(configuration, directory))
        return asyncio.run(_serve(configuration, command, options.json_ready))
    except (ZooKeeperFailed, OSError) as error:
        print(f"interpulse zookeeper: {error}", file=sys.stderr)
        return 1


async def _serve(configuration: ZooKeeperConfiguration, command: Sequence[str], json_ready: str | None) -> int:
    stop = stop_on_signal()
    if await _probe(configuration.client_host, configuration.client_port, b"ruok"):
        raise ZooKeeperFailed(f"something answers on port {configuration.client_port} already: stop it, or --set clientPort=0")
    child = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True)
    ended = asyncio.create_task(child.wait())
    stopped = asyncio.create_task(stop.wait())
    ready = asyncio.create_task(_until_ready(configuration))
    try:
        await asyncio.wait((ended, stopped, ready), timeout=READY_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            _tell_ready(configuration, child.pid, json_ready)
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ready.cancel()
        stopped.cancel()
        await _end(child, ended)
    if not stop.is_set():
        where = f"port {configuration.client_port}, dataDir {configuration.values['dataDir']}"
        raise ZooKeeperFailed(f"ZooKeeper ended with code {child.returncode} or did not begin to serve ({where}): see above")
    log.info(line("stopped"))
    return 0


async def _end(child: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
    """SIGTERM is ZooKeeper's own way to stop; a server that does not is killed, which it is made for."""
    if child.returncode is None:
        child.terminate()
    await asyncio.wait((ended,), timeout=STOP_SECONDS_MAX)
    if not ended.done():
        child.kill()
        await ended


async def _until_ready(configuration: ZooKeeperConfiguration) -> None:
    while b"Mode: " not in await _probe(configuration.client_host, configuration.client_port, b"srvr"):  # noqa: ASYNC110  # another process has no event to wait for
        await asyncio.sleep(PROBE_SECONDS)


async def _probe(host: str, port: int, word: bytes) -> bytes:
    """The answer to one of ZooKeeper's four-letter words; empty when the server does not answer."""
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(word)
                return await reader.read(4096)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


def _tell_ready(configuration: ZooKeeperConfiguration, pid: int, json_ready: str | None) -> None:
    url = f"zk:{configuration.client_host}:{configuration.client_port}"
    log.info(line("ready", metadataStoreUrl=url, pid=pid))
    if json_ready:
        write_whole(Path(json_ready), json.dumps({"metadataStoreUrl": url, "pid": pid}))
