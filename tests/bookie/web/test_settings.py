"""A bookie's HTTP behind TLS: the clients that it serves, certificates renewed without a restart, and half configured TLS."""

import asyncio
from pathlib import Path

import pytest
import uvloop
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bookie.server.security.settings import TLS_FACTORY, BookieSecuritySettings
from bookie.web.app import app_of, port_of, serve_bookie_web
from bookie.web.settings import BookieWebSettings, web_tls
from ports.network.tls import BadTls
from tests.certificates import Authority, Identity, need_openssl, trusting

ON = BookieWebSettings(http_server_tls_enable=True)


async def heartbeat(request: Request) -> Response:
    """Heartbeat as a bookie's."""
    return Response("OK\n")


def settings_of(own: Identity, authority: Authority | None = None) -> BookieSecuritySettings:
    """`authority`: of clients that have to show a certificate."""
    return BookieSecuritySettings(
        tls_provider_factory_class=TLS_FACTORY,
        tls_key_store_type="PEM",
        tls_key_store=str(own.key),
        tls_certificate_path=str(own.certificate),
        tls_trust_store_type="PEM",
        tls_trust_store=None if authority is None else str(authority.certificate),
        tls_client_authentication=authority is not None,
    )


async def asked(port: int, authority: Authority, own: Identity | None = None) -> tuple[bytes, bytes]:
    """The answer, and the certificate that was shown. OSError when there is none."""
    context = trusting(authority.certificate)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    try:
        writer.write(b"GET /heartbeat HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(30):
            answer = await reader.read()
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return answer, shown


async def is_served(port: int, authority: Authority, own: Identity | None = None) -> bool:
    try:
        return (await asked(port, authority, own))[0].endswith(b"OK\n")
    except OSError:
        return False


@need_openssl
def test_https_needs_a_client_certificate_and_renews_its_own_without_a_restart(tmp_path: Path) -> None:
    authority, now = Authority(tmp_path), [0.0]
    bookie, operator, newer = (authority.sign(name) for name in ("bookie", "operator", "newer"))

    async def scenario() -> None:
        tls = web_tls(ON, settings_of(bookie, authority), lambda: now[0])
        web = await serve_bookie_web(app_of([Route("/heartbeat", heartbeat)]), "127.0.0.1", 0, tls)
        try:
            assert await is_served(port_of(web), authority, operator)
            assert not await is_served(port_of(web), authority), "who shows no certificate"
            _, before = await asked(port_of(web), authority, operator)
            bookie.key.write_bytes(newer.key.read_bytes())
            bookie.certificate.write_bytes(newer.certificate.read_bytes())
            now[0] += 61
            assert (await asked(port_of(web), authority, operator))[1] != before
        finally:
            web.close()

    uvloop.run(scenario())


def test_without_files_it_does_not_begin_and_says_which() -> None:
    assert web_tls(BookieWebSettings(), BookieSecuritySettings(), lambda: 0.0) is None
    with pytest.raises(BadTls, match="httpServerTlsEnable=true: set tlsProviderFactoryClass"):
        web_tls(ON, BookieSecuritySettings(), lambda: 0.0)
