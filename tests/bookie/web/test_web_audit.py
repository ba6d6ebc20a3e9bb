"""Each HTTP request that may change a bookie has one line in the audit log, done or refused."""

import asyncio
import logging
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bookie.web.app import app_of
from bookie.web.requests import BadRequest


async def done(request: Request) -> Response:
    """Says so."""
    return Response("done")


async def refused(request: Request) -> Response:
    """Cannot be."""
    raise BadRequest("no such ledger")


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("PUT", "/done", ['method=PUT path="/done?a=b" outcome=done status=200']),
        ("DELETE", "/refused", ['method=DELETE path="/refused?a=b" outcome=refused status=400']),
        ("PUT", "/nowhere", ['method=PUT path="/nowhere?a=b" outcome=refused status=404']),
        ("GET", "/done", []),
    ],
)
def test_only_a_request_that_may_change_something_has_an_audit_line(
    method: str, path: str, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of([Route("/done", done, methods=["GET", "PUT"]), Route("/refused", refused, methods=["DELETE"])])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        """Ignores every message."""

    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"a=b"}
    scope |= {"headers": [], "client": ("10.0.0.1", 77), "http_version": "1.1", "scheme": "http", "root_path": ""}
    caplog.set_level(logging.INFO, "audit")
    asyncio.run(app(scope, receive, send))
    lines = [record.getMessage() for record in caplog.records if record.name == "audit"]
    assert [line.partition(" origin=10.0.0.1:77 ")[2].partition(" ms=")[0] for line in lines] == told
