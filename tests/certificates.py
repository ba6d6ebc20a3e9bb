"""Certificates for tests: an authority, and what it signs, made with openssl."""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

need_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


def trusting(certificate: Path) -> ssl.SSLContext:
    """A client's context that trusts an authority. It accepts those without key identifiers, as many people have."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    return context


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM files: a private key (PKCS#8) and its certificate."""

    key: Path
    certificate: Path


class Authority:
    """One that signs, in a directory of its own."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key, self.certificate = directory / f"{name}.key", directory / f"{name}.pem"
        _new_key(self._key)
        _openssl("req", "-x509", "-new", "-key", self._key, "-subj", f"/CN={name}", "-days", "2", "-out", self.certificate)

    def sign(self, name: str, *, unit: str = "", key_password: str = "", hosts: str = "DNS:localhost,IP:127.0.0.1") -> Identity:
        """`hosts`: for which it is. `unit`: the subject's OU."""
        identity = Identity(self._directory / f"{name}.key", self._directory / f"{name}.pem")
        request, extensions = self._directory / f"{name}.csr", self._directory / f"{name}.ext"
        _new_key(identity.key, key_password)
        password = ("-passin", f"pass:{key_password}") if key_password else ()
        subject = f"/O=test{f'/OU={unit}' if unit else ''}/CN={name}"
        _openssl("req", "-new", "-key", identity.key, *password, "-subj", subject, "-out", request)
        extensions.write_text(f"subjectAltName={hosts}\n")
        sign = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, *sign, "-days", "2", "-out", identity.certificate)
        return identity


def _new_key(path: Path, password: str = "") -> None:
    cipher = ("-aes-256-cbc", "-pass", f"pass:{password}") if password else ()
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", *cipher, "-out", path)
