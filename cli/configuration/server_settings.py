"""ServerSettings: addresses that a server listens on, and those under which it is known. Keys are Apache's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Port 0 picks a free one. `bind_address` 0.0.0.0 is Apache's default; conf/standalone.conf says why it sets another."""

    broker_service_port: int | None = 6650
    """Empty: none; then brokerServicePortTls is set."""
    web_service_port: int | None = 8080
    """Empty: none; then webServicePortTls is set."""
    bind_address: str = "0.0.0.0"
    """The address that both ports listen on; 0.0.0.0 is every address of the machine."""
    advertised_address: str | None = None
    """The host under which clients and other brokers find this one. Empty: bindAddress, or localhost for 0.0.0.0."""
    http_requests_limit_enabled: bool = False
    """Requests over HTTP beyond the next key are answered with 429, whatever they ask for."""
    http_requests_max_per_second: float = 100.0
    """Limit for all clients together. Requests that one second leaves over may be used in the next one."""

    def __post_init__(self) -> None:
        for name, port in (("brokerServicePort", self.broker_service_port), ("webServicePort", self.web_service_port)):
            if port is not None and not 0 <= port <= 65535:
                raise ValueError(f"{name}: expected 0 to 65535, not {port}")
        if not self.http_requests_max_per_second > 0:
            raise ValueError("httpRequestsMaxPerSecond: expected more than 0")

    @property
    def known_as(self) -> str:
        """The host in the URLs that clients are told."""
        return self.advertised_address or ("localhost" if self.bind_address in ("0.0.0.0", "::", "") else self.bind_address)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a broker in a cluster, beside `metadataStoreUrl`."""

    configuration_metadata_store_url: str = ""
    """The same as metadataStoreUrl, or empty: a store apart is refused."""
    bookkeeper_metadata_service_uri: str = ""
    """Empty: /ledgers in metadataStoreUrl. Elsewhere is refused."""
    bookkeeper_client_timeout_in_seconds: int = 30
    """Time that a bookie may leave a request without an answer."""

    def __post_init__(self) -> None:
        if self.bookkeeper_client_timeout_in_seconds < 1:
            raise ValueError("bookkeeperClientTimeoutInSeconds: at least 1")
