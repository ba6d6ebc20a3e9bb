"""Work for another broker: a request is redirected to it (307, as Apache does), or this broker asks it.

Owns nothing; the service knows the other broker.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from metadata.store import MetadataError

from ...errors import BrokerError
from ...service.addresses import Advertised
from ...service.errors import TopicElsewhere
from ...service.lookup import Lookup
from ...service.neighbours.neighbours import Neighbours
from ...service.topic_name import TopicName
from .answers import Refusal, on_broker_error, refusal

SECONDS_MAX = 60.0
STATUS_LINE_BYTES_MAX = 4096
REDIRECTS_MAX = 4
NOT_READY = 503
NOT_READY_SECONDS_MAX = 10.0
ASK_AGAIN_SECONDS = 0.25
ANSWER_BYTES_MAX = 16 << 20
HEADERS_MAX = 64


def to_owner(lookup: Lookup) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The handler of TopicElsewhere: the same request at the owner, or at the broker chosen as owner."""

    async def on_topic_elsewhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, TopicElsewhere)
        try:
            found = await lookup.find(TopicName.parse(error.topic))
        except BrokerError as refused:
            return await on_broker_error(request, refused)
        except MetadataError as failed:
            return refusal(500, str(failed))
        return redirect(request, found.address)

    return on_topic_elsewhere


def redirect(request: Request, address: Advertised, *, without: str = "", **parameters: str) -> Response:
    """307 to the same path there, with the parameters given beside its own, but without `without`. A client that came over TLS
    is redirected over TLS, if the other broker has a port for it.
    """
    plain, over_tls = address.http_url, address.http_url_tls
    http_url = over_tls or plain if request.url.scheme == "https" else plain or over_tls
    url = request.url.include_query_params(**parameters) if parameters else request.url
    url = url.remove_query_params(without) if without else url
    path = request.scope.get("raw_path", b"").decode() or quote(url.path)
    return RedirectResponse(http_url + path + (f"?{url.query}" if url.query else ""), 307)


async def ask(neighbours: Neighbours, address: Advertised, method: str, path: str) -> None:
    """Sends a request without a body to another broker, and follows its redirects. A redirect of a PUT to release something
    means that it is done. Refusal(500) when it is not done, BrokerError when the broker cannot be asked.
    """
    url, status, _ = await _answer_of(neighbours, address, method, path, is_followed=method != "PUT")
    is_done = status in (200, 204, 404) or (method, status) == ("PUT", 307)  # 404: it is gone already, as wanted
    if not is_done:
        raise Refusal(500, _complaint(url, method, status))


async def ask_json(neighbours: Neighbours, address: Advertised, path: str) -> Any:
    """Returns another broker's answer to GET, redirects followed; None for 404. Refusal(500), BrokerError."""
    url, status, body = await _answer_of(neighbours, address, "GET", path, is_followed=True)
    if status not in (200, 404):
        raise Refusal(500, _complaint(url, "GET", status))
    try:
        return json.loads(body) if status == 200 else None
    except ValueError as error:
        raise Refusal(500, f"{url} answered GET with what is no JSON: {error}") from error


async def pass_on(neighbours: Neighbours, address: Advertised, method: str, path: str, body: bytes = b"") -> Any:
    """Returns another broker's answer to a request with a body, redirects followed: its JSON, or None. Its refusals keep their
    status and reason (Refusal); BrokerError when it cannot be reached.
    """
    url, status, answer = await _answer_of(neighbours, address, method, path, body, is_followed=True)
    if status in (401, 403) or 300 <= status < 400:
        raise Refusal(500, _complaint(url, method, status))
    try:
        told = json.loads(answer) if answer else None
    except ValueError as error:
        raise Refusal(500, f"{url} answered {method} with what is no JSON: {error}") from error
    if status >= 400:
        raise Refusal(status, str(told.get("reason", "")) if isinstance(told, dict) else "")
    return told


async def _answer_of(
    neighbours: Neighbours, address: Advertised, method: str, path: str, body: bytes = b"", *, is_followed: bool
) -> tuple[str, int, bytes]:
    """Returns the last URL asked, the status and the body. `is_followed`: a 307 is. A broker that is not ready (503) is asked
    again for a while: its topic or bundle is just being closed, opened or taken."""
    url = neighbours.web_url(address) + path
    patience = asyncio.get_running_loop().time() + NOT_READY_SECONDS_MAX
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                found = await _followed(neighbours, url, method, body, REDIRECTS_MAX if is_followed else 1)
                if found[1] != NOT_READY or asyncio.get_running_loop().time() > patience:
                    return found
                await asyncio.sleep(ASK_AGAIN_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise Refusal(500, f"{url} did not answer: {error}") from error


async def _followed(neighbours: Neighbours, url: str, method: str, body: bytes, times_max: int) -> tuple[str, int, bytes]:
    for _ in range(times_max):
        status, headers, answer = await _exchange(neighbours, url, method, body)
        if status != 307 or times_max == 1:
            break
        url = headers.get("location", "")
    return url, status, answer


def _complaint(url: str, method: str, status: int) -> str:
    remedy = {
        401: ": brokerClientAuthenticationPlugin and ...Parameters say what this broker shows it",
        403: ": the role that this broker shows it (brokerClientAuthenticationParameters) is not in its superUserRoles",
    }
    return f"{url} answered {method} with {status}{remedy.get(status, '')}"


def _head(neighbours: Neighbours, url: str, method: str, size: int) -> bytes:
    where = urlsplit(url)
    target = where.path + (f"?{where.query}" if where.query else "")
    first = f"{method} {target} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: {size}\r\nConnection: close\r\n"
    if size:
        first += "Content-Type: application/json\r\n"
    shown = (name + b": " + value + b"\r\n" for name, value in neighbours.credentials().headers())
    return first.encode() + b"".join(shown) + b"\r\n"


async def _exchange(neighbours: Neighbours, url: str, method: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await neighbours.open(url, STATUS_LINE_BYTES_MAX)
    try:
        writer.write(_head(neighbours, url, method, len(body)) + body)
        status = (await reader.readline()).split()[1:2]
        headers: dict[str, str] = {}
        while (text := (await reader.readline()).strip().decode("latin-1")) and len(headers) < HEADERS_MAX:
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        size = int(headers.get("content-length", "0"))
        if not status or text or size > ANSWER_BYTES_MAX:
            raise ValueError(f"no answer of at most {ANSWER_BYTES_MAX} bytes with its length")
        return int(status[0]), headers, await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise ValueError("the answer is cut off") from error
    finally:
        writer.close()
