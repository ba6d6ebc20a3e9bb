"""With which certificates a bookie's HTTP is served, where it is behind TLS: the bookie's own. Performs nothing."""

from collections.abc import Callable

from bookie.server.security.settings import TLS_FACTORY, BookieSecuritySettings
from bookie.web.settings import BookieWebSettings
from ports.network.tls import BadTls, RenewedTls


def web_tls(web: BookieWebSettings, own: BookieSecuritySettings, now: Callable[[], float]) -> RenewedTls | None:
    """None: HTTP is in the clear. BadTls, also when there are no files for it."""
    if not web.http_server_tls_enable:
        return None
    files = own.tls_files
    if files is None:
        raise BadTls(f"httpServerTlsEnable=true: set tlsProviderFactoryClass={TLS_FACTORY}, tlsKeyStore and tlsCertificatePath")
    return RenewedTls("server", files, own.tls_cert_files_refresh_duration_seconds, now)
