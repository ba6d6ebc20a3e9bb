"""TLS: contexts from PEM files, read again when the files were renewed. Owns no socket and no setting.

The reader of the settings names the key of each file, so that an error can say which one to mend.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ports.logs import line
from ports.settings import BadSetting

log = logging.getLogger("ports.network.tls")

PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""Older ones are broken."""


class BadTls(BadSetting):
    """A file is missing or is not what its setting says; the message names the setting and the remedy."""


@dataclass(frozen=True, slots=True)
class TlsFile:
    """The path of a PEM file (or of one with a password), and the setting that it comes from."""

    setting: str
    path: str


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Certificate and key of one side, and the authorities that it trusts. Without `trust` the peer shows no certificate."""

    certificate: TlsFile | None = None
    key: TlsFile | None = None
    key_password: TlsFile | None = None
    trust: TlsFile | None = None
    protocols: tuple[str, ...] = ()
    """Names among PROTOCOLS; empty: all of them."""
    checks_host: bool = False
    """On a client: the other side's certificate must be of the host that was connected to."""
    ciphers: str = ""
    """Ciphers for TLSv1.2, as OpenSSL lists them; empty: OpenSSL's own choice."""
    demands_certificate: bool = True
    """A server with `trust` refuses peers without a certificate. False: a certificate is checked only if the peer shows one."""
    trusts_everybody: bool = False
    """A client accepts any other side."""

    def all(self) -> tuple[TlsFile, ...]:
        return tuple(file for file in (self.certificate, self.key, self.key_password, self.trust) if file is not None)


def make_context(side: Literal["client", "server"], files: TlsFiles) -> ssl.SSLContext:
    """BadTls, which names the setting. A client always checks who the server is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    versions = [PROTOCOLS[name] for name in files.protocols] or list(PROTOCOLS.values())
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if side == "client":
        context.check_hostname = files.checks_host
    for file in files.all():
        _check_readable(file)
    if files.ciphers:
        _set_ciphers(context, files.ciphers)
    if files.certificate is not None and files.key is not None:
        _load_certificate(context, files.certificate, files.key, files.key_password)
    if files.trust is not None:
        context.verify_mode = ssl.CERT_REQUIRED if files.demands_certificate or side == "client" else ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(files.trust.path)
        except OSError as error:
            raise BadTls(f"{files.trust.setting}={files.trust.path}: no certificates in PEM form ({_why(error)})") from error
    elif side == "client" and not files.trusts_everybody:
        context.load_default_certs()
    if side == "client" and files.trusts_everybody:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def openssl_ciphers(names: Iterable[str]) -> str:
    """OpenSSL's list of ciphers. IANA's names (`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`), of Java, get that form."""
    return ":".join(_openssl_name(name) for name in names)


def _openssl_name(name: str) -> str:
    if not name.startswith("TLS_") or "_WITH_" not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    for size in ("128", "256"):
        cipher = cipher.replace(f"AES_{size}", f"AES{size}").replace("_CBC_", "_")
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return f"{prefix}{cipher}".replace("_", "-")


def _set_ciphers(context: ssl.SSLContext, ciphers: str) -> None:
    known = [name for name in ciphers.split(":") if not name.startswith("TLS_")]
    if not known:
        return
    try:
        context.set_ciphers(":".join(known))
    except ssl.SSLError as error:
        raise BadTls(f"tlsCiphers={ciphers}: none of them is known to OpenSSL") from error


def _why(error: Exception) -> object:
    """Reason of OpenSSL. Another error comes of a file that is replaced between two looks at it, or of a password too long."""
    return error.reason if isinstance(error, ssl.SSLError) else error


def _check_readable(file: TlsFile) -> None:
    try:
        Path(file.path).read_bytes()
    except OSError as error:
        raise BadTls(f"{file.setting}={file.path}: {error.strerror}") from error


def _load_certificate(context: ssl.SSLContext, certificate: TlsFile, key: TlsFile, password: TlsFile | None) -> None:
    def ask() -> str:
        if password is None:
            raise BadTls(f"{key.setting}={key.path} has a password, and the setting for the file that holds it is empty")
        return _password(password)

    try:
        context.load_cert_chain(certificate.path, key.path, ask)
    except (OSError, ValueError) as error:
        wrong = f"{certificate.setting}={certificate.path} and {key.setting}={key.path}"
        raise BadTls(f"{wrong}: not a certificate and its key in PEM form, or a wrong password ({_why(error)})") from error


def _password(file: TlsFile) -> str:
    try:
        return Path(file.path).read_text().strip()
    except (OSError, UnicodeDecodeError):  # the error would show a byte of the password
        raise BadTls(f"{file.setting}={file.path}: no password in UTF-8") from None


class RenewedTls:
    """The context of files that are renewed while it is used. `renewal_seconds`: between two looks at them; 0: never."""

    def __init__(
        self, side: Literal["client", "server"], files: TlsFiles, renewal_seconds: float, now: Callable[[], float]
    ) -> None:
        """BadTls. `now`: seconds on a clock that does not go back."""
        self._side, self._files, self._renewal_seconds, self._now = side, files, renewal_seconds, now
        self._seen = self._stamps()
        self._looked_at = now()
        self._context = make_context(side, files)

    def context(self) -> ssl.SSLContext:
        """Context for the next connection. Unusable files, as while they are being replaced, leave the old ones in use."""
        now = self._now()
        if self._renewal_seconds and now >= self._looked_at + self._renewal_seconds:
            self._looked_at = now
            self._renew()
        return self._context

    def _renew(self) -> None:
        stamps = self._stamps()
        if stamps == self._seen:
            return
        try:
            self._context = make_context(self._side, self._files)
        except BadTls as error:
            log.error(line("renewed TLS files cannot be used, the old ones stay", reason=error))
            return
        self._seen = stamps
        log.info(line("TLS files renewed", files=", ".join(file.path for file in self._files.all())))

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_stamp(file.path) for file in self._files.all())


def _stamp(path: str) -> tuple[int, int, int]:
    """Stamp that changes when the file does; zeros while it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
