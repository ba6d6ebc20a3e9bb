"""Finds the endpoint of a request, checks the caller, reads parameters and body as declared, and calls the handler.

The path is matched as it was sent, segment by segment, so that a name with an encoded slash stays one name. Literal segments go
before parameters, as in JAX-RS. Owns the tree of segments, which never changes.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import EnumType
from typing import Any, NoReturn
from urllib.parse import quote, unquote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import Receive, Scope, Send

from .answers import BadRequest, read_bytes
from .endpoints import Endpoint, Query, Text

Authorize = Callable[[Request, Endpoint], Awaitable[None]]
"""Raises Refusal (401, 403) when `endpoint.access` is not granted. Called before anything of the request is looked at."""


async def allow_all(request: Request, endpoint: Endpoint) -> None:
    """Allows every request, on a broker without authentication."""


@dataclass(slots=True)
class _Node:
    literals: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    methods: dict[str, Endpoint] = field(default_factory=dict)
    tails: dict[str, Endpoint] = field(default_factory=dict)


class Dispatcher(BaseRoute):
    """All endpoints of one server, for Starlette one route that matches everything."""

    def __init__(self, routes: Iterable[Endpoint | BaseRoute], authorize: Authorize = allow_all) -> None:
        self.endpoints = tuple(each for route in routes for each in _endpoints(route))
        self._authorize = authorize
        self._root = _Node()
        for endpoint in self.endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        node, segments = self._root, endpoint.segments
        for segment in segments:
            if segment.endswith(":path}"):
                assert segment == segments[-1], f"{endpoint.path}: a tail is the last"
                _put(node.tails, endpoint)
                return
            if not segment.startswith("{"):
                node = node.literals.setdefault(segment, _Node())
                continue
            if node.parameter is None:
                node.parameter = _Node()
            node = node.parameter
        _put(node.methods, endpoint)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HTTPException 404 and 405, Refusal, and any error of the handler."""
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        parts = [part for part in raw.decode("latin-1").partition("?")[0].split("/") if part]
        found = self.find(scope["method"], parts)
        if found is None:
            self._refuse(parts)
        endpoint, values = found
        scope["path_params"] = _path_values(endpoint, values)
        request = Request(scope, receive, send)
        await self._authorize(request, endpoint)
        request.state.query = _parameters(request, endpoint.query)
        if endpoint.body is not None:
            request.state.body = _body(await read_bytes(request), endpoint)
        response = await endpoint.handler(request)
        await response(scope, receive, send)

    def find(self, method: str, parts: list[str]) -> tuple[Endpoint, list[str]] | None:
        """Finds the route and its encoded parameters. HEAD is answered as GET is."""
        wanted = "GET" if method == "HEAD" else method
        return _find(self._root, lambda methods: methods.get(wanted), parts, 0)

    def _refuse(self, parts: list[str]) -> NoReturn:
        allowed: dict[str, None] = {}

        def collect(methods: Mapping[str, Endpoint]) -> Endpoint | None:
            allowed.update(dict.fromkeys(methods))
            return None

        _find(self._root, collect, parts, 0)
        if not allowed:
            raise HTTPException(404)
        raise HTTPException(405, headers={"Allow": ", ".join(allowed)})


def _put(methods: dict[str, Endpoint], endpoint: Endpoint) -> None:
    """A path with a slash at its end is the path without."""
    before = methods.setdefault(endpoint.method, endpoint)
    assert before.handler == endpoint.handler, f"{endpoint.method} {endpoint.path} and {before.path} are one"


def _find(
    node: _Node, pick: Callable[[Mapping[str, Endpoint]], Endpoint | None], parts: list[str], at: int
) -> tuple[Endpoint, list[str]] | None:
    if at == len(parts):
        found = pick(node.methods)
        return None if found is None else (found, [])
    below = node.literals.get(parts[at])
    if below is not None and (deeper := _find(below, pick, parts, at + 1)):
        return deeper
    if node.parameter is not None and (deeper := _find(node.parameter, pick, parts, at + 1)):
        return deeper[0], [parts[at], *deeper[1]]
    tail = pick(node.tails)
    return None if tail is None else (tail, ["/".join(parts[at:])])


def _path_values(endpoint: Endpoint, values: list[str]) -> dict[str, Any]:
    """Returns the values of the path. A path whose number is no number does not exist, as in JAX-RS."""
    try:
        parameters = zip(endpoint.parameters.items(), values, strict=True)
        return {name: kind(unquote(text, errors="strict")) for (name, kind), text in parameters}
    except UnicodeDecodeError:
        raise BadRequest(f"the path is not UTF-8: {'/'.join(values)[:100]}") from None
    except ValueError:
        raise HTTPException(404) from None


def _parameters(request: Request, declared: tuple[Query, ...]) -> dict[str, Any]:
    given = request.query_params
    return {each.name: _value(each, given[each.name]) if each.name in given else each.default for each in declared}


def _value(query: Query, text: str) -> Any:
    """Returns the value as Java reads it: any text but `true` is false. An empty text stands for nothing. BadRequest."""
    if query.type is bool:
        return text.lower() == "true"
    if not text:
        return query.default
    try:
        return query.type(text)
    except ValueError:
        kind = ", ".join(query.type) if isinstance(query.type, EnumType) else "a whole number"
        raise BadRequest(f"{query.name}: expected {kind}, not {text[:100]}") from None


def _text(content: bytes) -> str:
    """Returns the text itself, or the one in a JSON string: Apache's Java client sends the one, its Go client the other.
    BadRequest."""
    try:
        text = content.decode()
        return str(msgspec.json.decode(content, type=str)) if text.startswith('"') else text
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def _body(content: bytes, endpoint: Endpoint) -> Any:
    if endpoint.body is Text.TEXT:
        return _text(content)
    if not content.strip():
        if endpoint.body_optional:
            return None
        raise BadRequest("a body in JSON is missing")
    try:
        return msgspec.json.decode(content, type=endpoint.body, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def _endpoints(route: Endpoint | BaseRoute) -> list[Endpoint]:
    """Routes declared for Starlette alone are included: their callers have to be super-users. A name with slashes is one
    segment here.
    """
    if isinstance(route, Endpoint):
        return [route]
    assert isinstance(route, Route)
    path = route.path.replace("{subscription:path}", "{subscription}")
    return [Endpoint(method, path, route.endpoint) for method in sorted((route.methods or set()) - {"HEAD"})]
