"""Cluster: what the metadata says of bookies and ledgers, for the shell's commands and for a bookie's HTTP.

Reads, but for what `ledgers` and `bookkeeper.repair` write. Never in here: entries, and how anything is shown.
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ledger_metadata.layouts import LAYOUTS, UnknownLayout, parse_layout
from bookkeeper.ledger_metadata.paths import AVAILABLE, INSTANCE_ID, LAYOUT, READ_ONLY
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.repair.all_ledgers import all_ledger_ids
from bookkeeper.repair.registered import COOKIES, registered_bookies
from metadata.store import MetadataStore, Versioned
from ports.rng import RealRng

UNKNOWN = "UNKNOWN"
_RESERVED = READ_ONLY.rpartition("/")[2]
_BOOKIE_ID = re.compile(r"[A-Za-z0-9:_.\-]+")


class ClusterFailed(Exception):
    """A request that cannot be done; the message names the thing and the remedy."""


class NotThere(ClusterFailed):
    """The ledger, bookie or cookie that was named is not there."""


@dataclass(frozen=True, slots=True)
class BookieAddress:
    """Address of a bookie; port 0 and UNKNOWN where it is not known (Apache's CommandHelpers)."""

    bookie_id: str
    host: str = UNKNOWN
    port: int = 0
    ip: str = UNKNOWN

    def __str__(self) -> str:
        return f"BookieID:{self.bookie_id}, IP:{self.ip}, Port:{self.port}, Hostname:{self.host}"


class Cluster:
    """One cluster's metadata. Every method may raise MetadataError: the store cannot be asked."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self._registry: LedgerRegistry | None = None

    # Bookies

    async def writable(self) -> list[str]:
        """Ids, sorted; of the bookies that take adds now."""
        return sorted((await registered_bookies(self.store)).writable)

    async def read_only(self) -> list[str]:
        return sorted((await registered_bookies(self.store)).read_only)

    async def known(self) -> list[str]:
        """All that have a cookie, whether they run or not."""
        return await self.store.children(COOKIES)

    async def service_info(self, bookie_id: str) -> bytes | None:
        """The value of its node (BookieServiceInfoFormat); None: it is not registered."""
        for parent in (AVAILABLE, READ_ONLY):
            found = await self.store.get(f"{parent}/{bookie_id}")
            if found is not None:
                return found.value
        return None

    async def address(self, bookie_id: str) -> BookieAddress:
        """Also looked up by name, so that it may take as long as the system's resolver."""
        from bookkeeper.network.network_bookies import address_in, decode_address

        info = await self.service_info(bookie_id)
        where = address_in(bookie_id) if info is None else decode_address(bookie_id, info)
        if where is None:
            return BookieAddress(bookie_id)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
            ip = str(found[0][4][0])
            host = (await loop.getnameinfo((ip, where.port), 0))[0] if ip == where.host else where.host
        except (OSError, UnicodeError):
            return BookieAddress(bookie_id, where.host, where.port)
        return BookieAddress(bookie_id, host, where.port, ip)

    # The cluster

    async def instance_id(self) -> str:
        """NotThere when there is no cluster."""
        found = await self.store.get(INSTANCE_ID)
        if found is None:
            raise _no_cluster(INSTANCE_ID)
        return found.value.decode()

    async def registry(self) -> LedgerRegistry:
        """Registry of the cluster's ledgers. NotThere without a cluster, ClusterFailed for an unknown layout."""
        if self._registry is None:
            found = await self.store.get(LAYOUT)
            if found is None:
                raise _no_cluster(LAYOUT)
            try:
                parse_layout(found.value)
            except UnknownLayout as error:
                raise ClusterFailed(f"{LAYOUT}: {error}") from error
            self._registry = LedgerRegistry(self.store, RealRng(), LAYOUTS)
            await self._registry.initialise()
        return self._registry

    # Ledgers

    async def ledger_node(self, ledger_id: int) -> Versioned:
        """Node of a ledger as stored. NotThere; LedgerError for an id that the layout has no place for."""
        path = (await self.registry()).path(ledger_id)
        found = await self.store.get(path)
        if found is None:
            raise _no_ledger(ledger_id, path)
        return found

    async def ledger(self, ledger_id: int) -> LedgerMetadata:
        """NotThere; LedgerError for metadata that cannot be read."""
        registry = await self.registry()
        try:
            return (await registry.read(ledger_id)).metadata
        except NoSuchLedger:
            raise _no_ledger(ledger_id, registry.path(ledger_id)) from None

    async def ledger_ids(self) -> AsyncGenerator[int, None]:
        """All of them; read level by level, so that what comes or goes meanwhile may be missed."""
        async for ledger_id in all_ledger_ids(self.store, await self.registry()):
            yield ledger_id

    async def ledgers(self) -> AsyncGenerator[tuple[int, LedgerMetadata | LedgerError], None]:
        """Ledgers with their metadata, or the error of reading it; a ledger that is deleted meanwhile is left out."""
        async for ledger_id in self.ledger_ids():
            try:
                yield ledger_id, await self.ledger(ledger_id)
            except NotThere:
                continue
            except LedgerError as error:
                yield ledger_id, error


def _no_ledger(ledger_id: int, path: str) -> NotThere:
    return NotThere(f"ledger {ledger_id} is not there ({path}): it was deleted, or never made")


def _no_cluster(path: str) -> NotThere:
    return NotThere(f"{path} is not there: no cluster was made here; `bookkeeper shell initnewcluster` does")


def checked_bookie_id(text: str) -> str:
    """ClusterFailed for what can be no bookie's id (BookieId.validateBookieId)."""
    if not _BOOKIE_ID.fullmatch(text) or text == _RESERVED:
        raise ClusterFailed(f"invalid bookie id {text!r}: expected <host>:<port>, or letters, digits, ':', '_', '.' and '-'")
    return text
