"""Begin of a connection to a bookie with TLS: START_TLS of version 3 in the clear, then the handshake.

Owns that beginning; the links speak inside. Nothing else is ever sent in the clear: a bookie that does not offer TLS
gets no request.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from google.protobuf.message import DecodeError

from ports.network.tls import RenewedTls
from wire.bookie.frames import framed, next_frame
from wire.errors import RemoteError
from wire.generated import bookie_protocol_pb2 as api

HANDSHAKE_SECONDS_MAX = 10.0
"""Apache's startTLSTimeoutSecs."""
ANSWER_BYTES_MAX = 1024
_REQUEST = framed(
    api.Request(
        header=api.BKPacketHeader(version=api.VERSION_THREE, operation=api.START_TLS, txnId=1),
        startTLSRequest=api.StartTLSRequest(),
    ).SerializeToString()
)

P = TypeVar("P", bound=asyncio.BufferedProtocol)


async def connect(make_link: Callable[[], P], host: str, port: int, tls: RenewedTls | None) -> P:
    """A link that is connected, over TLS if that is wanted. OSError, of which the errors of ssl are a kind."""
    loop = asyncio.get_running_loop()
    if tls is None:
        _, link = await loop.create_connection(make_link, host, port)
        return link
    transport, asking = await loop.create_connection(_Asking, host, port)
    try:
        await asking.agreed
        silence = _Silence()
        secure = await loop.start_tls(
            transport, silence, tls.context(), server_hostname=host, ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
        )
        if secure is None or silence.is_broken or secure.get_extra_info("cipher") is None:
            raise ConnectionError(f"{host}:{port}: the bookie ended the TLS handshake, or spoke out of turn")
    except BaseException:
        transport.abort()
        raise
    link = make_link()
    secure.set_protocol(link)
    link.connection_made(secure)
    return link


class _Asking(asyncio.Protocol):
    """START_TLS in the clear, and its answer."""

    def __init__(self) -> None:
        self.agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._transport.write(_REQUEST)

    def data_received(self, data: bytes) -> None:
        self._data += data
        try:
            found = next_frame(self._data, 0, len(self._data), ANSWER_BYTES_MAX)
            if found is not None:
                self._transport.pause_reading()
                self._answered(api.Response.FromString(found[0]), len(self._data) - found[1])
        except (DecodeError, RemoteError) as error:
            self._refused(f"an answer to START_TLS that is none: {error}")

    def _answered(self, response: api.Response, left: int) -> None:
        if response.header.operation != api.START_TLS or response.status != api.EOK:
            status = api.StatusCode.Name(response.status)
            self._refused(f"the bookie offers no TLS ({status}): set its tlsProviderFactoryClass")
        elif left:
            self._refused("bytes in the clear after the answer to START_TLS")
        elif not self.agreed.done():
            self.agreed.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._refused(str(exc or "the bookie closed the connection at START_TLS"))

    def _refused(self, reason: str) -> None:
        if not self.agreed.done():
            self.agreed.set_exception(ConnectionError(reason))


class _Silence(asyncio.Protocol):
    """A bookie that has not been asked anything yet says nothing."""

    is_broken = False

    def data_received(self, data: bytes) -> None:
        self.is_broken = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_broken = True
