"""A fuzz of the admin REST: every route of the OpenAPI page with names, parameters and bodies of many moods.

No answer is a failure of ours (5xx, but for features that are not there or not switched on), each refusal says why, and
nothing of it is an error in the log.
"""

import http.client
import json
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from . import odd

SECONDS_MAX = 60.0
NOT_ASKED = ("/admin/v2/brokers/shutdown",)
ABSENT = (501, 503)
"""Statuses of a feature that is not there, or not switched on."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "tenant": ("public", "public", "nobody"),
    "namespace": ("rest", "rest", "default", "nothing"),
    "topic": ("t", "t", "p", "p-partition-0", "new", "n"),
    "domain": ("persistent", "non-persistent"),
    "subscription": ("s", "s", "r"),
    "bundle": ("0x00000000_0x40000000", "0x0_0x1", "all"),
    "cluster": ("standalone", "elsewhere"),
}
_SCALARS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1 << 31,
    1 << 63,
    -(1 << 63),
    1e308,
    0.5,
    "",
    "x",
    "1",
    "AVRO",
    "producer_exception",
)
_METHODS = ("get", "put", "post", "delete")


@dataclass(slots=True)
class AdminReport:
    """`statuses`: how often each was answered."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


class AdminFuzz:
    """Fuzz of one server, one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
        self.report = AdminReport()

    def run(self, seeds: Iterable[int]) -> AdminReport:
        """With each seed all routes, in its order."""
        status, told = self._asked("GET", "/openapi.json", None)
        assert status == 200, told[:300]
        page = json.loads(told)
        routes = [
            (path, how, page["paths"][path][how]) for path in page["paths"] for how in page["paths"][path] if how in _METHODS
        ]
        for seed in seeds:
            rng = Random(seed)
            self._prepare()
            for path, how, route in rng.sample(routes, len(routes)):
                if path not in NOT_ASKED:
                    self._ask(rng, path, how, route, page)
        self._connection.close()
        return self.report

    def _prepare(self) -> None:
        """Something for routes to find."""
        for path, body in (
            ("namespaces/public/rest", None),
            ("persistent/public/rest/t", None),
            ("persistent/public/rest/p/partitions", 2),
        ):
            self._asked("PUT", f"/admin/v2/{path}", None if body is None else json.dumps(body).encode())
        self._asked("PUT", "/admin/v2/persistent/public/rest/t/subscription/s", None)

    def _ask(self, rng: Random, path: str, how: str, route: Any, page: Any) -> None:
        asked = path
        query = {}
        for parameter in route.get("parameters", ()):
            value = _value(rng, parameter)
            if parameter["in"] == "path":
                asked = asked.replace("{" + parameter["name"] + "}", urllib.parse.quote(value, safe=""))
            elif parameter["in"] == "query" and rng.random() < 0.6:
                query[parameter["name"]] = value
        if query:
            asked += "?" + urllib.parse.urlencode(query)
        body = _body(rng, route, page) if how in ("put", "post") or rng.random() < 0.1 else None
        self._judge(how.upper(), asked, body, *self._asked(how.upper(), asked, body))

    def _asked(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError) as failure:
            self._connection.close()
            return 0, repr(failure).encode()

    def _judge(self, method: str, path: str, body: bytes | None, status: int, told: bytes) -> None:
        self.report.requests += 1
        self.report.statuses[status] += 1
        is_failure = status == 0 or (status >= 500 and status not in ABSENT)
        if is_failure or (status >= 400 and not told.strip()):
            self.report.findings.append(f"{method} {path[:300]} {(body or b'')[:200]!r}: {status} {told[:300]!r}")


def _value(rng: Random, parameter: Any) -> str:
    name, kind = parameter["name"], parameter.get("schema", {}).get("type")
    if kind == "integer":
        return str(odd.either(rng, rng.randrange(10), (*odd.LONGS, 1 << 64), 3))
    if kind == "boolean":
        return rng.choice(("true", "false", "", "maybe"))
    usual = rng.choice(NAMES.get(name, ("x",)))
    return (
        odd.either(rng, usual, [text for text in odd.TEXTS if text], 8)
        if parameter["in"] == "path"
        else odd.text(rng, usual, 3)
    )


def _body(rng: Random, route: Any, page: Any) -> bytes | None:
    """A body as the page describes it, mostly with something wrong; or anything."""
    if rng.random() < 0.1:
        return rng.choice((b"", b"{", b"\xff", b"[" * 1000, b"null", b'"' + b"x" * 5000 + b'"'))
    content = list(route.get("requestBody", {}).get("content", {}).values())
    schema = content[0].get("schema", {}) if content else {}
    return json.dumps(_made(rng, schema, page, 0)).encode()


def _made(rng: Random, schema: Any, page: Any, depth: int) -> Any:
    """A value of a schema; one in eight is of another."""
    if depth > 6 or odd.is_odd(rng):
        return rng.choice((*_SCALARS, [], {}, [1], {"a": None}))
    if "$ref" in schema:
        return _made(rng, _found(page, schema["$ref"]), page, depth + 1)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _made(rng, rng.choice(schema[several]), page, depth + 1)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("type") == "array":
        return [_made(rng, schema.get("items", {}), page, depth + 1) for _ in range(rng.randrange(4))]
    return _object(rng, schema, page, depth) if schema.get("type") == "object" else _simple(rng, schema.get("type"))


def _simple(rng: Random, kind: object) -> Any:
    match kind:
        case "integer":
            return odd.either(rng, rng.randrange(100), (*odd.LONGS, *odd.NUMBERS), 3)
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return odd.text(rng, rng.choice(("t", "s", "x", "standalone", "1h")), 4)
    return rng.choice(_SCALARS)


def _object(rng: Random, schema: Any, page: Any, depth: int) -> Any:
    found = {
        name: _made(rng, each, page, depth + 1) for name, each in schema.get("properties", {}).items() if rng.random() < 0.8
    }
    more = schema.get("additionalProperties")
    if isinstance(more, dict) or not found:
        for _ in range(rng.randrange(3)):
            found[odd.text(rng, "k", 3)] = _made(rng, more if isinstance(more, dict) else {}, page, depth + 1)
    return found


def _found(page: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        page = page[part]
    return page
