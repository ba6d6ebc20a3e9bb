"""Security: TLS and authentication that the connections of one bookie share."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any

from bookie.server.security.certificate_roles import CertificateRoles
from bookie.server.security.guard import Guard
from bookie.server.security.settings import BookieSecuritySettings
from ports.logs import line
from ports.network.tls import RenewedTls

log = logging.getLogger("bookie.server")
HANDSHAKE_SECONDS_MAX = 10.0
"""Apache's client gives a bookie as much (startTLSTimeoutSecs)."""


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
        """Guard for a new connection; None: every client may do everything."""
        if self._settings.bookie_auth_provider_factory_class is None:
            return None
        return Guard(CertificateRoles(self._settings.authorized_roles))


class HandshakeFailed(Exception):
    """The connection is of no use any more."""


async def shake_hands(
    transport: asyncio.Transport, protocol: asyncio.BaseProtocol, context: ssl.SSLContext
) -> tuple[asyncio.Transport, dict[str, Any]]:
    """The transport from now on, and the peer's certificate (`getpeercert`; empty: it was not asked for one).

    `transport` does not read when this is called. `protocol` may be given bytes before this returns. HandshakeFailed.
    """
    loop = asyncio.get_running_loop()
    try:
        secure = await loop.start_tls(
            transport, protocol, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
        )
    except OSError as error:  # of which those of ssl are a kind
        raise HandshakeFailed(f"TLS handshake: {error}") from error
    if secure is None or secure.get_extra_info("cipher") is None:
        transport.abort()
        raise HandshakeFailed("TLS handshake: the peer went away")
    return secure, secure.get_extra_info("peercert") or {}
