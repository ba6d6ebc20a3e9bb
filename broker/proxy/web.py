"""The proxy's HTTP: the admin REST and lookups of the brokers behind it, its own metrics and status. Owns no other path.

A broker's redirect is followed here, to brokers that are known only: clients need not reach them. Bounds: requests at a time,
the size of a body, and of all bodies together; an answer is passed on as it comes, no faster than the client takes it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import h11

from ports.logs import line

from ..security.authentication.principals import AuthenticationRefused
from .brokers import Brokers
from .clients import NOBODY, Client
from .counts import CONTENT_TYPE, Counts
from .door import Door
from .settings import ProxySettings
from .way import Way

log = logging.getLogger(__name__)

REDIRECTS_MAX = 5
ATTEMPTS_MAX = 3
BODIES_BYTES_MAX = 256 * 1024 * 1024
READ_BYTES = 64 * 1024
FORWARDED = ("/admin/", "/lookup/")
_OF_ONE_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
        b"expect",
        b"host",
        b"content-length",
    }
)
ORIGINAL, METHOD = b"x-original-principal", b"x-pulsar-auth-method-name"
"""No client speaks for others through a proxy, which gives brokers its own credentials."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Refusal(Exception):
    """Refusal of a request, with a status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class NotReached(Exception):
    """The broker was not connected to: nothing was asked of it, another one may be."""


class ProxyWeb:
    """An ASGI application."""

    def __init__(
        self,
        settings: ProxySettings,
        brokers: Brokers,
        counts: Counts,
        connections: Callable[[], int],
        way: Way | None = None,
        door: Door | None = None,
    ) -> None:
        self._way, self._door = way or Way(), door
        self._settings, self._brokers, self._counts, self._connections = settings, brokers, counts, connections
        self._requests = self._bodies_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = str(scope["path"])
        client = NOBODY
        if self._door is not None and path != "/status.html":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            try:
                client = self._door.admit_request(headers, scope.get("state", {}).get("certificate"))
            except AuthenticationRefused as refused:
                log.warning(line("not authenticated", path=path[:200], reason=refused))
                await _answer(send, 401, "Authentication required")
                return
        if path == "/metrics":
            await _answer(send, 200, self._counts.text(self._connections(), self._brokers.count), CONTENT_TYPE)
        elif path == "/status.html":
            is_ready = self._brokers.count > 0
            await _answer(send, 200 if is_ready else 503, "OK" if is_ready else "no broker is registered")
        elif path.startswith(FORWARDED):
            await self._forwarded(scope, receive, send, client)
        else:
            await _answer(send, 404, "a proxy has /admin, /lookup, /metrics and /status.html")

    async def _forwarded(self, scope: Scope, receive: Receive, send: Send, client: Client) -> None:
        if self._requests >= self._settings.max_concurrent_http_requests:
            await _answer(send, 503, f"more than {self._settings.max_concurrent_http_requests} requests at a time")
            return
        self._requests += 1
        self._counts.http_requests += 1
        body: list[bytes] = []
        answer = _Answer(send)
        try:
            async with asyncio.timeout(self._settings.http_proxy_timeout / 1000):
                await self._take_body(receive, body)
                await self._relay(scope, b"".join(body), answer.send, client)
        except Refusal as refusal:
            log.warning(line("request not forwarded", path=scope["path"], status=refusal.status, reason=refusal))
            await answer.refuse(refusal.status, str(refusal))
        except TimeoutError:
            await answer.refuse(504, f"no answer in {self._settings.http_proxy_timeout} ms (httpProxyTimeout)")
        finally:
            self._requests -= 1
            self._bodies_bytes -= sum(map(len, body))

    async def _take_body(self, receive: Receive, body: list[bytes]) -> None:
        """Reads the body; `body` counts the bytes read, also if the request fails."""
        size, limit = 0, self._settings.http_input_max_replay_buffer_size
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Refusal(400, "the request is not whole")
            part = event.get("body", b"")
            body.append(part)
            size += len(part)
            self._bodies_bytes += len(part)
            if size > limit:
                raise Refusal(413, f"a body of more than {limit} bytes (httpInputMaxReplayBufferSize)")
            if self._bodies_bytes > BODIES_BYTES_MAX:
                raise Refusal(503, "too many large requests at a time")
            if not event.get("more_body"):
                return

    async def _relay(self, scope: Scope, body: bytes, send: Send, client: Client) -> None:
        target = scope.get("raw_path") or str(scope["path"]).encode()
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        headers = [*_request_headers(scope, body, client), *self._way.own.http_headers(client)]
        reason = "no broker is registered"
        for _ in range(ATTEMPTS_MAX):
            address = self._brokers.pick_web()
            if address is None:
                break
            try:
                await self._asked(address, scope["method"].encode(), target, headers, body, send)
                return
            except NotReached as error:
                reason = str(error)
        raise Refusal(503, f"no broker answers: {reason}")

    async def _asked(self, address: str, method: bytes, target: bytes, headers: Headers, body: bytes, send: Send) -> None:
        """Asks this broker, and those that it redirects to."""
        for _ in range(REDIRECTS_MAX):
            exchange = await _Exchange.open(address, self._settings.broker_proxy_connect_timeout_ms / 1000, self._way)
            try:
                response = await exchange.ask(method, target, headers, body)
                location = dict(response.headers).get(b"location", b"") if response.status_code in (307, 308) else b""
                if not location:
                    await exchange.pass_on(response, send)
                    return
            except (OSError, h11.RemoteProtocolError) as error:
                raise Refusal(502, f"{address} did not answer: {error}") from error
            finally:
                exchange.close()
            url = urlsplit(location.decode("latin-1"))
            if url.scheme != ("http" if self._way.tls is None else "https") or not await self._brokers.may_reach_web(
                url.netloc
            ):
                raise Refusal(502, f"{address} redirects to {url.scheme}://{url.netloc}, which is no known broker")
            address, target = url.netloc, f"{url.path}{'?' if url.query else ''}{url.query}".encode("latin-1")
        raise Refusal(502, f"redirected more than {REDIRECTS_MAX} times")


class _Answer:
    """Answer to the client. One that has begun cannot be taken back: it stays unfinished, and the server breaks the connection
    off."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False

    async def send(self, event: MutableMapping[str, Any]) -> None:
        self._has_begun = True
        await self._send(event)

    async def refuse(self, status: int, text: str) -> None:
        if not self._has_begun:
            await _answer(self._send, status, text)


class _Exchange:
    """One request to one broker, on a connection of its own."""

    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address, self._reader, self._writer = address, reader, writer
        self._http = h11.Connection(h11.CLIENT)

    @classmethod
    async def open(cls, address: str, seconds: float, way: Way) -> "_Exchange":
        """NotReached."""
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(seconds):
                name = host.strip("[]")
                context = way.context()
                if context is None:
                    return cls(address, *await asyncio.open_connection(name, int(port)))
                return cls(address, *await asyncio.open_connection(name, int(port), ssl=context, server_hostname=name))
        except (OSError, TimeoutError, ValueError) as error:
            raise NotReached(f"{address}: {error or 'no answer in time'}") from error

    async def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> h11.Response:
        """The head of the answer. OSError, h11.RemoteProtocolError."""
        own = [(b"host", self._address.encode()), (b"connection", b"close")]
        request = h11.Request(method=method, target=target, headers=[*own, *headers])
        for event in (request, h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event

    async def pass_on(self, response: h11.Response, send: Send) -> None:
        """All but the date, which the proxy gives each answer itself. Names keep their capitals, which clients look at."""
        dropped = (_OF_ONE_HOP | {b"date"}) - {b"content-length"}
        kept = [(name, value) for name, value in response.headers.raw_items() if name.lower() not in dropped]
        await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
        async for data in self._body():
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(READ_BYTES))
        return event

    def close(self) -> None:
        self._writer.close()


def _request_headers(scope: Scope, body: bytes, client: Client) -> Headers:
    """The client's headers without those of this connection; the client's principal is added."""
    dropped = _OF_ONE_HOP | {ORIGINAL} | ({b"authorization", METHOD} if client.principal else set())
    kept = [(name, value) for name, value in scope["headers"] if name not in dropped]
    if scope.get("client"):
        kept.append((b"x-forwarded-for", str(scope["client"][0]).encode()))
    return [*kept, (b"content-length", str(len(body)).encode())]


async def _answer(send: Send, status: int, text: str, content_type: str = "text/plain; charset=utf-8") -> None:
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(text.encode())).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
