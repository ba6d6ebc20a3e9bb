"""Questions of another terminal to a running devcluster: a socket in its data directory, one question a connection.

The question is a line `VERB NAME`; the answer is `ok` or `no`, then lines for people. Both sides stand in the data directory: a
socket's path must be short.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from cli.devcluster.plan import DevclusterFailed

SOCKET = "control"
QUESTION_BYTES_MAX = 1024
ANSWER_BYTES_MAX = 1 << 20
ANSWER_SECONDS_MAX = 300.0


async def serve_control(answer: Callable[[str, str], Awaitable[str]]) -> asyncio.Server:
    """Serves in the current directory, on a new socket. `answer` is given verb and name; its DevclusterFailed is sent."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            verb, _, name = (await reader.readline()).decode(errors="replace").strip().partition(" ")
            try:
                said = "ok\n" + await answer(verb, name)
            except DevclusterFailed as error:
                said = f"no\n{error}"
            writer.write(said.encode())
            await writer.drain()
        except (OSError, ValueError):
            return  # the client went away, or wrote no line
        finally:
            writer.close()

    return await asyncio.start_unix_server(on_connection, SOCKET, limit=QUESTION_BYTES_MAX)


def is_served(data: Path) -> bool:
    """Whether a devcluster runs on this data. The socket of one that was killed is taken away."""
    if not data.is_dir():
        return False
    os.chdir(data)
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):  # no devcluster listens
        connection.connect(SOCKET)
        return True
    Path(SOCKET).unlink(missing_ok=True)
    return False


def ask(data: Path, verb: str, name: str) -> str:
    """The answer of the devcluster on this data. DevclusterFailed."""
    if not is_served(data):
        raise DevclusterFailed(f"no devcluster runs on {data}: start one, or say where yours is with --data DIR")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS_MAX)
        connection.connect(SOCKET)
        connection.sendall(f"{verb} {name}\n".encode())
        said = b""
        while (chunk := connection.recv(ANSWER_BYTES_MAX)) and len(said) < ANSWER_BYTES_MAX:
            said += chunk
    verdict, _, text = said.decode(errors="replace").partition("\n")
    if verdict != "ok":
        raise DevclusterFailed(text or "it ended without an answer: see its terminal")
    return text
