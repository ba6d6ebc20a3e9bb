"""HTTP on a Unix domain socket, for metrics between the processes of one machine: a server, and one request.

Owns the bounds of what is read. The rights of the directory decide which users may connect.
"""

import asyncio
import http.client
import os
import socket
from contextlib import suppress
from typing import Any

BYTES_MAX = 512 << 20
"""Size of one answer: some million series."""
PATH_BYTES_MAX = 100
"""Length that every system takes as the path of a socket."""


class _Connection(http.client.HTTPConnection):
    """HTTP connection to a path in place of a host."""

    def __init__(self, path: str, seconds_max: float) -> None:
        super().__init__("localhost", timeout=seconds_max)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def fetched(path: str, target: str, seconds_max: float) -> bytes:
    """Body that GET returns. `seconds_max` is of each wait. OSError, also for a bad or too large answer. It blocks."""
    connection = _Connection(path, seconds_max)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        body = answer.read(BYTES_MAX + 1)
        if answer.status != 200 or len(body) > BYTES_MAX:
            raise OSError(f"{target} of {path} answered {answer.status} with {len(body)} bytes")
        return body
    except http.client.HTTPException as error:
        raise OSError(f"{target} of {path}: {error or type(error).__name__}") from error
    finally:
        connection.close()


async def served(app: Any, path: str) -> asyncio.Server:
    """The application listens there; a socket that one before left is taken away. OSError."""
    from ports.network.web_port import WebPort  # a tenth of a second, when the server is ready

    with suppress(FileNotFoundError):
        os.unlink(path)
    return await asyncio.get_running_loop().create_unix_server(WebPort(app), path)
