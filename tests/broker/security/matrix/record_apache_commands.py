"""Asks an Apache Pulsar all `conversations` in the name of each role, and writes down what it decides. After `record_apache`.

    python -m tests.broker.security.matrix.record_apache_commands 127.0.0.1:6650 BASE64_SECRET > apache-4.0.8-commands.txt

The broker has transactions on. A line is `name: letters`, a letter for each of `roles.ROLES`, as `conversations.letter` says;
`C` for who is not let in at all.
"""

import base64
import contextlib
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.broker.connection.peer import lookup
from tests.broker.security.matrix.conversations import UNASKED, Step, World, command, conversations, letter
from tests.broker.security.matrix.roles import ROLES, SUBSCRIPTION, SUPER_USER, TOPIC, Who
from tests.broker.security.secured_server import connect
from tests.broker.security.token_maker import token
from wire.frames import PONG, encode, next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnId

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
SECONDS_MAX = 15.0
SILENCE_SECONDS = 2.0
"""Nothing that comes later is taken for an answer."""


def credentials(who: Who, secret: bytes) -> str | None:
    if who.role is None:
        return None
    return token(who.role or SUPER_USER, secret=secret if who.role else b"x" * 32)


def connect_as(who: Who, secret: bytes) -> BaseCommand:
    """CONNECT in its name."""
    fields: dict[str, Any] = {"original_principal": who.original} if who.original else {}
    given = credentials(who, secret)
    return connect(given, "none" if given is None else "token", **fields)


class Asking:
    """One connection of one role."""

    def __init__(self, address: tuple[str, int], who: Who, secret: bytes) -> None:
        self._socket = socket.create_connection(address, timeout=SECONDS_MAX)
        self._data, self.ended = b"", False
        self._socket.sendall(encode(connect_as(who, secret)))
        self.is_let_in = [each.type for each in self._answer(SECONDS_MAX)] == [BaseCommand.CONNECTED]

    def close(self) -> None:
        self._socket.close()

    def said(self, data: bytes, seconds: float) -> list[BaseCommand]:
        """Returns the answer: one command, or none in so long."""
        with contextlib.suppress(OSError):
            self._socket.sendall(data)
        return self._answer(seconds)

    def _answer(self, seconds: float) -> list[BaseCommand]:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            frame = next_frame(self._data, 0, len(self._data))
            if frame is None:
                if self.ended:
                    break
                self._read(left)
                continue
            self._data = self._data[frame.end :]
            if frame.command.type == BaseCommand.PING:
                self._socket.sendall(PONG)
            elif frame.command.type not in UNASKED:
                return [frame.command]
        return []

    def _read(self, seconds: float) -> None:
        self._socket.settimeout(seconds)
        try:
            found = self._socket.recv(65536)
        except TimeoutError:
            return
        except OSError:
            found = b""
        self.ended = not found
        self._data += found


def became(address: tuple[str, int], secret: bytes, who: Who, world: World, steps: Sequence[Step]) -> str:
    asking = Asking(address, who, secret)
    try:
        if not asking.is_let_in:
            return "C"
        said: list[BaseCommand] = []
        for step in steps[:-1]:
            said += asking.said(step(world, said), SECONDS_MAX)
        return letter(asking.said(steps[-1](world, said), SILENCE_SECONDS), ended=asking.ended)
    finally:
        asking.close()


def load_coordinator(address: tuple[str, int], secret: bytes) -> None:
    """Loads a coordinator like clients do, by a lookup. Asked again until it has taken its place."""
    while True:
        asking = Asking(address, Who("", SUPER_USER), secret)
        asking.said(encode(lookup(f"{ASSIGN}-partition-0")), SECONDS_MAX)
        told = asking.said(encode(command("TC_CLIENT_CONNECT_REQUEST", request_id=1, tc_id=0)), SECONDS_MAX)
        asking.close()
        if letter(told, ended=False) == "A":
            return
        time.sleep(1)


def another_transaction(address: tuple[str, int], secret: bytes) -> TxnId:
    asking = Asking(address, Who("", SUPER_USER), secret)
    asking.said(encode(command("TC_CLIENT_CONNECT_REQUEST", request_id=1, tc_id=0)), SECONDS_MAX)
    (told,) = asking.said(encode(command("NEW_TXN", request_id=2, tc_id=0, txn_ttl_seconds=3_600_000)), SECONDS_MAX)
    asking.close()
    return TxnId(told.new_txn_response.txnid_most_bits, told.new_txn_response.txnid_least_bits)


def main() -> None:
    host, _, port = sys.argv[1].partition(":")
    address, secret = (host, int(port)), base64.b64decode(sys.argv[2])
    load_coordinator(address, secret)
    for name, steps in conversations(TOPIC, SUBSCRIPTION).items():
        letters = ""
        for who in ROLES:
            txn_id = another_transaction(address, secret)
            given = (credentials(who, secret) or "").encode()
            letters += became(address, secret, who, World(TOPIC, SUBSCRIPTION, txn_id, given), steps)
        print(f"{name}: {letters}", flush=True)


if __name__ == "__main__":
    main()
