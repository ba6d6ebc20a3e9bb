"""Faults of certificates, keys and tokens, as files that a configuration names. No server runs."""

import datetime
import ipaddress
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.doctor_faults.fault import WARN, Fault, Inject, Injected

DAY = datetime.timedelta(days=1)
SECRET = bytes(range(40))


@dataclass(frozen=True, slots=True)
class Pair:
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class Signer:
    """An authority that signs for any days, also for those that are over."""

    def __init__(self, directory: Path, name: str = "authority", ends: datetime.timedelta = 100 * DAY) -> None:
        self._directory, self._key = directory, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pair = self._written(name, self._key, self._name, -2 * 365 * DAY, ends, (), is_authority=True)

    def sign(
        self, name: str, hosts: tuple[str, ...] = ("localhost", "127.0.0.1"), begins: datetime.timedelta = -400 * DAY,
        ends: datetime.timedelta = 90 * DAY,
    ) -> Pair:  # fmt: skip
        key = ec.generate_private_key(ec.SECP256R1())
        return self._written(name, key, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), begins, ends, hosts)

    def _written(
        self, name: str, key: ec.EllipticCurvePrivateKey, subject: x509.Name, begins: datetime.timedelta,
        ends: datetime.timedelta, hosts: tuple[str, ...], *, is_authority: bool = False,
    ) -> Pair:  # fmt: skip
        now = datetime.datetime.now(datetime.UTC)
        building = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        building = (
            building.serial_number(x509.random_serial_number()).not_valid_before(now + begins).not_valid_after(now + ends)
        )
        building = building.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        if hosts:
            building = building.add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), critical=False)
        pair = Pair(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        pair.certificate.write_bytes(building.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        pair.key.write_bytes(key.private_bytes(*plain))
        return pair


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def tls_settings(own: Path, pair: Pair, trust: Path, **more: str) -> Injected:
    """A broker's file with this certificate."""
    settings = {
        "metadataStoreUrl": "zk:zk1.example:2181",
        "brokerServicePortTls": "6651",
        "tlsCertificateFilePath": str(pair.certificate),
        "tlsKeyFilePath": str(pair.key),
        "tlsTrustCertsFilePath": str(trust),
        "advertisedAddress": "broker1.example",
        **more,
    }
    return configured(own, settings)


def configured(own: Path, settings: Mapping[str, str], things: tuple[str | Path, ...] = (), client: str = "") -> Injected:
    """`client`: the text of client.conf."""
    file = own / "broker.conf"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (own / "client.conf").write_text(client)
    return Injected(("--offline", "--data-dir", own, "--config", file), things)


HOSTS = ("broker1.example", "localhost")


def faults() -> list[Fault]:
    """Each names its file."""
    return [
        Fault("control: a certificate, its key and a token that are sound", _certificate()),
        Fault("certificate expired", _certificate(ends=-3 * DAY), "certificate-time", remedy=("renew", "own.pem")),
        Fault(
            "certificate that expires in five days", _certificate(ends=5 * DAY), "certificate-time", WARN, ("renew", "own.pem")
        ),
        Fault(
            "certificate that is not valid yet", _certificate(begins=2 * DAY), "certificate-time", remedy=("clock", "own.pem")
        ),
        Fault(
            "certificate of another host",
            _certificate(hosts=("other.example",)),
            "certificate-host",
            WARN,
            remedy=("broker1.example",),
        ),
        Fault("key of another certificate", _files("own.pem", "other.key"), "certificate-key", remedy=("other.key", "own.pem")),
        Fault("key file that is not there", _files("own.pem", "gone.key"), "tls-files", remedy=("tlsKeyFilePath", "gone.key")),
        Fault("certificate that is no PEM", _files("text.pem", "own.key"), "tls-files", remedy=("text.pem", "PEM")),
        Fault("certificate file that is a directory", _files("folder.pem", "own.key"), "tls-files", remedy=("folder.pem",)),
        Fault(
            "certificate of an authority that nobody trusts",
            _stranger,
            "certificate-trust",
            WARN,
            remedy=("authority that signed",),
        ),
        Fault("authority expired", _old_authority, "certificate-time", remedy=("renew", "tlsTrustCertsFilePath")),
        Fault(
            "token of client.conf expired", _client_token(-60), "token-time", remedy=("tokens create -s admin", "client.conf")
        ),
        Fault("token that expires within the hour", _client_token(1800), "token-time", WARN, ("tokens create -s admin",)),
        Fault("token file that is not there", _client_file, "token-readable", remedy=("client.conf", "none.jwt")),
        Fault("the broker's own token made with another key", _broker_token, "token-signature", remedy=("tokenSecretKey",)),
        Fault("secret key that is not there", _no_secret, "token-readable", remedy=("tokenSecretKey",)),
    ]


def _certificate(
    hosts: tuple[str, ...] = HOSTS, begins: datetime.timedelta = -400 * DAY, ends: datetime.timedelta = 90 * DAY
) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        signer = Signer(own)
        yield tls_settings(own, signer.sign("own", hosts, begins, ends), signer.pair.certificate)

    return inject


def _files(certificate: str, key: str) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        signer = Signer(own)
        signer.sign("own", HOSTS)
        signer.sign("other", HOSTS)
        (own / "text.pem").write_text("not a certificate\n")
        (own / "folder.pem").mkdir()
        yield tls_settings(own, Pair(own / certificate, own / key), signer.pair.certificate)

    return inject


@contextmanager
def _stranger(own: Path) -> Iterator[Injected]:
    yield tls_settings(own, Signer(own).sign("own", HOSTS), Signer(own, "stranger").pair.certificate)


@contextmanager
def _old_authority(own: Path) -> Iterator[Injected]:
    signer = Signer(own, ends=-DAY)
    yield tls_settings(own, signer.sign("own", HOSTS), signer.pair.certificate)


def token(secret: bytes, seconds: float | None = None) -> str:
    claims: dict[str, object] = {"sub": "admin"} if seconds is None else {"sub": "admin", "exp": time.time() + seconds}
    return jwt.encode(claims, secret, "HS256")


def _client_token(seconds: float) -> Inject:
    @contextmanager
    def inject(own: Path) -> Iterator[Injected]:
        yield configured(own, {}, client=f"authPlugin=token\nauthParams=token:{token(SECRET, seconds)}\n")

    return inject


@contextmanager
def _client_file(own: Path) -> Iterator[Injected]:
    yield configured(own, {}, (own / "none.jwt",), f"authPlugin=token\nauthParams=file://{own}/none.jwt\n")


@contextmanager
def _broker_token(own: Path) -> Iterator[Injected]:
    (own / "secret.key").write_bytes(SECRET)
    settings = {
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": f"file://{own}/secret.key",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{token(bytes(40))}",
    }
    yield configured(own, settings, ("brokerClientAuthenticationParameters",))


@contextmanager
def _no_secret(own: Path) -> Iterator[Injected]:
    settings = {
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": f"file://{own}/gone.key",
    }
    yield configured(own, settings, (own / "gone.key",))
