"""Bodies and parameters of a bookie's HTTP: what is not as the path takes it is a BadRequest that says what is."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from bookie.web.requests import BODY_BYTES_MAX, LONG_MAX, BadRequest, body_of, flag, is_true, number_parameter


def request(query: str = "", *chunks: bytes) -> Request:
    waiting = list(chunks) or [b""]

    async def receive() -> dict[str, Any]:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    return Request({"type": "http", "method": "PUT", "path": "/", "headers": [], "query_string": query.encode()}, receive)


def body(*chunks: bytes, **options: bool) -> dict[str, Any]:
    return asyncio.run(body_of(request("", *chunks), **options))


def test_a_body_in_pieces_is_one_object() -> None:
    assert body(b'{"a"', b": 1}") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
    ],
    ids=["nothing", "half", "no text", "deep", "a list", "null"],
)
def test_a_body_that_is_no_object_is_a_bad_request(data: bytes, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        body(data)


def test_no_body_is_an_empty_object_where_none_is_needed() -> None:
    assert body(is_needed=False) == {}


def test_a_body_beyond_the_bound_is_refused_before_it_is_whole() -> None:
    asked = request("", bytes(BODY_BYTES_MAX), b" ", b"never asked for")
    with pytest.raises(BadRequest, match=f"at most {BODY_BYTES_MAX} bytes"):
        asyncio.run(body_of(asked))


@pytest.mark.parametrize("value", [None, "true", 1])
def test_a_flag_is_true_or_false_and_no_other_value(value: object) -> None:
    with pytest.raises(BadRequest, match='"enabled": true'):
        flag({"enabled": value}, "enabled")
    assert flag({"enabled": False}, "enabled") is False


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x", "0x10", str(LONG_MAX + 1), "9" * 5000])
def test_a_number_that_is_none_or_out_of_range_is_a_bad_request(text: str) -> None:
    with pytest.raises(BadRequest, match="expected ledger_id=<a whole number from 0>"):
        number_parameter(request(f"ledger_id={text}"), "ledger_id")


def test_a_number_without_a_default_must_be_there() -> None:
    with pytest.raises(BadRequest):
        number_parameter(request(), "ledger_id")
    assert number_parameter(request(), "page", -1, -1) == -1
    assert number_parameter(request(f"page={LONG_MAX}"), "page") == LONG_MAX


def test_only_the_word_true_is_true() -> None:
    assert [is_true(request(query), "x") for query in ("x=true", "x=True", "x=1", "x", "")] == [
        True,
        False,
        False,
        False,
        False,
    ]
