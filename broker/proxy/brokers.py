"""Brokers that a proxy may reach, and the next one to ask. Owns a copy of /loadbalance/brokers, followed by its watch.

A client cannot choose an address: it is one of these, or it is refused.
"""

import asyncio
import fnmatch
import json
import logging
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

from metadata.followed_tree import FollowedTree
from metadata.store import MetadataError, MetadataStore
from ports.logs import line

from ..service.addresses import BROKERS
from .settings import ProxySettings

log = logging.getLogger(__name__)

REFRESH_SECONDS_MIN = 1.0
"""Between two reads for the sake of addresses that are not known."""


class Brokers(Protocol):
    """Addresses are `host:port`."""

    @property
    def count(self) -> int:
        """Number of registered brokers."""

    def pick(self) -> str | None:
        """Returns the next broker of the binary protocol, in turn; None: there is none."""

    def pick_web(self) -> str | None: ...
    async def may_reach(self, address: str) -> bool:
        """Whether the address is a broker's, for the binary protocol."""

    async def may_reach_web(self, address: str) -> bool: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...


class _Turns:
    """One after the other."""

    def __init__(self) -> None:
        self._next = 0

    def of(self, addresses: Sequence[str]) -> str | None:
        if not addresses:
            return None
        self._next += 1
        return addresses[self._next % len(addresses)]


class FixedBrokers:
    """brokerServiceURL and brokerWebServiceURL, without metadata: names and ports decide the permitted targets."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings

    @property
    def count(self) -> int:
        return 1

    def pick(self) -> str | None:
        return address_of(self._settings.broker_service_url)

    def pick_web(self) -> str | None:
        return address_of(self._settings.broker_web_service_url)

    async def may_reach(self, address: str) -> bool:
        host, _, port = address.rpartition(":")
        allowed = self._settings
        is_named = any(fnmatch.fnmatchcase(host, pattern) for pattern in allowed.broker_proxy_allowed_host_names)
        return is_named and (
            "*" in allowed.broker_proxy_allowed_target_ports or port in allowed.broker_proxy_allowed_target_ports
        )

    async def may_reach_web(self, address: str) -> bool:
        """Whether the address is the configured one: targets of redirects are not known here."""
        return address == self.pick_web()

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        return None


class MetadataBrokers:
    """The brokers that are registered. `open` first, `close` last; the store is its owner's."""

    def __init__(self, store: MetadataStore, settings: ProxySettings) -> None:
        self._store, self._settings = store, settings
        self._followed = FollowedTree(store, BROKERS, self._refresh, "brokers")
        self._addresses: tuple[str, ...] = ()
        self._listeners: frozenset[str] = frozenset()
        self._web: tuple[str, ...] = ()
        self._turns, self._web_turns = _Turns(), _Turns()
        self._reading = asyncio.Lock()
        self._read_at = 0.0

    @property
    def count(self) -> int:
        return len(self._addresses)

    def pick(self) -> str | None:
        return address_of(self._settings.broker_service_url) or self._turns.of(self._addresses)

    def pick_web(self) -> str | None:
        return address_of(self._settings.broker_web_service_url) or self._web_turns.of(self._web)

    async def may_reach(self, address: str) -> bool:
        if address not in self._listeners:
            await self._read_again()
        return address in self._listeners

    async def may_reach_web(self, address: str) -> bool:
        if address not in self._web:
            await self._read_again()
        return address in self._web

    async def open(self) -> None:
        """MetadataError."""
        await self._followed.open()

    async def close(self) -> None:
        await self._followed.close()

    async def _read_again(self) -> None:
        """A client may know of a new broker before our watch tells."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if now - self._read_at < REFRESH_SECONDS_MIN:
                return
            self._read_at = now
            try:
                await self._refresh()
            except MetadataError as error:
                log.warning(line("brokers unknown, those of before are used", reason=error))

    async def _refresh(self) -> None:
        addresses, listeners, web = [], set(), []
        for name in await self._store.children(BROKERS):
            node = await self._store.get(f"{BROKERS}/{name}")
            found = None if node is None else _urls(node.value, "Tls" if self._settings.tls_enabled_with_broker else "")
            if found is None:
                continue
            own, http, more = found
            addresses += [own] if own else []
            web += [http] if http else []
            listeners |= {each for each in (own, *more) if each}
        self._addresses, self._listeners, self._web = tuple(addresses), frozenset(listeners), tuple(web)


def _urls(value: bytes, tls: str) -> tuple[str | None, str | None, list[str | None]] | None:
    """Returns the binary address, the web address, and the binary addresses of other listeners in LocalBrokerData. None: it
    cannot be read."""
    try:
        fields = json.loads(value)
        listeners = (fields.get("advertisedListeners") or {}).values()
        more = [address_of(each.get(f"brokerServiceUrl{tls}") or "") for each in listeners]
        own, web = fields.get(f"pulsarServiceUrl{tls}") or "", fields.get(f"webServiceUrl{tls}") or ""
        return address_of(own), address_of(web), more
    except (ValueError, AttributeError, TypeError) as error:
        log.warning(line("a broker's node cannot be read", reason=error))
        return None


def address_of(url: str) -> str | None:
    """`host:port` of a URL; None when it names none."""
    return urlsplit(url).netloc or None
