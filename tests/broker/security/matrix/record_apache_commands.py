"""Asks an Apache Pulsar each of `commands` in the name of each role, and writes down what it decides. After `record_apache`.

    python -m tests.broker.security.matrix.record_apache_commands 127.0.0.1:6650 BASE64_SECRET > apache-4.0.8-commands.txt

A line is `name: letters`, a letter for each of `roles.ROLES`, as `commands.letter` says.
"""

import base64
import socket
import sys
from typing import Any

from tests.broker.security.matrix.commands import commands, letter
from tests.broker.security.matrix.roles import ROLES, SUBSCRIPTION, SUPER_USER, TOPIC, Who
from tests.broker.security.secured_server import connect
from tests.broker.security.token_maker import token
from wire.frames import PONG, encode, next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand


def connect_as(who: Who, secret: bytes) -> BaseCommand:
    """CONNECT in its name."""
    fields: dict[str, Any] = {"original_principal": who.original} if who.original else {}
    if who.role is None:
        return connect(None, "none", **fields)
    return connect(token(who.role or SUPER_USER, secret=secret if who.role else b"x" * 32), **fields)


def ask(address: tuple[str, int], secret: bytes, who: Who, command: BaseCommand) -> BaseCommand | None:
    """None: not let in."""
    with socket.create_connection(address, timeout=15) as connection:
        connection.sendall(encode(connect_as(who, secret)))
        if _answer(connection).type != BaseCommand.CONNECTED:
            return None
        connection.sendall(encode(command))
        return _answer(connection)


def _answer(connection: socket.socket) -> BaseCommand:
    data = b""
    while True:
        frame = next_frame(data, 0, len(data))
        if frame is None:
            data += connection.recv(65536) or b"\0" * 8
        elif frame.command.type == BaseCommand.PING:
            connection.sendall(PONG)
            data = data[frame.end :]
        else:
            return frame.command


def main() -> None:
    host, _, port = sys.argv[1].partition(":")
    secret = base64.b64decode(sys.argv[2])
    for name, command in commands(TOPIC, SUBSCRIPTION).items():
        print(f"{name}: " + "".join(letter(ask((host, int(port)), secret, who, command)) for who in ROLES), flush=True)


if __name__ == "__main__":
    main()
