"""A port for TLS: certificates of the moment, clients' certificates, and handshakes that are never finished."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from ports.network import tls_port
from ports.network.tls import RenewedTls, TlsFile, TlsFiles, make_context
from ports.network.tls_port import TlsPort, bound_listener
from tests.certificates import Authority, Identity, need_openssl

pytestmark = need_openssl


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def files(identity: Identity, authority: Authority | None = None, **more: Any) -> TlsFiles:
    trust = None if authority is None else TlsFile("trust", str(authority.certificate))
    return TlsFiles(TlsFile("certificate", str(identity.certificate)), TlsFile("key", str(identity.key)), trust=trust, **more)


class Echo(asyncio.Protocol):
    """Says who the peer is, then what it hears."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        subject = (transport.get_extra_info("peercert") or {}).get("subject", ())
        name = next((value for part in subject for key, value in part if key == "commonName"), "nobody")
        self.transport.write(name.encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@asynccontextmanager
async def a_port(served: TlsFiles, now: Callable[[], float] = lambda: 0.0) -> AsyncIterator[TlsPort]:
    port = TlsPort(bound_listener("127.0.0.1", 0), Echo, RenewedTls("server", served, 1.0, now))
    port.start()
    try:
        yield port
    finally:
        port.close()
        await asyncio.sleep(0)


async def greeted(port: TlsPort, context: ssl.SSLContext) -> tuple[str, bytes]:
    """Name that the server gives us, and its certificate. OSError when it refuses us."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port.number, ssl=context, server_hostname="localhost")
    try:
        name = await reader.readline()
        if not name:
            raise ConnectionResetError
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        return name.decode().strip(), shown
    finally:
        writer.transport.abort()


def client(authority: Authority, identity: Identity | None = None) -> ssl.SSLContext:
    trust = TlsFile("trust", str(authority.certificate))
    if identity is None:
        return make_context("client", TlsFiles(trust=trust, checks_host=True))
    return make_context("client", files(identity, authority, checks_host=True))


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On the loop of the real server."""
    uvloop.run(scenario())


def test_a_client_is_known_by_its_certificate_and_need_not_show_one_unless_that_is_demanded(
    authority: Authority, tmp_path: Path
) -> None:
    server, alice = authority.sign("server"), authority.sign("alice")
    stranger = Authority(tmp_path, "others").sign("mallory")

    async def scenario() -> None:
        async with a_port(files(server, authority, demands_certificate=False)) as port:
            assert (await greeted(port, client(authority, alice)))[0] == "alice"
            assert (await greeted(port, client(authority)))[0] == "nobody"
            with pytest.raises(OSError):  # noqa: PT011 - which one, the moment decides
                await greeted(port, client(authority, stranger))
        async with a_port(files(server, authority)) as port:
            assert (await greeted(port, client(authority, alice)))[0] == "alice"
            with pytest.raises(OSError):  # noqa: PT011 - as above
                await greeted(port, client(authority))

    play(scenario)


def test_renewed_certificates_are_shown_to_the_next_client_and_bad_ones_never(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    server, other = authority.sign("renewed"), authority.sign("newer")
    now = [0.0]

    async def scenario() -> None:
        async with a_port(files(server), lambda: now[0]) as port:
            _, before = await greeted(port, client(authority))
            whole = other.certificate.read_bytes(), other.key.read_bytes()
            server.certificate.write_bytes(whole[0][:-40])
            now[0] += 2
            assert (await greeted(port, client(authority)))[1] == before, "half a file is not taken up"
            server.certificate.write_bytes(whole[0])
            server.key.write_bytes(whole[1])
            assert (await greeted(port, client(authority)))[1] == before, "nobody has looked yet"
            now[0] += 2
            assert (await greeted(port, client(authority)))[1] != before

    play(scenario)
    assert "cannot be used, the old ones stay" in caplog.text


def test_handshakes_that_are_never_finished_are_bounded_and_keep_nobody_out(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_port, "HANDSHAKES_MAX", 8)
    caplog.set_level(logging.INFO)
    server = authority.sign("server")

    async def scenario() -> None:
        async with a_port(files(server)) as port:
            silent = [socket.create_connection(("127.0.0.1", port.number)) for _ in range(30)]
            try:
                assert (await greeted(port, client(authority)))[0] == "nobody"
                assert port.handshakes <= 8
                for each in silent[:20]:
                    with closing(each):
                        each.setblocking(False)
                        assert await asyncio.get_running_loop().sock_recv(each, 1) == b"", "the oldest are ended"
            finally:
                for each in silent:
                    each.close()

    play(scenario)


def test_a_client_that_does_not_speak_tls_is_turned_away(authority: Authority) -> None:
    async def scenario() -> None:
        async with a_port(files(authority.sign("server"))) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.write(b"\0\0\0\x20GET / HTTP/1.1\r\n\r\n")
            found = await reader.read()
            assert b"nobody" not in found
            writer.transport.abort()

    play(scenario)
