"""The OpenAPI page: written from the endpoints that the dispatcher has, when it is asked for. Owns no list of its own."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from enum import EnumType
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from .bodies import ErrorData
from .endpoints import ANYBODY, Endpoint, Query, Text

_COMPONENTS = "#/components/schemas/{name}"
_PAGE = """<!doctype html>
<meta charset="utf-8"><title>Interpulse: admin REST</title>
<style>
 body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
 summary { cursor: pointer; padding: .15em 0 } code { font-size: 14px } b { display: inline-block; width: 4.5em }
 pre { background: #8881; padding: .7em; overflow-x: auto } input { font: inherit; width: 100%; padding: .3em }
</style>
<h1>Admin REST</h1>
<p>From <a href="openapi.json">openapi.json</a>, which this broker writes from its routes.</p>
<input id="filter" placeholder="part of a path" autofocus>
<div id="all"></div>
<script>
fetch("openapi.json").then(answer => answer.json()).then(api => {
  const all = document.getElementById("all")
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const [one, head, body] = ["details", "summary", "pre"].map(name => document.createElement(name))
      one.dataset.path = path.toLowerCase()
      const name = document.createElement("b"), code = document.createElement("code")
      name.textContent = method.toUpperCase(); code.textContent = path
      head.append(name, code, " " + operation.summary)
      const { parameters, requestBody, responses } = operation
      body.textContent = JSON.stringify({ needs: operation["x-needs"], parameters, requestBody, responses }, null, 2)
      one.append(head, body); all.append(one)
    }
  document.getElementById("filter").oninput = event => {
    const wanted = event.target.value.toLowerCase()
    for (const one of all.children) one.hidden = !one.dataset.path.includes(wanted)
  }
})
</script>
"""


class OpenApiRoutes:
    """The page and its document, of the endpoints that `all_endpoints` gives."""

    def __init__(self, version: str, all_endpoints: Callable[[], Sequence[Endpoint]]) -> None:
        self._version, self._all = version, all_endpoints
        self._written = b""

    def routes(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/openapi.json", self.document, ANYBODY, answer=dict[str, Any]),
            Endpoint("GET", "/docs", self.page, ANYBODY, answer=Text.HTML),
        ]

    async def document(self, request: Request) -> Response:
        """This document."""
        if not self._written:
            self._written = json.dumps(openapi(self._all(), self._version), separators=(",", ":")).encode()
        return Response(self._written, media_type="application/json")

    async def page(self, request: Request) -> Response:
        """This document for people."""
        return HTMLResponse(_PAGE)


def openapi(endpoints: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    listed = list(endpoints)
    types = [kind for each in listed for kind in (each.body, each.answer) if kind is not None and not isinstance(kind, Text)]
    schemas, components = msgspec.json.schema_components([ErrorData, *types], ref_template=_COMPONENTS)
    known = {id(kind): schema for kind, schema in zip([ErrorData, *types], schemas, strict=True)}
    paths: dict[str, Any] = {}
    for each in listed:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Interpulse: admin REST", "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components},
    }


def _operation(endpoint: Endpoint, known: dict[int, Any]) -> dict[str, Any]:
    access = endpoint.access
    needs = " ".join(part for part in (access.kind.value, access.operation, "WRITE" if access.writes else "") if part)
    found: dict[str, Any] = {
        "summary": endpoint.described,
        "tags": [_tag(endpoint)],
        "x-needs": needs,
        "parameters": [*_in_path(endpoint), *map(_in_query, endpoint.query)],
        "responses": _responses(endpoint, known),
    }
    if endpoint.body is not None:
        schema = {"type": "string"} if isinstance(endpoint.body, Text) else known[id(endpoint.body)]
        content = {"application/json": {"schema": schema}}
        found["requestBody"] = {"required": not endpoint.body_optional, "content": content}
    return found


def _tag(endpoint: Endpoint) -> str:
    """The first word after the version."""
    words = [segment for segment in endpoint.segments if segment not in ("admin", "v2", "v3")]
    return words[0] if words else "broker"


def _in_path(endpoint: Endpoint) -> list[dict[str, Any]]:
    kinds = {int: {"type": "integer", "format": "int64"}, str: {"type": "string", "minLength": 1}}
    return [{"name": name, "in": "path", "required": True, "schema": kinds[kind]} for name, kind in endpoint.parameters.items()]


def _in_query(query: Query) -> dict[str, Any]:
    if isinstance(query.type, EnumType):
        schema: dict[str, Any] = {"type": "string", "enum": list(map(str, query.type))}
    else:
        schema = {"type": {bool: "boolean", int: "integer"}.get(query.type, "string")}
    if query.default is not None:
        schema["default"] = query.default
    described = {"description": query.description} if query.description else {}
    return {"name": query.name, "in": "query", "required": False, "schema": schema} | described


def _responses(endpoint: Endpoint, known: dict[int, Any]) -> dict[str, Any]:
    """Refusals of every kind have one form; 307 sends to the broker that has to do it."""
    refused = {"application/json": {"schema": {"$ref": _COMPONENTS.format(name="ErrorData")}}}
    found: dict[str, Any] = {
        "307": {"description": "Ask the broker in Location."},
        "default": {"description": "Refused, with the reason.", "content": refused},
    }
    nothing = {"204": {"description": "Done; or the value asked for is not set."}}
    if endpoint.answer is None:
        return nothing | found
    if isinstance(endpoint.answer, Text):
        if endpoint.answer is Text.NOTHING:
            return {"200": {"description": "Done."}} | found
        content: Any = {endpoint.answer.value: {}}
        return {"200": {"description": "As it is.", "content": content}} | nothing | found
    content = {"application/json": {"schema": known[id(endpoint.answer)]}}
    return {"200": {"description": "As it is.", "content": content}} | nothing | found
