"""ProxySettings: keys are those of Apache's proxy.conf."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ports.network.tls import RenewedTls, TlsFiles

from ..security.own_credentials import own_certificate
from ..security.tls_settings import TlsSettings, tls_file

FRAME_PADDING_BYTES = 10 * 1024


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Port 0 picks a free one. 0 means no limit for the numbers of connections."""

    service_port: int = 6650
    """The port of the binary protocol."""
    web_service_port: int = 8080
    """The port of HTTP."""
    bind_address: str = "0.0.0.0"
    """The address that both ports listen on; 0.0.0.0 is every address of the machine."""
    broker_service_url: str = ""
    """pulsar://host:port that lookups are asked of. Empty: the brokers that the metadata names, in turn."""
    broker_web_service_url: str = ""
    """http://host:port of the admin REST. Empty: the brokers that the metadata names, in turn."""
    broker_proxy_allowed_host_names: tuple[str, ...] = ("*",)
    """Without metadataStoreUrl: which brokers may be reached. With it: those in metadata, and no others."""
    broker_proxy_allowed_target_ports: tuple[str, ...] = ("6650", "6651")
    """Ports of brokers that may be reached, and no others."""
    broker_proxy_connect_timeout_ms: int = 10_000
    """Time that connecting to a broker may take."""
    keep_alive_interval_seconds: int = 30
    """Keep-alive of connections for lookups. Those to a broker are kept alive by client and broker."""
    max_message_size: int = 5 * 1024 * 1024
    """Bytes of the largest message that goes through; it is to be the brokers' own."""
    max_concurrent_inbound_connections: int = 10_000
    """Connections of clients that this proxy lets in."""
    max_concurrent_inbound_connections_per_ip: int = 0
    """Connections of one client address that this proxy lets in."""
    max_concurrent_lookup_requests: int = 50_000
    """Lookups under way; one more is refused, and the client asks again."""
    max_concurrent_http_requests: int = 1024
    """Requests over HTTP under way; one more is answered with 503."""
    http_requests_limit_enabled: bool = False
    """Requests over HTTP beyond the next key are answered with 429, on every path."""
    http_requests_max_per_second: float = 100.0
    """Limit of all clients together. The unused rest of a second may be used in the next one."""
    http_proxy_timeout: int = 300_000
    """Milliseconds, for one request."""
    http_input_max_replay_buffer_size: int = 5 * 1024 * 1024
    """A request with a larger body is refused: it could not be sent again where a broker redirects it."""

    forward_authorization_credentials: bool = False
    """Brokers get the client's credentials, too (authenticateOriginalAuthData there)."""
    broker_client_authentication_plugin: str = ""
    """Plugin for the proxy's credentials at brokers: Apache's AuthenticationToken, AuthenticationBasic or AuthenticationTls."""
    broker_client_authentication_parameters: str = field(default="", repr=False)
    """`token:...`, `file:///path` or `env:NAME`; `name:password` for AuthenticationBasic."""
    service_port_tls: int | None = None
    """0 picks a free one. Empty: none."""
    web_service_port_tls: int | None = None
    """The port of HTTPS; 0 picks a free one. Empty: none."""
    tls_certificate_file_path: str | None = None
    """The server's certificate, followed by those of the authorities between it and the one that clients trust."""
    tls_key_file_path: str | None = None
    """The private key of the server's certificate."""
    tls_trust_certs_file_path: str | None = None
    """The authorities that sign clients' certificates."""
    tls_require_trusted_client_cert_on_connect: bool = False
    """A client that shows no certificate is not let in."""
    tls_protocols: tuple[str, ...] = ()
    """TLSv1.2 and TLSv1.3; empty: both."""
    tls_ciphers: tuple[str, ...] = ()
    """Ciphers of TLSv1.2, by the names of IANA or of OpenSSL; empty: OpenSSL's choice."""
    tls_cert_refresh_check_duration_sec: int = 300
    """Time between two looks at whether the files were renewed; new connections get the new ones. 0: never."""
    tls_enabled_with_broker: bool = False
    """Brokers are spoken to over TLS, at their ports for it."""
    broker_client_trust_certs_file_path: str | None = None
    """The authorities that sign brokers' certificates. Empty: those of the system."""
    broker_client_certificate_file_path: str | None = None
    """The certificate that the proxy shows brokers."""
    broker_client_key_file_path: str | None = None
    """The private key of that certificate."""
    tls_hostname_verification_enabled: bool = True
    """A broker's certificate must be of the host that is connected to. Apache: false."""

    @property
    def tls(self) -> TlsSettings:
        """TLS of the proxy's own ports. ValueError."""
        return TlsSettings(
            self.service_port_tls,
            self.web_service_port_tls,
            self.tls_certificate_file_path,
            self.tls_key_file_path,
            self.tls_trust_certs_file_path,
            self.tls_require_trusted_client_cert_on_connect,
            tls_protocols=self.tls_protocols,
            tls_ciphers=self.tls_ciphers,
            tls_cert_refresh_check_duration_sec=self.tls_cert_refresh_check_duration_sec,
        )

    def broker_tls(self, now: Callable[[], float]) -> RenewedTls | None:
        """None: in the clear. BadTls."""
        if not self.tls_enabled_with_broker:
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
        )
        return RenewedTls("client", files, self.tls_cert_refresh_check_duration_sec, now)

    def __post_init__(self) -> None:
        assert self.tls is not None  # which checks settings that belong together
        for name, port in (("servicePort", self.service_port), ("webServicePort", self.web_service_port)):
            if not 0 <= port <= 65535:
                raise ValueError(f"{name}: expected 0 to 65535, not {port}")
        if not self.http_requests_max_per_second > 0:
            raise ValueError("httpRequestsMaxPerSecond: expected more than 0")
        if self.keep_alive_interval_seconds < 1:
            raise ValueError("keepAliveIntervalSeconds: expected at least 1")
        if self.broker_service_url and not self.broker_service_url.startswith(("pulsar://", "pulsar+ssl://")):
            raise ValueError(f"brokerServiceURL={self.broker_service_url}: expected pulsar://host:port")
        if self.broker_web_service_url and not self.broker_web_service_url.startswith(("http://", "https://")):
            raise ValueError(f"brokerWebServiceURL={self.broker_web_service_url}: expected http://host:port")
        if min(self.broker_proxy_connect_timeout_ms, self.http_proxy_timeout, self.max_concurrent_lookup_requests) < 1:
            raise ValueError("brokerProxyConnectTimeoutMs, httpProxyTimeout, maxConcurrentLookupRequests: at least 1")
