"""A proxy's HTTP before brokers that are made up: what goes on and comes back, where a redirect may lead, what is too much."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from broker.proxy.counts import Counts
from broker.proxy.settings import ProxySettings
from broker.proxy.web import ProxyWeb
from tests.clients.standalone.test_proxy_connection import Known

SECONDS_MAX = 30.0
Asked = list[bytes]


@asynccontextmanager
async def made_up_broker(answer: bytes) -> AsyncIterator[tuple[str, Asked]]:
    """Address of a made-up broker, and the requests that it got, body included. It closes after each answer."""
    asked: Asked = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        asked.append(head + await reader.readexactly(size))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


async def ask(
    known: Known, method: str, path: str, body: bytes = b"", query: bytes = b"", **settings: Any
) -> tuple[int, bytes, Any]:
    """Status, body and headers of what a client gets."""
    app = ProxyWeb(ProxySettings(**settings), known, Counts(), lambda: 0)
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    headers = [(b"host", b"proxy"), (b"connection", b"keep-alive"), (b"x-mine", b"1"), (b"content-length", b"%d" % len(body))]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
    }
    await app({**scope, "client": ("10.1.2.3", 5)}, receive, send)
    return sent[0]["status"], b"".join(event.get("body", b"") for event in sent[1:]), dict(sent[0]["headers"])


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await scenario()

    uvloop.run(bounded())


def test_names_of_headers_come_through_as_the_broker_wrote_them() -> None:
    async def scenario() -> None:
        told = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Pulsar-PROPERTY: {}\r\nDate: now\r\n\r\nok"
        async with made_up_broker(told) as (address, _):
            status, body, headers = await ask(Known(address), "GET", "/admin/v2/clusters")
        assert (status, body, headers) == (200, b"ok", {b"Content-Length": b"2", b"X-Pulsar-PROPERTY": b"{}"})

    run(scenario)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"


def redirect(to: str) -> bytes:
    return f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()


def test_a_request_goes_to_a_broker_and_its_answer_comes_back() -> None:
    async def scenario() -> None:
        async with made_up_broker(OK) as (address, asked):
            status, body, headers = await ask(Known(address), "PUT", "/admin/v2/tenants/t", b"{}", b"a=b%20c")
            assert (status, body) == (200, b"[1,2]")
            assert headers == {b"Content-Type": b"application/json"}
            head, _, sent = asked[0].partition(b"\r\n\r\n")
            assert sent == b"{}"
            assert head.startswith(b"PUT /admin/v2/tenants/t?a=b%20c HTTP/1.1\r\n")
            lines = set(head.lower().split(b"\r\n"))
            assert {b"x-mine: 1", b"x-forwarded-for: 10.1.2.3", b"connection: close", f"host: {address}".encode()} <= lines

    run(scenario)


def test_a_redirect_to_a_known_broker_is_followed_with_the_body() -> None:
    async def scenario() -> None:
        async with made_up_broker(OK) as (owner, asked), made_up_broker(redirect(f"http://{owner}/admin/x?y=1")) as (first, _):
            known = Known(first, owner)
            assert (await ask(known, "POST", "/admin/x", b"body"))[:2] == (200, b"[1,2]")
            assert asked[0].startswith(b"POST /admin/x?y=1 ")
            assert asked[0].endswith(b"\r\n\r\nbody")

    run(scenario)


def test_a_redirect_to_anybody_else_is_refused() -> None:
    async def scenario() -> None:
        async with made_up_broker(OK) as (hidden, asked), made_up_broker(redirect(f"http://{hidden}/admin/x")) as (first, _):
            status, body, _ = await ask(Known(first), "GET", "/admin/x")
            assert status == 502
            assert b"which is no known broker" in body
            assert asked == []

    run(scenario)


def test_redirects_that_go_round_end() -> None:
    async def scenario() -> None:
        known = Known()
        async with made_up_broker(redirect("http://a:1/admin/x")) as (first, asked):
            known.addresses = [first]
            again = redirect(f"http://{first}/admin/x")
            async with made_up_broker(again) as (second, _):
                known.addresses = [second, first]
                status, _, _ = await ask(known, "GET", "/admin/x")
                assert status == 502
                assert len(asked) == 1

    run(scenario)


def test_another_broker_is_asked_where_one_is_gone() -> None:
    async def scenario() -> None:
        async with made_up_broker(OK) as (address, _):
            assert (await ask(Known("127.0.0.1:1", address), "GET", "/lookup/v2/topic/x"))[0] == 200

    run(scenario)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", b"no HTTP at all\r\n\r\n"])
def test_a_broker_that_breaks_off_is_a_bad_gateway(answer: bytes) -> None:
    async def scenario() -> None:
        async with made_up_broker(answer) as (address, asked):
            assert (await ask(Known(address), "DELETE", "/admin/x"))[0] == 502
            assert len(asked) == 1  # it may have done it: nobody else is asked

    run(scenario)


def test_an_answer_that_breaks_off_in_the_middle_is_not_made_whole() -> None:
    async def scenario() -> None:
        async with made_up_broker(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1") as (address, _):
            status, body, headers = await ask(Known(address), "GET", "/admin/x")
            assert (status, body, headers) == (200, b"[1", {b"Content-Length": b"5"})

    run(scenario)


@pytest.mark.parametrize(
    ("path", "body", "settings", "status", "says"),
    [
        ("/admin/x", b"12345", {"http_input_max_replay_buffer_size": 4}, 413, b"httpInputMaxReplayBufferSize"),
        ("/admin/x", b"", {"max_concurrent_http_requests": 0}, 503, b"more than 0 requests"),
        ("/admin/x", b"", {}, 503, b"no broker is registered"),
        ("/status.html", b"", {}, 503, b"no broker is registered"),
        ("/other", b"", {}, 404, b"a proxy has /admin"),
        ("/metrics", b"", {}, 200, b"pulsar_proxy_known_brokers 0"),
    ],
)
def test_a_request_that_is_not_forwarded_is_answered_by_the_proxy_itself(
    path: str, body: bytes, settings: dict[str, Any], status: int, says: bytes
) -> None:
    async def scenario() -> None:
        got, text, _ = await ask(Known(), "PUT", path, body, **settings)
        assert got == status
        assert says in text

    run(scenario)
