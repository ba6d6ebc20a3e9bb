"""Requests: body and parameters, checked. BadRequest names the fault and the expected value."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

BODY_BYTES_MAX = 64 * 1024
LONG_MAX = (1 << 63) - 1


class BadRequest(Exception):
    """The path does not take such a request; the message says which ones it takes."""


async def on_bad_request(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=400)


async def body_of(request: Request, *, is_needed: bool = True) -> dict[str, Any]:
    """A JSON object; empty when there is none and none is needed."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise BadRequest(f"a body has at most {BODY_BYTES_MAX} bytes")
    if not data and not is_needed:
        return {}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body


def flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    if not isinstance(value, bool):
        raise BadRequest(f'expected {{"{name}": true}} or {{"{name}": false}}')
    return value


def number_parameter(request: Request, name: str, default: int | None = None, smallest: int = 0) -> int:
    """Number from the URL; without a default it must be there."""
    text = request.query_params.get(name)
    if text is None and default is not None:
        return default
    try:
        value = int(text or "")
    except ValueError:
        value = smallest - 1
    if not smallest <= value <= LONG_MAX:
        raise BadRequest(f"{name}={text}: expected {name}=<a whole number from {smallest}>")
    return value


def is_true(request: Request, name: str) -> bool:
    return request.query_params.get(name) == "true"
