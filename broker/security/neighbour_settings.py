"""NeighbourSettings: a broker's credentials towards the others of its cluster, and the use of TLS. Keys are Apache's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ports.network.tls import RenewedTls, TlsFiles

from ..service.neighbours.neighbours import Neighbours
from .own_credentials import own_certificate, renewed_credentials
from .tls_settings import TlsSettings, tls_file


@dataclass(frozen=True, slots=True)
class NeighbourSettings:
    """Nothing is shown, in the clear, by default. The role that it stands for has to be one of the others' superUserRoles."""

    broker_client_authentication_plugin: str = ""
    """Plugin for this broker's credentials at others: Apache's AuthenticationToken, AuthenticationBasic, AuthenticationTls."""
    broker_client_authentication_parameters: str = field(default="", repr=False)
    """`token:...`, `file:///path` (read again for each connection) or `env:NAME`; `name:password` for AuthenticationBasic."""
    broker_client_tls_enabled: bool = False
    """Brokers ask one another over TLS, at their ports for it, and never in the clear."""
    broker_client_trust_certs_file_path: str | None = None
    """The authorities that sign brokers' certificates. Empty: those of the system."""
    broker_client_certificate_file_path: str | None = None
    """Certificate for brokers, from which AuthenticationTls takes the role."""
    broker_client_key_file_path: str | None = None
    """The private key of that certificate."""
    tls_hostname_verification_enabled: bool = True
    """A broker's certificate must be of the host that is connected to. Apache: false."""

    def __post_init__(self) -> None:
        certificate, key = self.broker_client_certificate_file_path, self.broker_client_key_file_path
        if bool(certificate) != bool(key):
            missing = "brokerClientKeyFilePath" if certificate else "brokerClientCertificateFilePath"
            raise ValueError(f"{missing} is not set: a certificate and its key go together")

    def neighbours(self, tls: TlsSettings, environ: Mapping[str, str], now: Callable[[], float]) -> Neighbours:
        """BadSetting, including BadTls. `tls`: shared by all connections of the broker."""
        plugin, parameters = self.broker_client_authentication_plugin, self.broker_client_authentication_parameters
        return Neighbours(renewed_credentials(plugin, parameters, environ), self._client(tls, now))

    def _client(self, tls: TlsSettings, now: Callable[[], float]) -> RenewedTls | None:
        if not self.broker_client_tls_enabled:
            return None
        certificate, key = own_certificate(
            self.broker_client_authentication_plugin,
            self.broker_client_authentication_parameters,
            self.broker_client_certificate_file_path,
            self.broker_client_key_file_path,
        )
        files = TlsFiles(
            tls_file("brokerClientCertificateFilePath", certificate),
            tls_file("brokerClientKeyFilePath", key),
            trust=tls_file("brokerClientTrustCertsFilePath", self.broker_client_trust_certs_file_path),
            checks_host=self.tls_hostname_verification_enabled,
            trusts_everybody=tls.tls_allow_insecure_connection,
        )
        return RenewedTls("client", files, tls.tls_cert_refresh_check_duration_sec, now)
