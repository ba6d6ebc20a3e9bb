"""TLS and roles between real processes: Apache's client on our bookies."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from bookie.server.security.settings import CERTIFICATE_ROLES, TLS_FACTORY
from tests.certificates import Authority, Identity, need_openssl
from tests.clients.bookie_process import BookieDidNotStart, BookieProcess
from tests.metadata.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.toolchain import maven_classpath

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240), need_openssl]

JAVA = Path(__file__).parent / "bookkeeper_java"
COUNT = 60


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of Apache's client, from Maven."""
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
    program = JAVA / "src/test/java/magnetar/Exchange.java"
    command = ["java", "-Xmx256m", "-cp", classpath, str(program), uri, what, str(COUNT), ledger]
    lines = "\n".join(f"{key}={value}" for key, value in settings.items())
    environment = {**os.environ, "CLIENT_SETTINGS": lines}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("use_v2", ["true", "false"])
def test_apaches_client_writes_and_reads_over_tls(tmp_path: Path, classpath: str, authority: Authority, use_v2: str) -> None:
    with cluster(tmp_path, bookie_settings(authority)) as (uri, bookies):
        settings = {**client_settings(authority), "useV2WireProtocol": use_v2}
        ledger_id = exchange(classpath, uri, "write", "CRC32C:pw:true", settings)
        exchange(classpath, uri, "read", f"CRC32C:pw:{ledger_id}", settings)
        for bookie in bookies:
            assert bookie.stop() == 0
            assert re.search(r"what=TLS .*cipher=TLS_", bookie.log.read_text())


def test_apaches_client_is_known_by_the_role_in_its_certificate(tmp_path: Path, classpath: str, authority: Authority) -> None:
    broker = client_settings(authority, authority.sign("broker", unit="0:broker;1:cluster"))
    stranger = client_settings(authority, authority.sign("stranger", unit="0:stranger"))
    with cluster(tmp_path, bookie_settings(authority, roles="auditor,broker")) as (uri, bookies):
        for use_v2, refused in (("true", stranger), ("false", {})):
            version = {"useV2WireProtocol": use_v2}
            ledger_id = exchange(classpath, uri, "write", "CRC32C:pw:true", {**broker, **version})
            exchange(classpath, uri, "read", f"CRC32C:pw:{ledger_id}", {**broker, **version})
            with pytest.raises(AssertionError, match="BKUnauthorizedAccessException"):
                exchange(classpath, uri, "write", "CRC32C:pw:true", {**refused, **version})
        assert any("a peer is not authorized" in bookie.log.read_text() for bookie in bookies)


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
