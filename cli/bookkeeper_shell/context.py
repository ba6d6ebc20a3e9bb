"""Shell: what every command is given: the configuration, where to write, how to ask, and how to reach the metadata.

Owns the errors that a command may end with. Never in here: what a command does.
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cli.configuration.loading import Configuration

if TYPE_CHECKING:
    from metadata.zookeeper.store import ZooKeeperStore
    from ports.network.tls import RenewedTls

S = TypeVar("S")

SESSION_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""Time that ZooKeeper may take to answer; an operator waits for it."""
LEDGER_ID_FORMATS: dict[str, Callable[[int], str]] = {
    "long": str,
    "hex": lambda ledger_id: f"{ledger_id:x}",
    "uuid": lambda ledger_id: f"00000000-0000-0000-{ledger_id >> 48 & 0xFFFF:04x}-{ledger_id & 0xFFFFFFFFFFFF:012x}",
}


class CommandFailed(Exception):
    """The message names what is wrong and the remedy; it goes to stderr, and the exit code is the command's."""


@dataclass(frozen=True, slots=True)
class Shell:
    """`entry_format` is how payloads are shown: string or hex."""

    configuration: Configuration
    configured_in: str = ""
    """The file, for messages."""
    ledger_id_format: str = "long"
    entry_format: str = "string"

    def settings(self, cls: type[S]) -> S:
        return self.configuration.settings(cls)

    def with_setting(self, key: str, value: str) -> "Shell":
        """The same with another value of one key."""
        return replace(self, configuration=Configuration({**self.configuration.values, key: value}))

    def say(self, text: str) -> None:
        """A whole line on stdout, flushed for readers of a pipe."""
        print(text, flush=True)

    def warn(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def read_file(self, path: str) -> bytes:
        """OSError."""
        return Path(path).read_bytes()

    def write_file(self, path: str, data: bytes) -> None:
        """OSError."""
        Path(path).write_bytes(data)

    def ledger(self, ledger_id: int) -> str:
        return LEDGER_ID_FORMATS[self.ledger_id_format](ledger_id)

    def confirm(self, question: str) -> bool:
        """Asks as Apache's shell does: Y or N, until the answer is one of them. No more input is a no."""
        while True:
            print(f"{question} (Y or N) ", end="", flush=True)
            answer = sys.stdin.readline()
            if not answer or answer.strip().upper() in ("N", "NO"):
                return False
            if answer.strip().upper() in ("Y", "YES"):
                return True
            print(f"Invalid input : {answer.strip()}")

    @property
    def service_uri(self) -> str:
        """CommandFailed when the configuration does not say where the metadata is."""
        from bookie.server.settings import BookieServerSettings

        uri = self.settings(BookieServerSettings).metadata_service_uri
        if not uri:
            raise CommandFailed(
                f"metadataServiceUri is not set in {self.configured_in or 'the configuration'}: "
                "such as zk+hierarchical://host1:2181;host2:2181/ledgers; -conf names another file"
            )
        return uri

    def client_tls(self) -> "RenewedTls | None":
        """TLS as the bookies of this configuration have it; None: in the clear. BadTls. Within the event loop."""
        from bookie.server.security.settings import BookieSecuritySettings
        from cli.autorecovery.server import client_tls

        return client_tls(self.settings(BookieSecuritySettings))

    @asynccontextmanager
    async def metadata(self) -> AsyncIterator["ZooKeeperStore"]:
        """A session with ZooKeeper. CommandFailed, MetadataError."""
        from functools import partial

        from bookkeeper.ledger_metadata.paths import ROOT
        from metadata.zookeeper.connect_string import parse_service_uri
        from metadata.zookeeper.kazoo_session import KazooSession
        from metadata.zookeeper.store import ZooKeeperStore

        uri = parse_service_uri(self.service_uri)
        if uri.ledgers_root != ROOT:
            raise CommandFailed(f"metadataServiceUri={self.service_uri}: ledgers are under {ROOT} here")
        logging.getLogger("metadata").setLevel(logging.ERROR)
        store = await ZooKeeperStore.open(partial(KazooSession, uri.servers, SESSION_SECONDS), ANSWER_SECONDS, uri.servers)
        try:
            yield store
        finally:
            await store.close()
