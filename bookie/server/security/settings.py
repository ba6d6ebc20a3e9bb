"""BookieSecuritySettings: TLS and authentication of a bookie's port. Keys are Apache's (bookkeeper.conf).

Half a configuration is refused: a bookie that its operator meant to secure must not serve all peers.
"""

from dataclasses import dataclass

from ports.network.tls import PROTOCOLS, TlsFile, TlsFiles

TLS_FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"
CERTIFICATE_ROLES = "org.apache.bookkeeper.tls.BookieAuthZFactory"
PROVIDERS = (CERTIFICATE_ROLES,)


@dataclass(frozen=True, slots=True)
class BookieSecuritySettings:
    """Everything off by default, as Apache's."""

    tls_provider_factory_class: str | None = None
    """org.apache.bookkeeper.tls.TLSContextFactory: peers may begin TLS on the bookie's port (START_TLS). None: they may not."""
    tls_key_store_type: str = "JKS"
    """PEM is what can be read here."""
    tls_key_store: str | None = None
    """The private key."""
    tls_key_store_password_path: str | None = None
    """A file with the password of the private key."""
    tls_certificate_path: str | None = None
    """The bookie's certificate, followed by those of the authorities between it and the one that peers trust."""
    tls_trust_store_type: str = "JKS"
    """PEM is what can be read here."""
    tls_trust_store: str | None = None
    """The certificates of the authorities that sign those of peers."""
    tls_client_authentication: bool = False
    """A peer that begins TLS must show a certificate. Who begins none is kept out by bookieAuthProviderFactoryClass alone."""
    tls_enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    """TLSv1.2, TLSv1.3, or both."""
    tls_cert_files_refresh_duration_seconds: int = 60
    """Between two looks at whether the files were renewed; 0: never. New connections get the new ones. Apache: 0."""
    bookie_auth_provider_factory_class: str | None = None
    """org.apache.bookkeeper.tls.BookieAuthZFactory: only peers with a certificate of authorizedRoles may do anything."""
    authorized_roles: tuple[str, ...] = ()
    """Roles as certificates name them: `OU=0:role` in the subject."""

    def __post_init__(self) -> None:
        if self.tls_provider_factory_class is None:
            self._check_no_tls()
        else:
            self._check_tls(self.tls_provider_factory_class)
        unknown = set(self.tls_enabled_protocols) - set(PROTOCOLS)
        if unknown or not self.tls_enabled_protocols:
            raise ValueError(f"tlsEnabledProtocols: expected one or more of {', '.join(PROTOCOLS)}")
        if self.tls_cert_files_refresh_duration_seconds < 0:
            raise ValueError("tlsCertFilesRefreshDurationSeconds: expected 0 (never) or more")
        self._check_authentication()

    def _check_no_tls(self) -> None:
        given = {
            "tlsKeyStore": self.tls_key_store,
            "tlsCertificatePath": self.tls_certificate_path,
            "tlsTrustStore": self.tls_trust_store,
            "tlsClientAuthentication": self.tls_client_authentication,
        }
        for key, value in given.items():
            if value:
                raise ValueError(f"{key} is set, and tlsProviderFactoryClass is not: set it to {TLS_FACTORY}, or remove {key}")

    def _check_tls(self, factory: str) -> None:
        if factory != TLS_FACTORY:
            raise ValueError(f"tlsProviderFactoryClass={factory}: expected {TLS_FACTORY}")
        _check_store("tlsKeyStore", self.tls_key_store, self.tls_key_store_type)
        if not self.tls_certificate_path:
            raise ValueError("tlsCertificatePath is not set: the bookie's certificate, in PEM form")
        if self.tls_client_authentication:
            _check_store("tlsTrustStore", self.tls_trust_store, self.tls_trust_store_type)
        elif self.tls_trust_store:
            raise ValueError(
                "tlsTrustStore is set, and no certificate is requested from peers: set tlsClientAuthentication=true"
            )

    def _check_authentication(self) -> None:
        provider, roles = self.bookie_auth_provider_factory_class, self.authorized_roles
        if provider is None:
            if roles:
                remedy = f"set bookieAuthProviderFactoryClass={CERTIFICATE_ROLES}"
                raise ValueError(f"authorizedRoles is set, and no role is requested from peers: {remedy}")
            return
        if provider not in PROVIDERS:
            raise ValueError(f"bookieAuthProviderFactoryClass={provider}: expected {' or '.join(PROVIDERS)}")
        if provider == CERTIFICATE_ROLES and not roles:
            raise ValueError(f"authorizedRoles is not set: {provider} would refuse every peer")
        if provider == CERTIFICATE_ROLES and not self.tls_client_authentication:
            raise ValueError(f"tlsClientAuthentication is not true: {provider} takes the role from a peer's certificate")

    @property
    def tls_files(self) -> TlsFiles | None:
        """None: no TLS."""
        if self.tls_provider_factory_class is None:
            return None
        return TlsFiles(
            _file("tlsCertificatePath", self.tls_certificate_path),
            _file("tlsKeyStore", self.tls_key_store),
            _file("tlsKeyStorePasswordPath", self.tls_key_store_password_path),
            _file("tlsTrustStore", self.tls_trust_store),
            self.tls_enabled_protocols,
        )


def _file(key: str, path: str | None) -> TlsFile | None:
    return TlsFile(key, path) if path else None


def _check_store(key: str, path: str | None, kind: str) -> None:
    if not path:
        raise ValueError(f"{key} is not set: a file in PEM form, and {key}Type=PEM")
    if kind.upper() == "PEM":
        return
    pkcs12 = path
    make = ""
    if kind.upper() == "JKS":
        pkcs12 = f"{path}.p12"
        make = f"`keytool -importkeystore -srckeystore {path} -destkeystore {pkcs12} -deststoretype PKCS12`, then "
    what = "-nodes -nocerts" if key == "tlsKeyStore" else "-nokeys"
    raise ValueError(
        f"{key}Type={kind}: only PEM can be read here. Convert {path} with {make}`openssl pkcs12 {what} -in {pkcs12} "
        f"-out {path}.pem`, and set {key}={path}.pem, {key}Type=PEM"
    )
