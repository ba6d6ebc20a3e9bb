"""A standalone on ports of its own with a stranger's configuration: TLS, tokens, passwords, and the tenants that its CI makes.

The addresses in a stranger's files are those of Apache's default ports; `moved` writes the standalone's own instead.
Never in here: how a suite is fetched or run.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients.server_process import PORT_KEYS, ServerProcess
from tests.started_process import ROOT, free_port
from tests.toolchain import run_tool

APACHES_PORTS = ("6650", "8080", "6651", "8443")
PORT_SETTINGS = (*PORT_KEYS, "brokerServicePortTls", "webServicePortTls")
ADMIN_SECONDS_MAX = 60.0
TOKEN_LOGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
_ADDRESS = re.compile(r"(localhost|127\.0\.0\.1):(6650|8080|6651|8443)\b")


@dataclass(frozen=True, slots=True)
class Places:
    """Ports of one standalone, in the order of APACHES_PORTS."""

    ports: tuple[str, ...]

    def moved(self, text: str) -> str:
        """Return the text with the standalone's ports in the addresses on loopback."""
        own = dict(zip(APACHES_PORTS, self.ports, strict=True))
        return _ADDRESS.sub(lambda at: f"{at[1]}:{own[at[2]]}", text)

    def settings(self) -> tuple[str, ...]:
        ports = (f"{key}={port}" for key, port in zip(PORT_SETTINGS, self.ports, strict=True))
        return (*ports, "bindAddress=127.0.0.1")


def free_places() -> Places:
    return Places(tuple(str(free_port()) for _ in APACHES_PORTS))


@dataclass(frozen=True, slots=True)
class Preparation:
    """Preparation that a stranger's CI does: pulsar-admin's command lines, in order, with the token of a super-user."""

    token: str
    commands: Sequence[str]


@contextmanager
def standalone(
    directory: Path, configuration: str, places: Places, settings: tuple[str, ...], preparation: Preparation | None = None
) -> Iterator[None]:
    """Run a standalone with the configuration's text, the settings over it, and the preparation done, if there is one."""
    directory.mkdir(parents=True)
    file = directory / "standalone.conf"
    file.write_text(configuration)
    with ServerProcess(directory, (*places.settings(), *settings)) as server:
        server.configuration, server.ports = str(file), ()
        ready = server.start()
        if preparation is not None:
            _prepare(ready.web_url, preparation)
        yield


def _prepare(web_url: str, preparation: Preparation) -> None:
    login = ["--auth-plugin", TOKEN_LOGIN, "--auth-params", f"token:{preparation.token}"]
    for command in preparation.commands:
        tool = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", web_url, *login, *command.split()]
        run_tool(tool, ROOT, ADMIN_SECONDS_MAX)
