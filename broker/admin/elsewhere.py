"""What another broker has to do: a request is sent on to it (307, as Apache does), or this broker asks it.

Owns nothing; who the other is, the service knows.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from metadata.store import MetadataError

from ..errors import BrokerError
from ..service.broker_service import BrokerService
from ..service.errors import TopicElsewhere
from ..service.lookups import Advertised
from ..service.neighbours import Neighbours
from ..service.topic_name import TopicName
from .answers import Refusal, on_broker_error, refusal

SECONDS_MAX = 60.0
STATUS_LINE_BYTES_MAX = 4096
REDIRECTS_MAX = 4
ANSWER_BYTES_MAX = 16 << 20
HEADERS_MAX = 64


def to_owner(service: BrokerService) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The handler of TopicElsewhere: the same request at the owner, or at whoever is to be it."""

    async def on_topic_elsewhere(request: Request, error: Exception) -> Response:
        assert isinstance(error, TopicElsewhere)
        try:
            found = await service.lookup(TopicName.parse(error.topic))
        except BrokerError as refused:
            return await on_broker_error(request, refused)
        except MetadataError as failed:
            return refusal(500, str(failed))
        return redirect(request, found.address)

    return on_topic_elsewhere


def redirect(request: Request, address: Advertised, *, without: str = "", **parameters: str) -> Response:
    """307 to the same path there, with the parameters given beside its own, but for one that it is to go without. Who came
    over TLS is sent on over TLS, where the other broker has a port for it."""
    plain, over_tls = address.http_url, address.http_url_tls
    http_url = over_tls or plain if request.url.scheme == "https" else plain or over_tls
    url = request.url.include_query_params(**parameters) if parameters else request.url
    url = url.remove_query_params(without) if without else url
    path = request.scope.get("raw_path", b"").decode() or quote(url.path)
    return RedirectResponse(http_url + path + (f"?{url.query}" if url.query else ""), 307)


async def ask(neighbours: Neighbours, address: Advertised, method: str, path: str) -> None:
    """A request without a body to another broker; Refusal(500) when it does not do it, BrokerError when it cannot be asked."""
    url = neighbours.web_url(address) + path
    try:
        async with asyncio.timeout(SECONDS_MAX):
            status = await _status_of(neighbours, url, method)
    except (OSError, TimeoutError, ValueError) as error:
        raise Refusal(500, f"{url} did not answer: {error}") from error
    if status not in (200, 204, 307, 404):  # the last two: not there any more, which is all that is asked for
        raise Refusal(500, _complaint(url, method, status))


async def ask_json(neighbours: Neighbours, address: Advertised, path: str) -> Any:
    """What another broker answers to GET, also from where it sends us on to; None for 404. Refusal(500), BrokerError."""
    url = neighbours.web_url(address) + path
    try:
        async with asyncio.timeout(SECONDS_MAX):
            for _ in range(REDIRECTS_MAX):
                status, headers, body = await _get(neighbours, url)
                if status != 307:
                    break
                url = headers.get("location", "")
        found = json.loads(body) if status == 200 else None
    except (OSError, TimeoutError, ValueError) as error:
        raise Refusal(500, f"{url} did not answer: {error}") from error
    if status not in (200, 404):
        raise Refusal(500, _complaint(url, "GET", status))
    return found


def _complaint(url: str, method: str, status: int) -> str:
    remedy = {
        401: ": brokerClientAuthenticationPlugin and ...Parameters say what this broker shows it",
        403: ": the role that this broker shows it (brokerClientAuthenticationParameters) is not in its superUserRoles",
    }
    return f"{url} answered {method} with {status}{remedy.get(status, '')}"


def _head(neighbours: Neighbours, url: str, method: str) -> bytes:
    where = urlsplit(url)
    target = where.path + (f"?{where.query}" if where.query else "")
    first = f"{method} {target} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: 0\r\nConnection: close\r\n"
    shown = (name + b": " + value + b"\r\n" for name, value in neighbours.credentials().headers())
    return first.encode() + b"".join(shown) + b"\r\n"


async def _get(neighbours: Neighbours, url: str) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await neighbours.open(url, STATUS_LINE_BYTES_MAX)
    try:
        writer.write(_head(neighbours, url, "GET"))
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


async def _status_of(neighbours: Neighbours, url: str, method: str) -> int:
    reader, writer = await neighbours.open(url, STATUS_LINE_BYTES_MAX)
    try:
        writer.write(_head(neighbours, url, method))
        return int((await reader.readline()).split()[1])
    except IndexError as error:
        raise ValueError("no HTTP status") from error
    finally:
        writer.close()
