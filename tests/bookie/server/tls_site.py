"""A bookie with TLS on a real socket, an authority, and raw clients of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from bookie.bookie import Bookie
from bookie.server.listener import BookieListener
from bookie.server.security.security import Security
from bookie.server.security.settings import CERTIFICATE_ROLES, TLS_FACTORY, BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.server.client import Client
from tests.certificates import Authority, Identity, trusting
from wire.generated import bookie_protocol_pb2 as api

SECONDS_MAX = 60


class Site:
    """A bookie with a port, an authority, and what both sides have of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authority = Authority(path / "certificates")
        self.bookie_identity = self.authority.sign("bookie")
        self.bookie: Bookie
        self.listener: BookieListener
        self.seconds = 0.0
        """On the clock by which files are looked at."""

    def settings(self, **more: Any) -> BookieSecuritySettings:
        given: dict[str, Any] = {
            "tls_provider_factory_class": TLS_FACTORY,
            "tls_key_store_type": "PEM",
            "tls_key_store": str(self.bookie_identity.key),
            "tls_certificate_path": str(self.bookie_identity.certificate),
        }
        return BookieSecuritySettings(**{**given, **more})

    def mutual(self, **more: Any) -> BookieSecuritySettings:
        trust = {"tls_trust_store": str(self.authority.certificate), "tls_trust_store_type": "PEM"}
        return self.settings(tls_client_authentication=True, **trust, **more)

    def by_role(self, *roles: str) -> BookieSecuritySettings:
        return self.mutual(bookie_auth_provider_factory_class=CERTIFICATE_ROLES, authorized_roles=roles)

    def context(self, identity: Identity | None = None, trust: Path | None = None) -> ssl.SSLContext:
        context = trusting(trust or self.authority.certificate)
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        return context

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Client that is in the clear so far."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def secure(self, context: ssl.SSLContext) -> AsyncIterator[Client]:
        async with self.client() as client:
            await start_tls(client, context)
            yield client


async def start_tls(client: Client, context: ssl.SSLContext) -> None:
    response = await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
    assert response.status == api.EOK
    assert response.HasField("startTLSResponse")
    await client.writer.start_tls(context, server_hostname="127.0.0.1")


def on_site(
    path: Path, settings: Callable[[Site], BookieSecuritySettings], scenario: Callable[[Site], Coroutine[Any, Any, None]]
) -> None:
    """Once with asyncio's loop and once with uvloop's, which is the server's."""
    for name, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
        site = Site(path / name)
        run(_run(site, settings(site), scenario))


async def _run(site: Site, settings: BookieSecuritySettings, scenario: Callable[[Site], Coroutine[Any, Any, None]]) -> None:
    disk = RealDisk()
    directories = BookieSettings((f"{site.path}/journal",), (f"{site.path}/ledgers",), journal_max_size_mb=16)
    try:
        bookie = site.bookie = Bookie(disk, directories, RealClock(), RealRng())
        await bookie.start()
        try:
            security = Security(settings, lambda: site.seconds)
            site.listener = BookieListener(bookie, BookieServerSettings(), security)
            await site.listener.listen("127.0.0.1", 0)
            try:
                async with asyncio.timeout(SECONDS_MAX):
                    await scenario(site)
            finally:
                await site.listener.close()
        finally:
            await bookie.stop()
    finally:
        disk.close()
