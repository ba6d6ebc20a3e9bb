"""TlsPort: a port whose connections begin with a TLS handshake, each with the certificates of that moment. Knows no protocol.

Bounds: HANDSHAKES_MAX at a time, of which the oldest is ended for a new one, so that peers that never finish theirs keep
no other out for long; each takes at most HANDSHAKE_SECONDS_MAX. A failed handshake is one line in the log, with its reason.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

from ports.logs import line
from ports.network.tls import RenewedTls

log = logging.getLogger("ports.network.tls_port")

HANDSHAKE_SECONDS_MAX = 10.0
HANDSHAKES_MAX = 256
BREATH_SECONDS = 1.0
"""Until it is tried again to accept, after the system had nothing left to accept with (such as file descriptors)."""
BACKLOG = 1024


def bound_listener(host: str, port: int) -> socket.socket:
    """Listening socket for a TlsPort; port 0 takes a free one. OSError names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port} for TLS: {error.strerror}") from error


class TlsPort:
    """`start` once, on a bound socket; `close` last, which leaves connections whose handshake is done to their owner."""

    def __init__(self, listening: socket.socket, accept: Callable[[], asyncio.BaseProtocol], tls: RenewedTls) -> None:
        self._listening, self._accept_protocol, self._tls = listening, accept, tls
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._accepting: asyncio.Task[None] | None = None

    @property
    def number(self) -> int:
        """Port number."""
        port: int = self._listening.getsockname()[1]
        return port

    @property
    def handshakes(self) -> int:
        """Handshakes under way."""
        return len(self._handshakes)

    def start(self) -> None:
        self._listening.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(), name="accept over TLS")

    def close(self) -> None:
        """Close the port to new connections. Closing twice is fine."""
        if self._accepting is not None:
            self._accepting.cancel()
        for handshake in list(self._handshakes):
            handshake.cancel()
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(self._listening)
            except OSError as error:
                log.error(line("server port cannot accept connections", reason=error))
                await asyncio.sleep(BREATH_SECONDS)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self._handshakes) >= HANDSHAKES_MAX:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            handshake = loop.create_task(self._shake_hands(connection, str(peer[0])), name="TLS handshake")
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, connection: socket.socket, host: str) -> None:
        """Give the protocol the connection when the handshake is done, and never when it fails."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._accept_protocol, connection, ssl=self._tls.context(), ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
            )
        except (OSError, TimeoutError) as error:  # of which those of ssl are a kind
            log.info(line("TLS handshake failed", peer=host, reason=str(error)[:300] or type(error).__name__))
            connection.close()
        except asyncio.CancelledError:
            log.warning(line("TLS handshake ended", peer=host, reason="others wait, or the server stops"))
            connection.close()
            raise
