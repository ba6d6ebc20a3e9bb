"""`interpulse standalone`: the real ports, one process, signals, and the line that says it is ready.

Owns the process; `cli.standalone.server` owns its parts. Exit codes: 0 after a clean stop, 1 when it could not start or failed.
"""

import argparse
import contextlib
import fcntl
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from broker.security.tls_settings import TlsSettings
from cli.broker.process import settle_interpreter, tell_ready
from cli.broker.web_ports import bound_web_ports
from cli.configuration.loading import CONF, STANDALONE_CONF, Configuration, load_configuration
from cli.configuration.server_settings import ServerSettings
from cli.configuration.verdicts import STANDALONE
from cli.data_place import default_data
from cli.serving.process import end_on_signal, heed_configuration, stop_on_signal
from cli.serving.start_failures import start_failure
from cli.standalone.server import SETTINGS, Standalone, StandaloneFailed
from cli.standalone.throwaway import NotEmpty, stop_with, thrown_away
from metadata.embedded import EmbeddedStore
from metadata.store import MetadataError
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.logs import configure_logs, line
from ports.rng import RealRng
from ports.settings import BadSetting

log = logging.getLogger("interpulse")


def run_standalone(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT, or until the process `--end-with` has ended."""
    configure_logs()
    configuration: Configuration | None = None
    try:
        configuration = standalone_configuration(options.config, options.set)
        with _directory(options.data_dir, options.throwaway) as directory, _exclusively(directory):
            return uvloop.run(_serve(configuration, directory, options.json_ready, options.end_with))
    except (BadSetting, StandaloneFailed, MetadataError, NotEmpty, OSError) as error:
        print(f"interpulse standalone: {start_failure(error, configuration, (ServerSettings, TlsSettings))}", file=sys.stderr)
        return 1


def standalone_configuration(config: str | None, overrides: Sequence[str]) -> Configuration:
    """The defaults of a standalone stand under the file that is given: it has one bookie, whatever the file leaves out."""
    paths = [CONF / STANDALONE_CONF, *([Path(config)] if config else [])]
    return load_configuration([(str(path), path.read_text()) for path in paths], overrides)


def _directory(given: str | None, is_throwaway: bool) -> contextlib.AbstractContextManager[Path]:
    if is_throwaway:
        return thrown_away(given)
    return contextlib.nullcontext(Path(given) if given else default_data("standalone"))


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
            raise StandaloneFailed(
                f"{self._path.parent} is in use by another process: stop that one, or give another --data-dir"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._file.close()


async def _serve(configuration: Configuration, directory: Path, json_ready: str | None, end_with: int | None) -> int:
    heed_configuration(configuration, STANDALONE, SETTINGS)
    stop = stop_on_signal()
    if end_with is not None:
        stop_with(end_with, stop)
    failures: list[str] = []

    def fail(reason: str) -> None:
        failures.append(reason)
        stop.set()

    disk, clock = RealDisk(), RealClock()
    store = await EmbeddedStore.open(str(directory / "metadata"), clock, fail)
    standalone = Standalone(configuration, str(directory), disk, clock, RealRng(), store)
    await standalone.start()
    standalone.hand_over_files()
    web = bound_web_ports(standalone.server_settings, standalone.tls_settings)
    await standalone.serve(web.number, web.tls_number)
    await web.serve(
        standalone.service, store, standalone.security, standalone.tls, standalone.coordinators, standalone.websockets
    )
    settle_interpreter()
    tell_ready(standalone.service, json_ready)
    await stop.wait()
    end_on_signal()
    log.info(line("stopping"))
    web.close()
    await standalone.stop()
    await store.close()
    disk.close()
    for reason in failures:
        log.error(line("stopped by a failure", reason=reason))
    log.info(line("stopped"))
    return 1 if failures else 0
