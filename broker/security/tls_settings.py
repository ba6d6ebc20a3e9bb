"""TlsSettings: TLS of a broker's ports. Keys are Apache's. A port for TLS that has no certificate is refused."""

from collections.abc import Callable
from dataclasses import dataclass

from ports.network.tls import PROTOCOLS, RenewedTls, TlsFile, TlsFiles, openssl_ciphers


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Everything off by default. Files are in PEM form."""

    broker_service_port_tls: int | None = None
    """Port of the binary protocol over TLS; 0 picks a free one. Empty: none."""
    web_service_port_tls: int | None = None
    """Port of HTTPS; 0 picks a free one. Empty: none."""
    tls_certificate_file_path: str | None = None
    """The server's certificate, followed by those of the authorities between it and the one that clients trust."""
    tls_key_file_path: str | None = None
    """The private key of the server's certificate."""
    tls_trust_certs_file_path: str | None = None
    """The authorities that sign clients' certificates; a client that shows one is known by it (AuthenticationProviderTls)."""
    tls_require_trusted_client_cert_on_connect: bool = False
    """A client that shows no certificate is not let in."""
    tls_allow_insecure_connection: bool = False
    """Applies only to servers that a broker connects to. Unchecked certificates prove no identity: those of clients are never
    accepted.
    """
    tls_protocols: tuple[str, ...] = ()
    """TLSv1.2 and TLSv1.3; empty: both."""
    tls_ciphers: tuple[str, ...] = ()
    """Ciphers of TLSv1.2, by the names of IANA or of OpenSSL; empty: OpenSSL's choice. Those of TLSv1.3 are always all on."""
    tls_cert_refresh_check_duration_sec: int = 300
    """Between two looks at whether the files were renewed; new connections get the new ones. 0: never."""

    def __post_init__(self) -> None:
        for key, port in (
            ("brokerServicePortTls", self.broker_service_port_tls),
            ("webServicePortTls", self.web_service_port_tls),
        ):
            if port is not None and not 0 <= port <= 65535:
                raise ValueError(f"{key}: expected 0 to 65535, not {port}")
        check_server_files(
            self.is_on,
            self.tls_certificate_file_path,
            self.tls_key_file_path,
            self.tls_trust_certs_file_path,
            requires_trust=self.tls_require_trusted_client_cert_on_connect,
            protocols=self.tls_protocols,
        )
        if self.tls_cert_refresh_check_duration_sec < 0:
            raise ValueError("tlsCertRefreshCheckDurationSec: expected 0 (never) or more")

    @property
    def is_on(self) -> bool:
        return self.broker_service_port_tls is not None or self.web_service_port_tls is not None

    def server(self, now: Callable[[], float]) -> RenewedTls | None:
        """None: no port has TLS. BadTls."""
        if not self.is_on:
            return None
        files = TlsFiles(
            tls_file("tlsCertificateFilePath", self.tls_certificate_file_path),
            tls_file("tlsKeyFilePath", self.tls_key_file_path),
            trust=tls_file("tlsTrustCertsFilePath", self.tls_trust_certs_file_path),
            protocols=self.tls_protocols,
            ciphers=openssl_ciphers(self.tls_ciphers),
            demands_certificate=self.tls_require_trusted_client_cert_on_connect,
        )
        return RenewedTls("server", files, self.tls_cert_refresh_check_duration_sec, now)


def tls_file(key: str, path: str | None) -> TlsFile | None:
    return TlsFile(key, path) if path else None


def check_server_files(
    is_on: bool,
    certificate: str | None,
    key: str | None,
    trust: str | None,
    *,
    requires_trust: bool,
    protocols: tuple[str, ...],
) -> None:
    """Raises ValueError for missing files."""
    unknown = set(protocols) - set(PROTOCOLS)
    if unknown:
        raise ValueError(f"tlsProtocols={sorted(unknown)[0]}: expected {' or '.join(PROTOCOLS)}; older ones are broken")
    if is_on and not (certificate and key):
        missing = "tlsCertificateFilePath" if not certificate else "tlsKeyFilePath"
        raise ValueError(f"{missing} is not set, and a port for TLS is: a file in PEM form")
    if is_on and requires_trust and not trust:
        raise ValueError(
            "tlsRequireTrustedClientCertOnConnect=true, and tlsTrustCertsFilePath is not set: every client would be refused"
        )
