"""Each request that may change something has one line in the audit log, done or refused; generated from the routes."""

import logging
import re
from typing import Any

import pytest
from starlette.requests import Request

from broker.admin.app import admin_app
from broker.admin.rest.answers import Refusal
from broker.admin.rest.endpoints import Endpoint
from broker.security.authorization.callers import Caller
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.rest.test_bad_input import endpoints
from tests.ports.test_audit import lines

WHY = "not for the likes of chief"


def filled(endpoint: Endpoint) -> str:
    """With something in its braces."""
    return re.sub(r"\{(\w+)(?::(int|path))?\}", lambda found: "1" if found[2] == "int" else found[1], endpoint.path)


def known(status: int) -> Any:
    """Somebody by a proxy, who may everything (0), or nothing."""

    async def authorize(request: Request, endpoint: Endpoint) -> None:
        request.state.caller = Caller("gate", "chief")
        if status:
            raise Refusal(status, WHY)

    return authorize


@pytest.mark.parametrize("status", [0, 401, 403])
def test_every_route_that_may_change_something_has_one_line_done_or_refused(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: AdminWorld) -> None:
        world.app = admin_app(world.service, world.store, "9.8.7", known(status))
        asked = [each for each in endpoints(world) if each.method not in ("GET", "HEAD")]
        assert len(asked) >= 200
        for endpoint in asked:
            caplog.clear()
            path = filled(endpoint)
            answer = await world.call(endpoint.method, path, raw=b"{}")
            (told,) = lines(caplog)
            assert told.startswith(
                f'what="admin request" who="chief by gate" origin=unknown method={endpoint.method} path={path} '
            )
            assert f" status={answer.status} " in told
            if status:
                assert f"outcome=refused status={status}" in told
                assert told.endswith(f'reason="{WHY}"')

    caplog.set_level(logging.INFO, "audit")
    play(scenario)


def test_a_route_that_only_tells_has_none(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        for endpoint in endpoints(world):
            if endpoint.method == "GET":
                await world.get(filled(endpoint))
        assert lines(caplog) == []

    caplog.set_level(logging.INFO, "audit")
    play(scenario)
