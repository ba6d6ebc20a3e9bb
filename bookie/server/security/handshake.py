"""The handshake of TLS on a connection that has spoken in the clear so far, from a bookie's side."""

import asyncio
import ssl
from typing import Any

HANDSHAKE_SECONDS_MAX = 10.0
"""Apache's client gives a bookie as much (startTLSTimeoutSecs)."""


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
