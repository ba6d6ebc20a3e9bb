"""Security: what the connections of one bookie share of TLS and authentication."""

import logging
from collections.abc import Callable

from bookie.server.security.certificate_roles import CertificateRoles
from bookie.server.security.guard import Guard
from bookie.server.security.settings import BookieSecuritySettings
from ports.logs import line
from ports.network.tls import RenewedTls

log = logging.getLogger("bookie.server")


class Security:
    """Security of one bookie. `tls`: None when peers cannot begin TLS."""

    def __init__(self, settings: BookieSecuritySettings, now: Callable[[], float]) -> None:
        """BadTls, which names the setting whose file is wrong. `now`: seconds on a clock that does not go back."""
        self._settings = settings
        files = settings.tls_files
        seconds = settings.tls_cert_files_refresh_duration_seconds
        self.tls = None if files is None else RenewedTls("server", files, seconds, now)
        has_trust = files is not None and files.trust is not None
        self.peer_tls = RenewedTls("client", files, seconds, now) if files is not None and has_trust else None
        """With which this bookie speaks to others, whose settings are the same; None: in the clear."""
        if files is not None and settings.bookie_auth_provider_factory_class is None:
            log.warning(
                line(
                    "TLS is offered, not demanded: peers may speak in the clear, and without a certificate",
                    remedy="bookieAuthProviderFactoryClass",
                )
            )

    def guard(self) -> Guard | None:
        """Guard for a new connection; None: everybody may do everything."""
        if self._settings.bookie_auth_provider_factory_class is None:
            return None
        return Guard(CertificateRoles(self._settings.authorized_roles))
