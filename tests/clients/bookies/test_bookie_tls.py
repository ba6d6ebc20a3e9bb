"""TLS and roles between real processes: Apache's client on our bookies, our client on Apache's."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bookie.server.security.settings import CERTIFICATE_ROLES, TLS_FACTORY
from bookkeeper.ledger_metadata.layouts import LAYOUTS
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.network.link import AWAY
from bookkeeper.network.network_bookies import NetworkBookies
from ports.rng import RealRng
from tests.bookie.runs import KEY, entries_of, sealed
from tests.certificates import Authority, Identity, need_openssl
from tests.clients.bookie_process import BookieDidNotStart, BookieProcess
from tests.clients.bookies.test_bookie_tls_network_client import settings_of
from tests.metadata.conftest import open_on
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.started_process import free_port
from tests.toolchain import QUICK_JAVA, maven_classpath
from wire.bookie.codes import BookieCode, BookieError

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240), need_openssl]

JAVA = Path(__file__).parent.parent / "bookkeeper_java"
COUNT = 60
POLL_SECONDS = 0.05


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Class path of Apache's client, from Maven."""
    need_zookeeper()
    return maven_classpath(JAVA / "pom.xml", tmp_path_factory.mktemp("java"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def bookie_settings(authority: Authority, *, roles: str = "") -> list[str]:
    identity = authority.sign("bookie")
    settings = {
        "tlsProviderFactoryClass": TLS_FACTORY,
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": identity.key,
        "tlsCertificatePath": identity.certificate,
    }
    if roles:
        settings |= {
            "tlsClientAuthentication": "true",
            "tlsTrustStoreType": "PEM",
            "tlsTrustStore": authority.certificate,
            "bookieAuthProviderFactoryClass": CERTIFICATE_ROLES,
            "authorizedRoles": roles,
        }
    return [f"{key}={value}" for key, value in settings.items()]


def client_settings(authority: Authority, identity: Identity | None = None) -> dict[str, object]:
    settings: dict[str, object] = {
        "tlsProviderFactoryClass": TLS_FACTORY,
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": authority.certificate,
        "tlsHostnameVerificationEnabled": "true",
    }
    if identity is not None:
        settings |= {
            "tlsClientAuthentication": "true",
            "tlsKeyStoreType": "PEM",
            "tlsKeyStore": identity.key,
            "tlsCertificatePath": identity.certificate,
        }
    return settings


@contextmanager
def cluster(directory: Path, settings: list[str]) -> Iterator[tuple[str, list[BookieProcess]]]:
    """Three bookies, and the URI of their metadata."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        bookies = [BookieProcess(directory / f"bookie-{number}", uri, *settings) for number in range(3)]
        for bookie in bookies:
            running.enter_context(bookie).start()
        yield uri, bookies


def exchange(classpath: str, uri: str, what: str, ledger: str, settings: Mapping[str, object]) -> str:
    """Apache's client in a process of its own; what it prints. AssertionError when it fails."""
    program = JAVA / "src/test/java/interpulse/Exchange.java"
    command = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", classpath, str(program), uri, what, str(COUNT), ledger]
    lines = "\n".join(f"{key}={value}" for key, value in settings.items())
    environment = {**os.environ, "CLIENT_SETTINGS": lines}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_apaches_client_writes_and_reads_over_tls_in_both_versions(
    tmp_path: Path, classpath: str, authority: Authority
) -> None:
    with cluster(tmp_path, bookie_settings(authority)) as (uri, bookies):
        settings = client_settings(authority)
        ledger_id = exchange(classpath, uri, "write", "CRC32C:pw:false", {**settings, "useV2WireProtocol": "true"})
        exchange(classpath, uri, "read", f"CRC32C:pw:{ledger_id}", {**settings, "useV2WireProtocol": "false"})
        for bookie in bookies:
            assert bookie.stop() == 0
            assert re.search(r"what=\"TLS handshake done\" .*cipher=TLS_", bookie.log.read_text())


def test_apaches_client_is_known_by_the_role_in_its_certificate(tmp_path: Path, classpath: str, authority: Authority) -> None:
    broker = client_settings(authority, authority.sign("broker", unit="0:broker;1:cluster"))
    stranger = client_settings(authority, authority.sign("stranger", unit="0:stranger"))
    with cluster(tmp_path, bookie_settings(authority, roles="auditor,broker")) as (uri, bookies):
        ledger_id = exchange(classpath, uri, "write", "CRC32C:pw:false", {**broker, "useV2WireProtocol": "false"})
        exchange(classpath, uri, "read", f"CRC32C:pw:{ledger_id}", {**broker, "useV2WireProtocol": "true"})
        for refused, use_v2 in ((stranger, "true"), ({}, "false")):
            with pytest.raises(AssertionError, match="BKUnauthorizedAccessException"):
                exchange(classpath, uri, "write", "CRC32C:pw:true", {**refused, "useV2WireProtocol": use_v2})
        assert any("a peer is not authorized" in bookie.log.read_text() for bookie in bookies)


@contextmanager
def java_bookie(directory: Path, classpath: str, uri: str, settings: list[str]) -> Iterator[int]:
    """Apache's bookie as a process; its port."""
    directory.mkdir()
    port = free_port()
    own = [
        f"metadataServiceUri={uri}",
        f"bookiePort={port}",
        "advertisedAddress=127.0.0.1",
        f"journalDirectories={directory}/journal",
        f"ledgerDirectories={directory}/ledgers",
        "allowLoopback=true",
        "diskUsageThreshold=0.999",
        "diskUsageWarnThreshold=0.998",
    ]
    (directory / "bookie.conf").write_text("\n".join([*own, *settings]))
    command = ["java", "-Xmx512m", *QUICK_JAVA, "-cp", classpath, "org.apache.bookkeeper.server.Main"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--conf", str(directory / "bookie.conf")], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        yield port
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.parametrize("use_version2", [True, False])
def test_our_client_writes_to_apaches_bookie_over_mutual_tls(
    tmp_path: Path, classpath: str, authority: Authority, use_version2: bool
) -> None:
    async def scenario(servers: str, uri: str) -> None:
        store = await open_on(servers)
        broker, stranger = (authority.sign(role, unit=f"0:{role}") for role in ("broker", "stranger"))
        networks = [
            NetworkBookies(store, 20.0, use_version2=use_version2, tls=settings_of(authority, identity).tls(lambda: 0.0))
            for identity in (broker, stranger)
        ]
        try:
            await LedgerRegistry(store, RealRng(), LAYOUTS).initialise()
            with java_bookie(tmp_path / "java", classpath, uri, bookie_settings(authority, roles="broker")) as port:
                for known in networks:
                    await known.open()
                    async with asyncio.timeout(90):
                        while not len(known):  # noqa: ASYNC110  # another process, which tells when it is there
                            await asyncio.sleep(POLL_SECONDS)
                bookie, refusing = (known[f"127.0.0.1:{port}"] for known in networks)
                run = sealed(7, 0, COUNT, 1000)
                with pytest.raises(BookieError) as failed:
                    await refusing.add(run, KEY)
                assert failed.value.code in (BookieCode.EUA, AWAY), (
                    "it says EIO, of nothing in particular, and EUA to what comes"
                )
                await bookie.add(run, KEY)
                found = await bookie.read(7, 0, COUNT, 1 << 20)
                assert entries_of(found) == {entry_id: entries_of(run)[entry_id] for entry_id in entries_of(found)}
                assert await bookie.last_entry_id(7) == COUNT - 1
        finally:
            for known in networks:
                await known.close()
            await store.close()

    with ZooKeeperProcess(tmp_path / "zookeeper") as zookeeper:
        zookeeper.start()
        asyncio.run(scenario(zookeeper.servers, f"zk+hierarchical://{zookeeper.servers}/ledgers"))


def test_a_bookie_does_not_start_with_tls_that_is_half_configured(tmp_path: Path, authority: Authority) -> None:
    settings = bookie_settings(authority, roles="broker")
    for left_out, said in (
        ("authorizedRoles=", "authorizedRoles is not set"),
        ("tlsKeyStore=", "tlsKeyStore is not set"),
        ("tlsProviderFactoryClass=", "tlsProviderFactoryClass is not"),
    ):
        left = [each for each in settings if not each.startswith(left_out)]
        with pytest.raises(BookieDidNotStart, match=said):
            BookieProcess(tmp_path / "one", "zk+hierarchical://127.0.0.1:1/ledgers", *left).start()
