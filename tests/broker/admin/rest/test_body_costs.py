"""The body of each admin request costs time linear in its bytes.

The rows come from the declared routes: each list, object and text that the body of a route may have, once with n elements and
once with 8 n; a route whose handler reads its body by itself gets a list and an object. So a new route has its rows.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec.inspect as msgspec_types
import pytest

from broker.admin.rest.endpoints import Endpoint, Text
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.rest.test_bad_input import endpoints
from tests.broker.admin.route_world import _VALUES
from tests.cost import Counter

BOUND = 9.0
N = 150


def _path(endpoint: Endpoint) -> str:
    def value(found: "re.Match[str]") -> str:
        return "1" if found[2] == "int" else _VALUES.get(found[1], found[1])

    return re.sub(r"\{(\w+)(?::(int|path))?\}", value, endpoint.path)


def _of_type(kind: Any, n: int) -> Iterator[tuple[str, Any]]:
    """Yields long values of the type, each with its place."""
    match kind:
        case msgspec_types.StructType(fields=fields):
            for member in fields:
                for where, value in _of_type(member.type, n):
                    yield f"{member.encode_name}.{where}", {member.encode_name: value}
        case msgspec_types.UnionType(types=types):
            for each in types:
                yield from _of_type(each, n)
        case msgspec_types.ListType(item_type=item) | msgspec_types.SetType(item_type=item):
            yield "list", [_one_of(item, number) for number in range(n)]
        case msgspec_types.DictType(value_type=value):
            yield "object", {f"name{number}": _one_of(value, number) for number in range(n)}
        case msgspec_types.StrType():
            yield "text", "x" * (40 * n)


def _one_of(kind: Any, number: int) -> Any:
    match kind:
        case msgspec_types.StrType() | msgspec_types.AnyType():
            return f"name{number}"
        case msgspec_types.LiteralType(values=values):
            return values[number % len(values)]
        case msgspec_types.IntType() | msgspec_types.FloatType():
            return number
        case msgspec_types.BoolType():
            return True
        case msgspec_types.ListType(item_type=item) | msgspec_types.SetType(item_type=item):
            return [_one_of(item, number)]
        case msgspec_types.UnionType(types=types):
            return _one_of(types[0], number)
        case msgspec_types.EnumType(cls=cls):
            return next(iter(cls)).value
    return {}


def _bodies(endpoint: Endpoint, n: int) -> Mapping[str, bytes]:
    """Bodies by their long part."""
    found: dict[str, Any] = {"list": [f"name{each}" for each in range(n)], "object": {f"name{each}": "x" for each in range(n)}}
    if endpoint.body is Text.TEXT:
        return {"text": b"x" * (40 * n)}
    if endpoint.body is not None:
        found = dict(_of_type(msgspec_types.type_info(endpoint.body), n))
    return {where: json.dumps(value).encode() for where, value in found.items()}


def _cost(endpoint: Endpoint, body: bytes) -> int:
    found = [0]

    async def scenario(world: AdminWorld) -> None:
        await world.topic("PUT", "t")
        with Counter() as counter:
            await world.call(endpoint.method, _path(endpoint), raw=body)
        found[0] = counter.steps

    play(scenario)
    return found[0]


def _rows() -> list[Any]:
    found: list[Endpoint] = []

    async def scenario(world: AdminWorld) -> None:
        found.extend(each for each in endpoints(world) if each.method in ("POST", "PUT") and "non-persistent" not in each.path)

    play(scenario)
    return [
        pytest.param(each, where, id=f"{each.method} {each.path} {where}")
        for each in found
        for where in _bodies(each, 1)
        if each.body is not None or where == "list"
    ]


@pytest.mark.parametrize(("endpoint", "where"), _rows())
def test_a_body_costs_time_linear_in_its_bytes(endpoint: Endpoint, where: str) -> None:
    small, large = (_cost(endpoint, _bodies(endpoint, n)[where]) for n in (N, 8 * N))
    assert large <= BOUND * small, f"{large / small:.1f} times: {small} steps for {N}, {large} for {8 * N}"
