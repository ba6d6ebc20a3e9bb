"""NetworkBookies: the bookies of a cluster as the metadata names them, each a `NetworkBookie`.

Iterating gives those that take new ledgers (`available/<id>`); looking one up also gives read-only ones and those that are not
registered now but whose name is an address: entries may be read from any bookie that a ledger's metadata names.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from bookkeeper.ledger_metadata.paths import AVAILABLE, READ_ONLY
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.ports import BookieClient
from metadata.followed_tree import FollowedTree
from metadata.store import MetadataStore
from ports.logs import line
from ports.network.read_buffer import SharedRoom
from ports.network.tls import RenewedTls
from wire.generated.ledger_metadata_pb2 import BookieServiceInfoFormat

log = logging.getLogger(__name__)

_READ_ONLY_NAME = READ_ONLY.rpartition("/")[2]


class Address(NamedTuple):
    """Address at which a bookie listens."""

    host: str
    port: int


class NetworkBookies(Mapping[str, BookieClient]):
    """Satisfies what `BookKeeper` is given as its bookies. `open` first, `close` last."""

    def __init__(
        self,
        store: MetadataStore,
        timeout_seconds: float = 30.0,
        *,
        use_version2: bool = True,
        tls: RenewedTls | None = None,
    ) -> None:
        """Without `tls` bookies are spoken to in the clear."""
        self._tls = tls
        self._store, self._timeout, self._use_version2 = store, timeout_seconds, use_version2
        self._room = SharedRoom()
        self._writable: dict[str, Address] = {}
        self._read_only: dict[str, Address] = {}
        self._clients: dict[tuple[str, Address], NetworkBookie] = {}
        self._followed = FollowedTree(store, AVAILABLE, self._refresh, "bookies")

    async def open(self) -> None:
        """Read the registered bookies, and follow their changes. MetadataError."""
        await self._followed.open()

    async def close(self) -> None:
        await self._followed.close()
        for client in self._clients.values():
            await client.close()

    def count_known(self) -> int:
        """Registered bookies, also those that take no new entries."""
        return len(self._writable) + len(self._read_only)

    def publish_refusal(self, ack_quorum: int) -> str:
        """Why no entry can be stored now; empty: it can, or bookies are away rather than read-only."""
        if len(self._writable) >= ack_quorum or not self._read_only:
            return ""
        names = ", ".join(sorted(self._read_only))
        return f"{len(self._writable)} bookies take entries, {ack_quorum} must; read-only (a full disk?): {names}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._writable)

    def __len__(self) -> int:
        return len(self._writable)

    def __getitem__(self, name: str) -> BookieClient:
        address = self._writable.get(name) or self._read_only.get(name) or address_in(name)
        if address is None:
            raise KeyError(name)
        client = self._clients.get((name, address))
        if client is None:
            where = address.host, address.port, self._room, self._timeout
            client = NetworkBookie(name, *where, use_version2=self._use_version2, tls=self._tls)
            self._clients[name, address] = client
        return client

    async def _refresh(self) -> None:
        writable = await self._registered(AVAILABLE)
        self._read_only = await self._registered(READ_ONLY)
        self._writable = {name: address for name, address in writable.items() if name not in self._read_only}

    async def _registered(self, parent: str) -> dict[str, Address]:
        found = {}
        for name in await self._store.children(parent):
            node = None if name == _READ_ONLY_NAME else await self._store.get(f"{parent}/{name}")
            address = None if node is None else decode_address(name, node.value)
            if address is not None:
                found[name] = address
        return found


def decode_address(name: str, service_info: bytes) -> Address | None:
    """The endpoint of the bookie protocol (BookieServiceInfo); of an old bookie, which says nothing, its name."""
    try:
        info = BookieServiceInfoFormat.FromString(service_info)
    except DecodeError:
        log.warning(line("a bookie's node cannot be read", bookie=name, bytes=len(service_info)))
        return address_in(name)
    for endpoint in info.endpoints:
        if endpoint.protocol == "bookie-rpc":
            return Address(endpoint.host, endpoint.port)
    return address_in(name)


def address_in(name: str) -> Address | None:
    """Address in a name that is `host:port`."""
    host, colon, port = name.rpartition(":")
    return Address(host, int(port)) if colon and host and port.isascii() and port.isdigit() else None
