"""TLS and roles on a bookie's port, over real sockets and with both event loops."""

import asyncio
import logging
import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookie.server.connection import READS_AT_ONCE
from bookie.server.security.settings import BookieSecuritySettings
from tests.bookie.runs import KEY
from tests.bookie.server.client import EBADREQ, EOK, EUA, Client
from tests.bookie.server.tls_site import Site, on_site, start_tls
from tests.certificates import Authority, need_openssl
from tests.wire.bookie.bookie_samples import add, batch_read, entry, frame, read
from wire.generated import bookie_protocol_pb2 as api

pytestmark = need_openssl


async def asked_in_tls(client: Client, context: ssl.SSLContext) -> None:
    """Answer in TLS; with 1.3 a client learns only after its handshake that its certificate is refused."""
    await start_tls(client, context)
    await client.ask(read(7, 0))


def test_start_tls_then_both_versions_inside_with_large_entries_and_pipelining(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        large = bytes(range(256)) * 4000
        async with site.secure(site.context()) as client:
            client.send(b"".join(add(7, index, large, key=KEY) for index in range(12)))
            for index in range(12):
                assert (await client.answer())[:4] == (1, EOK, 7, index)
            client.send(b"".join(read(7, index) for index in range(12)))
            for index in range(12):
                assert (await client.answer()).body == entry(7, index, large, index - 1)
        async with site.secure(site.context()) as client:
            response = await client.ask3(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=3))
            assert response.readResponse.body == entry(7, 3, large, 2)

    on_site(tmp_path, Site.settings, scenario)


def test_without_a_demand_peers_may_speak_in_the_clear_as_to_apaches(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        async with site.client() as client:
            assert (await client.ask(add(7, 0, key=KEY))).code == EOK
        assert "TLS is offered, not demanded" in caplog.text

    on_site(tmp_path, Site.mutual, scenario)


def test_cleartext_behind_start_tls_is_never_taken_for_a_request(tmp_path: Path) -> None:
    """SMTP's command injection (CVE-2011-0411) was of this kind."""

    async def scenario(site: Site) -> None:
        async with site.client() as client:
            txn = api.BKPacketHeader(version=api.VERSION_THREE, operation=api.START_TLS, txnId=1)
            message = api.Request(header=txn, startTLSRequest=api.StartTLSRequest())
            client.send(frame(message.SerializeToString()) + add(7, 0, key=KEY))
            await client.frame()
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await client.writer.start_tls(site.context(), server_hostname="127.0.0.1")
        async with site.secure(site.context()) as client:
            assert (await client.ask(read(7, 0))).code != EOK

    on_site(tmp_path, Site.settings, scenario)


def test_start_tls_a_second_time_or_in_the_middle_of_requests_is_refused(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        async with site.secure(site.context()) as client:
            response = await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
            assert response.status == api.EBADREQ
        async with site.client() as client:
            client.send3(api.ADD_ENTRY, addRequest=add3(7, 0))
            client.send3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
            assert await ended(client), "the add's answer, and then the end"

    on_site(tmp_path, Site.settings, scenario)


def test_a_handshake_that_fails_ends_the_connection_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        stranger = Authority(site.path / "stranger")
        cases = {
            "no certificate": site.context(),
            "of a stranger": site.context(stranger.sign("peer")),
        }
        for context in cases.values():
            caplog.clear()
            async with site.client() as client:
                with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                    await asked_in_tls(client, context)
            await until(lambda: site.listener.connection_count == 0)
            lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert len(lines) == 1, lines
            assert "TLS handshake" in lines[0]
        async with site.client() as client:
            await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
            client.send(b"no handshake at all")
            assert await ended(client)
        async with site.client() as client:
            await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
        await until(lambda: site.listener.connection_count == 0)
        async with site.secure(site.context(site.authority.sign("peer"))) as client:
            assert (await client.ask(add(7, 0, key=KEY))).code == EOK

    on_site(tmp_path, Site.mutual, scenario)


def test_only_certificates_with_an_authorized_role_are_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        broker = site.context(site.authority.sign("broker", unit="0:broker,reader;1:cluster"))
        async with site.secure(broker) as client:
            assert (await client.ask(add(7, 0, key=KEY))).code == EOK
        for name, unit in (("other", "0:reader,broker"), ("plain", "broker"), ("none", ""), ("cluster", "1:broker")):
            caplog.clear()
            identity = site.authority.sign(name, unit=unit)
            async with site.secure(site.context(identity)) as client:
                assert (await client.ask(add(7, 1, key=KEY))).code == EUA
                assert (await client.ask(read(7, 0))).code == EUA
            assert caplog.text.count("a peer is not authorized") == 1
        async with site.secure(broker) as client:
            assert (await client.ask(read(7, 1))).code != EOK, "nothing was added by the others"

    on_site(tmp_path, lambda site: site.by_role("broker", "auditor"), scenario)


def test_nothing_is_done_for_a_peer_that_is_not_known_whatever_it_asks(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        requests3: dict[api.OperationType, dict[str, Any]] = {
            api.ADD_ENTRY: {"addRequest": add3(7, 0)},
            api.READ_ENTRY: {"readRequest": api.ReadRequest(ledgerId=7, entryId=0)},
            api.WRITE_LAC: {"writeLacRequest": api.WriteLacRequest(ledgerId=7, lac=0, masterKey=KEY, body=ids(7, 0))},
            api.READ_LAC: {"readLacRequest": api.ReadLacRequest(ledgerId=7)},
            api.GET_BOOKIE_INFO: {"getBookieInfoRequest": api.GetBookieInfoRequest(requested=3)},
            api.FORCE_LEDGER: {"forceLedgerRequest": api.ForceLedgerRequest(ledgerId=7)},
            api.GET_LIST_OF_ENTRIES_OF_LEDGER: {
                "getListOfEntriesOfLedgerRequest": api.GetListOfEntriesOfLedgerRequest(ledgerId=7)
            },
            api.AUTH: {"authRequest": api.AuthMessage(authPluginName="AuthDisabledPlugin", payload=b"")},
            api.BATCH_READ_ENTRY: {},
        }
        async with site.client() as client:
            for operation, bodies in requests3.items():
                response = await client.ask3(operation, **bodies)
                assert response.status == api.EUA, operation
                assert not response.HasField("readResponse")
            client.send(b"".join(add(7, index, key=KEY) for index in range(3)) + read(7, 0) + read(7, -1, flags=1, key=KEY))
            assert [(await client.answer())[:4] for _ in range(3)] == [(1, EUA, 7, index) for index in range(3)]
            assert [(await client.answer())[:4] for _ in range(2)] == [(2, EUA, 7, 0), (2, EUA, 7, -1)]
        for data in (
            batch_read(7, 0, 1, 100),
            frame(struct.pack(">I", 2 << 24 | 3 << 16) + api.AuthMessage(authPluginName="x", payload=b"").SerializeToString()),
        ):
            async with site.client() as client:
                client.send(data)
                assert await ended(client)
        async with site.secure(site.context(site.authority.sign("broker", unit="0:broker"))) as client:
            assert (await client.ask(read(7, 0))).code == 1, "no such ledger: no add and no fence came through"

    on_site(tmp_path, lambda site: site.by_role("broker"), scenario)


def test_renewed_certificates_are_taken_up_and_broken_ones_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(site: Site) -> None:
        old = site.bookie_identity.certificate.read_bytes()
        renewed = Authority(site.path / "renewed")
        identity = renewed.sign("bookie")
        async with site.secure(site.context()) as client:
            identity.key.rename(site.bookie_identity.key)
            identity.certificate.rename(site.bookie_identity.certificate)
            async with site.secure(site.context()):
                pass  # it is not looked yet
            site.seconds += 60
            async with site.secure(site.context(trust=renewed.certificate)) as other:
                assert (await other.ask(add(7, 0, key=KEY))).code == EOK
            assert (await client.ask(read(7, 0))).code == EOK, "one that was there before goes on"
        site.bookie_identity.certificate.write_bytes(old)  # of another key
        site.seconds += 60
        async with site.secure(site.context(trust=renewed.certificate)) as client:
            assert (await client.ask(read(7, 0))).code == EOK
        assert caplog.text.count("renewed TLS files cannot be used") == 1
        caplog.clear()

    on_site(tmp_path, Site.settings, scenario)


def test_bookkeeper_3408_answers_to_a_slow_reader_are_bounded_over_tls_too(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        large = bytes(500_000)
        async with site.secure(site.context()) as client, site.secure(site.context()) as other:
            for index in range(4):
                assert (await other.ask(add(7, index, large, key=KEY))).code == EOK
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport, which the stream hides
            client.send(b"".join(read(7, index % 4) for index in range(80)))
            await until(lambda: any(not each._writable.is_set() for each in site.listener.server_port.connections))
            (connection,) = (each for each in site.listener.server_port.connections if not each._writable.is_set())
            for _ in range(200):
                await asyncio.sleep(0)
                assert connection._transport.get_write_buffer_size() < (READS_AT_ONCE + 4) * 500_100
            assert not connection._is_reading
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            answers = [await client.answer() for _ in range(80)]
            assert sorted(answer.entry_id for answer in answers) == [entry_id for entry_id in range(4) for _ in range(20)]
            assert {(answer.code, len(answer.body)) for answer in answers} == {(EOK, 32 + len(large))}, "late, and whole"

    on_site(tmp_path, Site.settings, scenario)


def test_a_key_with_a_password_is_read_with_it(tmp_path: Path) -> None:
    def settings(site: Site) -> BookieSecuritySettings:
        site.bookie_identity = site.authority.sign("locked", key_password="open sesame")
        password = site.path / "password"
        password.write_text("open sesame\n")
        return site.settings(tls_key_store_password_path=str(password))

    async def scenario(site: Site) -> None:
        async with site.secure(site.context()) as client:
            assert (await client.ask(add(7, 0, key=KEY))).code == EOK

    on_site(tmp_path, settings, scenario)


def test_a_bookie_without_tls_says_so(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        async with site.client() as client:
            response = await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
            assert response.status == api.EBADREQ
            assert (await client.ask(frame(struct.pack(">Iqq", 2 << 24 | 2 << 16, -7, 0)))).code == EBADREQ

    on_site(tmp_path, lambda site: BookieSecuritySettings(), scenario)


def add3(ledger_id: int, entry_id: int) -> api.AddRequest:
    return api.AddRequest(ledgerId=ledger_id, entryId=entry_id, masterKey=KEY, body=entry(ledger_id, entry_id))


def ids(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


async def ended(client: Client) -> bool:
    """The bookie closes the connection, whatever it says before."""
    try:
        while await client.reader.read(1 << 16):
            pass  # what it says before
    except ConnectionError:
        return True  # with bytes of ours that it did not read any more
    return True


async def until(condition: Callable[[], bool]) -> None:
    """Bounded by the time limit of the scenario."""
    while not condition():  # noqa: ASYNC110  # what it waits for is the end of somebody else's socket
        await asyncio.sleep(0)
