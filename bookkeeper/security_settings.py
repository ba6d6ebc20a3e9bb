"""BookKeeperSecuritySettings: TLS between a broker and its bookies. Keys are Apache's (broker.conf)."""

from collections.abc import Callable
from dataclasses import dataclass

from ports.network.tls import RenewedTls, TlsFile, TlsFiles

TLS_FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"


@dataclass(frozen=True, slots=True)
class BookKeeperSecuritySettings:
    """TLS between a broker and its bookies. Off by default, as Apache's; half of a configuration is refused."""

    bookkeeper_tls_client_authentication: bool = False
    """TLS with every bookie, and a certificate of ours for it. Apache has no TLS to bookies without the certificate."""
    bookkeeper_tls_provider_factory_class: str = TLS_FACTORY
    """org.apache.bookkeeper.tls.TLSContextFactory, the one way in which TLS with bookies is set up."""
    bookkeeper_tls_key_file_type: str = "PEM"
    """PEM is what can be read here."""
    bookkeeper_tls_key_file_path: str | None = None
    """The private key of the certificate that this broker shows bookies."""
    bookkeeper_tls_key_store_password_path: str | None = None
    """A file with the password of the key."""
    bookkeeper_tls_certificate_file_path: str | None = None
    """The certificate that this broker shows bookies."""
    bookkeeper_tls_trust_cert_types: str = "PEM"
    """PEM is what can be read here."""
    bookkeeper_tls_trust_certs_file_path: str | None = None
    """The certificates of the authorities that sign those of bookies."""
    bookkeeper_tls_cert_files_refresh_duration_seconds: int = 300
    """Between two looks at whether the files were renewed; 0: never. New connections get the new ones."""
    bookkeeper_client_authentication_plugin: str | None = None
    """None is offered here: bookies know a broker by its certificate."""

    def __post_init__(self) -> None:
        files = {
            "bookkeeperTLSKeyFilePath": self.bookkeeper_tls_key_file_path,
            "bookkeeperTLSCertificateFilePath": self.bookkeeper_tls_certificate_file_path,
            "bookkeeperTLSTrustCertsFilePath": self.bookkeeper_tls_trust_certs_file_path,
        }
        is_on = self.bookkeeper_tls_client_authentication
        for key, path in files.items():
            if is_on and not path:
                raise ValueError(f"{key} is not set, and bookkeeperTLSClientAuthentication=true: a file in PEM form")
            if path and not is_on:
                remedy = "set bookkeeperTLSClientAuthentication=true"
                raise ValueError(f"{key} is set, and bookies would be spoken to in the clear: {remedy}, or remove {key}")
        if self.bookkeeper_tls_provider_factory_class != TLS_FACTORY:
            raise ValueError(f"bookkeeperTLSProviderFactoryClass: expected {TLS_FACTORY}")
        types = {
            "bookkeeperTLSKeyFileType": self.bookkeeper_tls_key_file_type,
            "bookkeeperTLSTrustCertTypes": self.bookkeeper_tls_trust_cert_types,
        }
        for key, kind in types.items():
            if kind.upper() != "PEM":
                raise ValueError(f"{key}={kind}: only PEM can be read here (`openssl pkcs12 -nodes` writes it, from PKCS12)")
        if self.bookkeeper_tls_cert_files_refresh_duration_seconds < 0:
            raise ValueError("bookkeeperTlsCertFilesRefreshDurationSeconds: expected 0 (never) or more")
        if self.bookkeeper_client_authentication_plugin:
            raise ValueError("bookkeeperClientAuthenticationPlugin: none is offered; bookies know a broker by its certificate")

    def tls(self, now: Callable[[], float]) -> RenewedTls | None:
        """None: bookies are spoken to in the clear. BadTls. `now`: seconds on a clock that does not go back."""
        if not self.bookkeeper_tls_client_authentication:
            return None
        files = TlsFiles(
            _file("bookkeeperTLSCertificateFilePath", self.bookkeeper_tls_certificate_file_path),
            _file("bookkeeperTLSKeyFilePath", self.bookkeeper_tls_key_file_path),
            _file("bookkeeperTLSKeyStorePasswordPath", self.bookkeeper_tls_key_store_password_path),
            _file("bookkeeperTLSTrustCertsFilePath", self.bookkeeper_tls_trust_certs_file_path),
        )
        return RenewedTls("client", files, self.bookkeeper_tls_cert_files_refresh_duration_seconds, now)


def _file(key: str, path: str | None) -> TlsFile | None:
    return TlsFile(key, path) if path else None
