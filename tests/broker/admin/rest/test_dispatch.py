"""Requests find their endpoint: by the path as it was sent, literal segments first; parameters and bodies as declared."""

import asyncio
import json
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from broker.admin.rest.answers import Refusal, json_answer, on_http_error, on_refusal
from broker.admin.rest.dispatch import Dispatcher
from broker.admin.rest.endpoints import AUTHENTICATED, Endpoint, Query, Text


def answering(name: str) -> Any:
    async def handler(request: Request) -> Response:
        state = request.state
        return json_answer([name, request.path_params, state.query, getattr(state, "body", None)])

    return handler


ENDPOINTS = [
    Endpoint("GET", "/ns/{tenant}/{namespace}", answering("policies")),
    Endpoint("GET", "/ns/{tenant}/all", answering("all")),
    Endpoint("DELETE", "/ns/{tenant}/all", answering("none"), query=(Query("force", bool, False), Query("index", int))),
    Endpoint("POST", "/ns/{tenant}/{namespace}", answering("numbers"), body=dict[str, int]),
    Endpoint("PUT", "/ns/{tenant}/{namespace}", answering("perhaps"), body=int, body_optional=True),
    Endpoint("POST", "/text", answering("text"), body=Text.TEXT),
    Endpoint("GET", "/lookup/{topic:path}", answering("tail")),
    Endpoint("GET", "/secret", answering("secret"), AUTHENTICATED),
]


async def authorize(request: Request, endpoint: Endpoint) -> None:
    if endpoint.access == AUTHENTICATED:
        raise Refusal(401, "Who are you?")


def call(method: str, path: str, body: bytes = b"") -> tuple[int, Any, dict[str, str]]:
    app = Starlette(
        routes=[Dispatcher(ENDPOINTS, authorize)], exception_handlers={Refusal: on_refusal, HTTPException: on_http_error}
    )
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": unquote(path), "raw_path": path.encode(), "headers": []}
    scope |= {"query_string": query.encode(), "http_version": "1.1", "scheme": "http", "root_path": ""}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], json.loads(sent[1]["body"]), headers


def test_a_name_with_an_encoded_slash_is_one_name_and_a_slash_at_the_end_is_none() -> None:
    assert call("GET", "/ns/a%2Fb/c%25d/")[1][:2] == ["policies", {"tenant": "a/b", "namespace": "c%d"}]


def test_a_literal_segment_goes_before_a_parameter_unless_it_has_not_the_method() -> None:
    assert call("GET", "/ns/a/all")[1][0] == "all"
    assert call("PUT", "/ns/a/all")[1][0] == "perhaps"


def test_a_tail_takes_all_that_is_left() -> None:
    assert call("GET", "/lookup/x/y%2Fz")[1][:2] == ["tail", {"topic": "x/y/z"}]


def test_an_unknown_path_is_404_and_an_unknown_method_405_with_those_that_are_known() -> None:
    assert call("GET", "/nowhere")[:2] == (404, {"reason": "Not Found"})
    status, body, headers = call("PATCH", "/ns/a/all")
    assert (status, body) == (405, {"reason": "Method Not Allowed"})
    assert set(headers["allow"].split(", ")) == {"GET", "DELETE", "POST", "PUT"}


def test_parameters_are_read_as_declared_and_what_is_not_declared_is_not_seen() -> None:
    assert call("DELETE", "/ns/a/all?force=TRUE&index=7&other=1")[1][2] == {"force": True, "index": 7}
    assert call("DELETE", "/ns/a/all?index=")[1][2] == {"force": False, "index": None}
    assert call("DELETE", "/ns/a/all?index=x")[:2] == (400, {"reason": "index: expected a whole number, not x"})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "a body in JSON is missing"),
        (b'{"a":"b"}', "the body cannot be read: Expected `int`, got `str` - at `$[...]`"),
        (b"[]", "the body cannot be read: Expected `object`, got `array`"),
        (b'{"a":', "the body cannot be read: Input data was truncated"),
    ],
)
def test_a_body_that_does_not_fit_is_told_by_its_member(body: bytes, reason: str) -> None:
    assert call("POST", "/ns/a/b", body)[:2] == (400, {"reason": reason})


def test_a_body_is_read_as_declared_also_where_java_would_have_read_a_number_from_text() -> None:
    assert call("POST", "/ns/a/b", b'{"a":"5"}')[1][3] == {"a": 5}
    assert call("PUT", "/ns/a/b", b" ")[1][3] is None


def test_text_is_read_bare_as_java_sends_it_and_quoted_as_go_does() -> None:
    assert call("POST", "/text", b"apart")[1][3] == "apart"
    assert call("POST", "/text", b'"apart"')[1][3] == "apart"
    assert call("POST", "/text", b'"apart')[0] == 400


def test_an_unauthenticated_request_is_refused_with_401() -> None:
    assert call("GET", "/secret")[:2] == (401, {"reason": "Who are you?"})


def test_a_path_that_is_not_utf_8_is_refused() -> None:
    assert call("GET", "/ns/%ff/b")[0] == 400
