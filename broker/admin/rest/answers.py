"""Answers of the admin REST: JSON bodies as Apache writes them, and the one place where refusals get their HTTP status.

Statuses and reasons were read off an Apache Pulsar 4.0.8.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from metadata.store import BadPath
from ports.logs import line
from ports.loop.slices import in_slices
from ports.loop.taking_apart import taken_apart

from ...errors import BrokerError, ServerError
from ...service.dynamic_configuration import BadDynamicValue, NotDynamic
from ...service.errors import (
    BadPartitionCount,
    BundleNotFound,
    BundleUnsettled,
    NamespaceNotFound,
    NoSuchBroker,
    NoSuchListener,
    PartitionsChanged,
    TooManyTopics,
    TopicConflict,
)
from .json_texts import ENCODER, is_large, json_texts

log = logging.getLogger(__name__)

BODY_BYTES_MAX = 1 << 20
_PIECE_LETTERS = 1 << 16
"""Letters of a large answer that are sent in one turn of the loop: a millisecond, mostly of the HTTP protocol."""

_STATUS_BY_CODE = {
    ServerError.TOPIC_NOT_FOUND: 404,
    ServerError.SUBSCRIPTION_NOT_FOUND: 404,
    ServerError.INVALID_TOPIC_NAME: 412,
    ServerError.PRODUCER_BUSY: 412,
    ServerError.CONSUMER_BUSY: 412,
    ServerError.NOT_ALLOWED: 405,
    ServerError.TRANSACTION_CONFLICT: 409,
    ServerError.SERVICE_NOT_READY: 503,
    ServerError.TOO_MANY_REQUESTS: 429,
}


class Refusal(Exception):
    """A request that is answered with this status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class BadRequest(Refusal):
    """A body or parameter that cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, reason)


def json_answer(value: Any, status: int = 200) -> Response:
    if is_large(value):
        return _LargeAnswer(value, status)
    return Response(ENCODER.encode(value), status, media_type="application/json")


class _LargeAnswer(Response):
    """A body that is written in slices and sent in pieces: JSON of 30,000 subscriptions is 50 MB and takes half a second."""

    def __init__(self, value: Any, status: int) -> None:
        super().__init__(status_code=status, media_type="application/json")
        self._texts = json_texts(value, ENCODER.encode)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces = await _pieces(self._texts)
        self.headers["content-length"] = str(sum(map(len, pieces)))
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in in_slices(taken_apart(pieces), 1):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pieces(texts: Iterator[str]) -> list[bytes]:
    """The bytes of the texts, some texts in each."""
    pieces, waiting, size = list[bytes](), list[str](), 0
    async for text in in_slices(texts):
        waiting.append(text)
        size += len(text)
        if size >= _PIECE_LETTERS:
            pieces.append("".join(waiting).encode())
            waiting, size = [], 0
    return [*pieces, "".join(waiting).encode()]


def no_content() -> Response:
    return Response(status_code=204)


def nothing() -> Response:
    """200 without a body, which Apache answers where a method returns no value but its Response."""
    return Response()


def refusal(status: int, reason: str) -> Response:
    """Apache's ErrorData."""
    return json_answer({"reason": reason}, status)


def text_answer(text: str) -> Response:
    """Bare text, under the content type that Apache gives it when the client asks for nothing in particular."""
    return Response(text, media_type="application/json")


async def on_broker_error(request: Request, error: Exception) -> Response:
    """A missing namespace and a missing topic have other reasons where the path names a topic (`names.topic_of`)."""
    assert isinstance(error, BrokerError)
    topic = getattr(request.state, "topic", None)
    match error:
        case NamespaceNotFound():
            return refusal(404, "Namespace not found" if topic else "Namespace does not exist")
        case TopicConflict():
            return refusal(409, "This topic already exists")
        case BundleNotFound() | TooManyTopics() | NotDynamic() | BadDynamicValue() | NoSuchListener():
            return refusal(412, error.message)
        case BundleUnsettled():
            return refusal(503, error.message)
        case PartitionsChanged():
            return refusal(409, error.message)
        case NoSuchBroker():
            return refusal(404, error.message)
        case BadPartitionCount():
            return refusal(406 if request.method == "PUT" else 422, error.message)
    if error.code is ServerError.TOPIC_NOT_FOUND and topic:
        return refusal(404, f"Topic {topic} not found")
    status = _STATUS_BY_CODE.get(error.code, 500)
    if status == 500:
        log.error(line("a request failed", reason=error.message, method=request.method, path=request.url.path))
    return refusal(status, error.message)


async def on_metadata_error(request: Request, error: Exception) -> Response:
    """Answers for metadata that failed or that holds an unreadable value. A name that makes no path is the client's fault."""
    if isinstance(error, BadPath):
        return refusal(412, f"a name that cannot be: {error}")
    log.error(line("a request failed", reason=error, method=request.method, path=request.url.path))
    return refusal(500, str(error))


async def on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refusal(error.status, error.reason)


async def on_http_error(request: Request, error: Exception) -> Response:
    """No such route (404) or method (405). Apache answers a page in HTML; this is its form for all other refusals."""
    assert isinstance(error, HTTPException)
    answer = refusal(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def read_bytes(request: Request) -> bytes:
    """The body, at most BODY_BYTES_MAX. BadRequest."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise BadRequest(f"the body is larger than {BODY_BYTES_MAX} bytes")
    return body


async def read_json(request: Request) -> Any:
    """The body, at most BODY_BYTES_MAX, None when it is empty. BadRequest."""
    return parsed_json(await read_bytes(request))


def parsed_json(body: bytes) -> Any:
    """None when it is empty. BadRequest."""
    if not body.strip():
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


def whole_number(value: Any) -> int | None:
    """Return a number as Jackson reads it: text holds one too, no text is 0, 3.0 is 3. None: it is no whole number."""
    if isinstance(value, str):
        value = value.strip() or 0
    if isinstance(value, bool):
        return None
    try:
        return msgspec.convert(value, int, strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError):  # half a surrogate is no text for msgspec
        return None


def flag(request: Request, name: str, default: bool = False) -> bool:
    text = request.query_params.get(name)
    return default if text is None else text.lower() == "true"
