"""Malformed requests to the admin REST (reliability 4.2, items 11 and 12): refused with a reason, never a 500."""

import asyncio
import json
import logging
import socket
from typing import Any

import pytest

from broker.admin.app import serve_admin
from broker.admin.rest.answers import BODY_BYTES_MAX
from broker.admin.rest.dispatch import Dispatcher
from broker.admin.rest.endpoints import Endpoint
from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, Answer, play
from tests.broker.security.matrix.roles import filled

DEEP = 100_000
BODIES: dict[str, bytes] = {
    "nested lists": b"[" * DEEP + b"]" * DEEP,
    "nested objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "too large": b'"' + b"x" * (10 << 20) + b'"',
    "not a number": b"NaN",
    "an infinity": b'{"a":Infinity}',
    "a number beyond any": b"1" + b"0" * 5000,
    "below int": b"-99999999999999999999",
    "the same key twice": b'{"a":1,"a":"x","a":[]}',
    "not utf-8": b'"\xff\xfe"',
    "half a surrogate": b'"\\ud800"',
    "a zero byte": b'"\\u0000"',
    "cut off": b'{"a"',
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "text": b'"x"',
    "an object": b"{}",
    "true": b"true",
}
NAMES = (
    "..",
    "%2e%2e",
    "%2F",
    "a%2Fb",
    "%00",
    "%0d%0aX-Injected:%201",
    "%ff",
    "%F0%9F%92%A9",
    "x" * 20_000,
    "%20",
    "a%25",
    "*",
    "__proto__",
)


def endpoints(world: AdminWorld) -> tuple[Endpoint, ...]:
    """But for those about brokers, of which there are none beside this one to ask."""
    (found,) = world.app.routes
    assert isinstance(found, Dispatcher)
    return tuple(each for each in found.endpoints if "brokers/" not in each.path)


def is_fine(answer: Answer) -> bool:
    """501 and 503 are of features that are not there, or not switched on."""
    return answer.status < 500 or answer.status == 501 or (answer.status == 503 and b"is not configured" in answer.body)


@pytest.mark.parametrize("kind", BODIES)
def test_no_route_falls_over_a_body(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        for endpoint in endpoints(world):
            if endpoint.method not in ("PUT", "POST"):
                continue
            path = filled(endpoint.path).replace("acme/ns", "public/default")
            answer = await world.call(endpoint.method, path, raw=BODIES[kind])
            assert is_fine(answer), (endpoint.method, path, answer.body[:300])

    caplog.set_level(logging.ERROR)
    play(scenario)
    assert [record.getMessage()[:300] for record in caplog.records] == []


@pytest.mark.parametrize("name", NAMES, ids=lambda name: str(name)[:20])
def test_no_route_falls_over_a_name(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        for endpoint in endpoints(world):
            if not endpoint.parameters or endpoint.method == "POST":
                continue
            path = endpoint.path
            for parameter, kind in endpoint.parameters.items():
                value = "1" if kind is int else name
                path = (
                    path.replace(f"{{{parameter}}}", value)
                    .replace(f"{{{parameter}:int}}", value)
                    .replace(f"{{{parameter}:path}}", value)
                )
            answer = await world.call(endpoint.method, path)
            assert is_fine(answer), (endpoint.method, path[:300], answer.body[:300])
            assert "X-Injected" not in answer.headers

    caplog.set_level(logging.ERROR)
    play(scenario)
    assert [record.getMessage()[:300] for record in caplog.records] == []


def test_a_body_is_not_read_beyond_its_bound() -> None:
    async def scenario(world: AdminWorld) -> None:
        status, reason = (await world.call("PUT", f"{TOPICS}/t/properties", raw=BODIES["too large"])).refused
        assert status == 400
        assert str(BODY_BYTES_MAX) in reason

    play(scenario)


def test_values_that_are_negative_or_beyond_their_type_are_refused() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        for path, body in (
            ("t/maxProducers", -1),
            ("t/maxConsumers", 1 << 31),
            ("t/retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": 1}),
            ("t/retention", {"retentionTimeInMinutes": 1 << 31, "retentionSizeInMB": 1}),
            ("t/maxMessageSize", -1),
            ("t/persistence", {"bookkeeperEnsemble": -1, "bookkeeperWriteQuorum": -1, "bookkeeperAckQuorum": -1}),
        ):
            answer = await world.topic("POST", path, body)
            assert 400 <= answer.status < 500, (path, body, answer)

    play(scenario)


def test_a_topic_with_the_name_of_a_partition_is_made_only_where_there_is_one() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        assert [(await world.topic("PUT", f"{name}-partition-7")).status for name in ("p", "q")] == [412, 412]
        await world.done("PUT", "p-partition-x")

    play(scenario)


@pytest.mark.parametrize("depth", [500, 900, 1000, 5000])
def test_no_schema_is_nested_too_deep_for_us(depth: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        deep = "[" * depth + "]" * depth
        whole = f'{{"key":{deep},"value":{deep}}}'
        for kind, text in (("AVRO", deep), ("JSON", deep), ("KEY_VALUE", whole), ("PROTOBUF", deep), ("PROTOBUF_NATIVE", deep)):
            body = {"type": kind, "schema": text, "properties": {}}
            answer = await world.call("POST", "/admin/v2/schemas/public/default/t/schema", body)
            assert answer.status < 500, (kind, answer)

    play(scenario)


def served(request: bytes) -> bytes:
    """Returns the bytes that a server answers until it closes or goes silent."""

    async def ask() -> bytes:
        world = AdminWorld()
        server = await serve_admin(world.app, socket.create_server(("127.0.0.1", 0)))
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        answer = b""
        try:
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(20):
                while part := await reader.read(1 << 16):
                    answer += part
                return answer
        except ConnectionResetError:
            return answer
        finally:
            writer.close()
            server.close()
            await world.service.close()

    return asyncio.run(ask())


READY = b"GET /admin/v2/brokers/ready HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + READY + b"\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + READY + b"\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + READY + b"\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nabcde" + READY + b"\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n" + READY + b"\r\n",
        b"GET /x HTTP/1.1\r\n Host: x\r\n\r\n" + READY + b"\r\n",
        b"GET /x HTTP/1.1\r\nHost: x\r\nA: " + b"b" * (1 << 20) + b"\r\n\r\n",
        b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"".join([b"GET /x HTTP/1.1\r\nHost: x\r\n", *(b"h%d: v\r\n" % n for n in range(100_000)), b"\r\n"]),
        b"\x16\x03\x01\x02\x00\x01",
    ],
    ids=["two lengths", "two codings", "space", "plus", "minus", "folded", "long header", "long path", "many headers", "tls"],
)
def test_a_request_that_can_be_read_in_two_ways_or_is_too_large_is_refused_and_nothing_behind_it_is_read(
    request_: bytes,
) -> None:
    answer = served(request_)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431")) or (not answer and len(request_) > 1 << 19), "or just reset"
    assert answer.count(b"HTTP/1.1 ") <= 1


def test_a_chunked_body_with_a_length_beside_it_hides_no_second_request() -> None:
    """Transfer-Encoding goes before Content-Length (RFC 9112, 6.3): what is behind the last chunk is the next request."""
    answer = served(
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + READY + b"\r\n"
    )
    assert answer.count(b"HTTP/1.1 ") <= 2


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PATCH", "FOO"])
def test_a_method_that_is_not_served_is_405_and_the_next_request_is_answered(method: str) -> None:
    answer = served(method.encode() + b" /admin/v2/brokers/ready HTTP/1.1\r\nHost: x\r\n\r\n" + READY + b"\r\n")
    first, second = answer.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"405") or (method == "HEAD" and first.startswith(b"200"))
    assert second.startswith(b"200")


def test_line_ends_in_properties_make_no_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t", {"a": "b"})
        body: Any = {"x\r\nwhat=forged": "y\r\nwhat=forged"}
        await world.done("PUT", "t/properties", body)
        assert (await world.topic("GET", "t/properties")).json["x\r\nwhat=forged"] == json.loads(json.dumps(body))[
            "x\r\nwhat=forged"
        ]

    caplog.set_level(logging.DEBUG)
    play(scenario)
    assert not any("\nwhat=forged" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, -(1 << 63) - 1])
def test_a_compaction_threshold_beyond_64_bits_is_refused_before_it_is_stored(number: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.loaded(f"{NAME}/t")
        assert (await world.topic("POST", "t/compactionThreshold", number)).status == 400
        assert (await world.topic("GET", "t/compactionThreshold")).status == 204

    play(scenario)


def test_a_schema_compatibility_strategy_is_one_of_apaches() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.loaded(f"{NAME}/t")
        refused = await world.topic("PUT", "t/schemaCompatibilityStrategy", "SOMETIMES")
        assert refused.status == 400
        await world.done("PUT", "t/schemaCompatibilityStrategy", "BACKWARD")
        assert (await world.topic("GET", "t/schemaCompatibilityStrategy")).json == "BACKWARD"

    play(scenario)
