"""WebPort: what every answer over HTTP has."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from ports.network.web_port import DatedState, WebPort


@dataclass
class Hand:
    """A clock that is set by hand."""

    milliseconds: int

    def now_ms(self) -> int:
        return self.milliseconds


def test_an_answer_bears_the_date_of_its_second() -> None:
    clock = Hand(784111777_000)
    state = DatedState(clock)
    assert state.default_headers == [(b"date", b"Sun, 06 Nov 1994 08:49:37 GMT")]
    clock.milliseconds += 999
    assert state.default_headers[0][1].endswith(b"08:49:37 GMT")
    clock.milliseconds += 1
    assert state.default_headers[0][1].endswith(b"08:49:38 GMT")


DELETE = b"DELETE /one HTTP/1.1\r\nHost: here\r\nConnection: keep-alive\r\n\r\n"


@pytest.mark.parametrize("together", [True, False])
def test_a_body_without_a_length_ends_the_connection_and_is_no_part_of_the_next_request(together: bool) -> None:
    """Node.js sends such a body with DELETE, and its next request on the connection, unless that has ended."""
    served: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def scenario() -> bytes:
        server = await asyncio.get_running_loop().create_server(WebPort(app), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(DELETE + b"{}" if together else DELETE)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not together:
            writer.write(b"{}")
        answer += await reader.read()
        writer.close()
        server.close()
        return answer

    answer = asyncio.run(asyncio.wait_for(scenario(), 10))
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"HTTP/1.1 400 " in answer
    assert served == ["/one"]
