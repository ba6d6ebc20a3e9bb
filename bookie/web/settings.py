"""BookieWebSettings: where a bookie's HTTP is. Keys are Apache's (bookkeeper.conf)."""

from collections.abc import Callable
from dataclasses import dataclass

from bookie.server.security.settings import TLS_FACTORY, BookieSecuritySettings
from ports.network.tls import BadTls, RenewedTls

PROMETHEUS = "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider"
_NO_STATS = "org.apache.bookkeeper.stats.NullStatsProvider"


@dataclass(frozen=True, slots=True)
class BookieWebSettings:
    """Port 0 picks a free one."""

    http_server_enabled: bool = False
    """The bookie serves HTTP: its state, its metrics, and what BookKeeper's REST has."""
    http_server_host: str = "0.0.0.0"
    """The address that HTTP listens on."""
    http_server_port: int = 8080
    """The port of HTTP."""
    http_server_tls_enable: bool = False
    """With the files of the bookie's own port: tlsKeyStore, tlsCertificatePath, tlsTrustStore, tlsClientAuthentication."""
    stats_provider_class: str | None = None
    """org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider: /metrics is there without httpServerEnabled, too."""
    prometheus_stats_http_enable: bool = True
    """With statsProviderClass and without httpServerEnabled: /metrics has a port of its own."""
    prometheus_stats_http_address: str = "0.0.0.0"
    """The address that this port listens on."""
    prometheus_stats_http_port: int = 8000
    """The port of /metrics alone."""

    def __post_init__(self) -> None:
        for name, port in (
            ("httpServerPort", self.http_server_port),
            ("prometheusStatsHttpPort", self.prometheus_stats_http_port),
        ):
            if not 0 <= port <= 65535:
                raise ValueError(f"{name}: expected 0 to 65535, not {port}")
        if self.stats_provider_class not in (None, PROMETHEUS, _NO_STATS):
            raise ValueError(f"statsProviderClass={self.stats_provider_class}: {PROMETHEUS} is what there is")

    @property
    def serves_metrics_alone(self) -> bool:
        """Whether metrics are served alone, as BookKeeper's PrometheusMetricsProvider decides."""
        return self.stats_provider_class == PROMETHEUS and self.prometheus_stats_http_enable and not self.http_server_enabled


def web_tls(web: BookieWebSettings, own: BookieSecuritySettings, now: Callable[[], float]) -> RenewedTls | None:
    """None: HTTP is in the clear. BadTls, also when there are no files for it."""
    if not web.http_server_tls_enable:
        return None
    files = own.tls_files
    if files is None:
        raise BadTls(f"httpServerTlsEnable=true: set tlsProviderFactoryClass={TLS_FACTORY}, tlsKeyStore and tlsCertificatePath")
    return RenewedTls("server", files, own.tls_cert_files_refresh_duration_seconds, now)
