"""Our client of the wire over TLS: on our bookie, on peers that do not keep to it, and on Apache's bookie."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.security_settings import BookKeeperSecuritySettings
from ports.network.read_buffer import SharedRoom
from ports.network.tls import BadTls
from ports.settings import BadSetting, build_settings
from tests.bookie.runs import KEY, entries_of, sealed
from tests.bookie.server.tls_site import Site, on_site
from tests.certificates import Authority, Identity, need_openssl
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.frames import framed
from wire.generated import bookie_protocol_pb2 as api

pytestmark = need_openssl

WHOLE = {
    "bookkeeperTLSClientAuthentication": "true",
    "bookkeeperTLSKeyFilePath": "/key.pem",
    "bookkeeperTLSCertificateFilePath": "/client.pem",
    "bookkeeperTLSTrustCertsFilePath": "/trust.pem",
}


def settings_of(authority: Authority, identity: Identity) -> BookKeeperSecuritySettings:
    values = {
        **WHOLE,
        "bookkeeperTLSKeyFilePath": str(identity.key),
        "bookkeeperTLSCertificateFilePath": str(identity.certificate),
        "bookkeeperTLSTrustCertsFilePath": str(authority.certificate),
    }
    return build_settings(BookKeeperSecuritySettings, values)


def client_of(port: int, authority: Authority, identity: Identity, **more: Any) -> NetworkBookie:
    tls = settings_of(authority, identity).tls(lambda: 0.0)
    return NetworkBookie("b1", "127.0.0.1", port, SharedRoom(), 10.0, tls=tls, **more)


@pytest.mark.parametrize("use_version2", [True, False])
def test_a_client_writes_and_reads_over_tls_with_its_role(tmp_path: Path, use_version2: bool) -> None:
    async def scenario(site: Site) -> None:
        client = client_of(
            site.listener.port, site.authority, site.authority.sign("broker", unit="0:broker"), use_version2=use_version2
        )
        try:
            runs = [sealed(7, first, 100, 2000) for first in range(0, 1000, 100)]
            await asyncio.gather(*(client.add(run, KEY) for run in runs))
            assert await client.last_entry_id(7) == 999
            found: dict[int, bytes] = {}
            while len(found) < 1000:
                found |= entries_of(await client.read(7, len(found), 1000, 1 << 20))
            assert found == {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}
            assert int.from_bytes((await client.fence(7, KEY))[16:24]) == 899
            assert (await client.disk_space()).total_bytes > 0, "by version 3, over TLS too"
        finally:
            await client.close()

    on_site(tmp_path, lambda site: site.by_role("broker"), scenario)


def test_a_bookie_of_another_authority_and_one_that_knows_no_such_role_get_nothing(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        stranger = Authority(site.path / "stranger")
        broker = site.authority.sign("broker", unit="0:broker")
        for authority, identity, code in (
            (stranger, broker, BookieCode.ETOOMANYREQUESTS),
            (site.authority, stranger.sign("broker", unit="0:broker"), BookieCode.ETOOMANYREQUESTS),
            (site.authority, site.authority.sign("other", unit="0:other"), BookieCode.EUA),
        ):
            client = client_of(site.listener.port, authority, identity)
            try:
                with pytest.raises(BookieError) as failed:
                    await client.add(sealed(7, 0, 1), KEY)
                assert failed.value.code == code, failed.value
            finally:
                await client.close()
        assert site.bookie.ledger_ids() == []

    on_site(tmp_path, lambda site: site.by_role("broker"), scenario)


def response(status: "api.StatusCode", operation: "api.OperationType" = api.START_TLS) -> bytes:
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=1)
    return framed(api.Response(header=header, status=status).SerializeToString())


class Speaker(asyncio.Protocol):
    """A peer that says one thing when it is asked, and nothing more."""

    def __init__(self, said: bytes, heard: list[bytes]) -> None:
        self._said, self._heard = said, heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard.append(data)
        if not self._said:
            self._transport.close()
        self._transport.write(self._said)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (response(api.EBADREQ), "offers no TLS"),
        (response(api.EOK, api.ADD_ENTRY), "offers no TLS"),
        (response(api.EOK) + b"more", "bytes in the clear"),
        (framed(b"\xff\xff\xff\xff"), "an answer to START_TLS that is none"),
        (b"\x7f\xff\xff\xff", "an answer to START_TLS that is none"),
        (b"", "closed the connection at START_TLS"),
    ],
)
def test_a_bookie_without_tls_is_never_spoken_to_in_the_clear(tmp_path: Path, said: bytes, why: str) -> None:
    authority = Authority(tmp_path)
    identity = authority.sign("broker")

    async def scenario() -> None:
        heard: list[bytes] = []
        server = await asyncio.get_running_loop().create_server(lambda: Speaker(said, heard), "127.0.0.1", 0)
        client = client_of(server.sockets[0].getsockname()[1], authority, identity)
        try:
            with pytest.raises(BookieError, match=why):
                await client.add(sealed(7, 0, 1), KEY)
            request = api.Request.FromString(b"".join(heard)[4:])
            assert request.header.operation == api.START_TLS, "and nothing else"
        finally:
            await client.close()
            server.close()
            await server.wait_closed()

    asyncio.run(scenario())


def without(key: str) -> dict[str, str]:
    return {name: value for name, value in WHOLE.items() if name != key}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        *((without(key), f"{key} is not set") for key in WHOLE if key.endswith("Path")),
        (without("bookkeeperTLSClientAuthentication"), "spoken to in the clear: set bookkeeperTLSClientAuthentication=true"),
        ({**WHOLE, "bookkeeperTLSKeyFileType": "JKS"}, "bookkeeperTLSKeyFileType=JKS: only PEM"),
        ({**WHOLE, "bookkeeperTLSTrustCertTypes": "PKCS12"}, "bookkeeperTLSTrustCertTypes=PKCS12: only PEM"),
        ({**WHOLE, "bookkeeperTLSProviderFactoryClass": "my.Factory"}, "bookkeeperTLSProviderFactoryClass"),
        ({"bookkeeperClientAuthenticationPlugin": "my.Plugin"}, "bookkeeperClientAuthenticationPlugin"),
    ],
)
def test_incomplete_tls_settings_are_refused_by_the_name_of_the_key(values: dict[str, str], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        build_settings(BookKeeperSecuritySettings, values)


def test_a_file_that_is_not_there_is_named_with_its_setting() -> None:
    now: Callable[[], float] = lambda: 0.0  # noqa: E731
    with pytest.raises(BadTls, match=r"bookkeeperTLSCertificateFilePath=/client.pem: No such file"):
        build_settings(BookKeeperSecuritySettings, WHOLE).tls(now)
    assert BookKeeperSecuritySettings().tls(now) is None
