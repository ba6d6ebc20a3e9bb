"""The OpenAPI page is the routes themselves: each is on it, with its parameters, body and answers."""

import re
from typing import Any

from broker.admin.rest.dispatch import Dispatcher
from broker.security.authorization.needs import Kind
from tests.broker.admin.admin_world import AdminWorld, play

_NEEDED = {
    Kind.TENANT_ADMIN: {"tenant"},
    Kind.NAMESPACE: {"tenant", "namespace"},
    Kind.NAMESPACE_POLICY: {"tenant", "namespace"},
    Kind.TOPIC: {"tenant", "namespace", "topic"},
    Kind.TOPIC_POLICY: {"tenant", "namespace", "topic"},
    Kind.CLUSTER_POLICY: {"cluster"},
}


def dispatcher(world: AdminWorld) -> Dispatcher:
    (found,) = world.app.routes
    assert isinstance(found, Dispatcher)
    return found


def test_every_route_is_on_the_page_and_nothing_else_is() -> None:
    async def scenario(world: AdminWorld) -> None:
        document = (await world.get("/openapi.json")).json
        there = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
        routes = {(each.method, re.sub(r":\w+\}", "}", each.path)) for each in dispatcher(world).endpoints}
        assert there == routes
        assert len(routes) > 150
        page = await world.get("/docs")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")

    play(scenario)


def test_an_operation_says_what_it_takes_what_it_answers_and_what_it_needs() -> None:
    async def scenario(world: AdminWorld) -> None:
        paths = (await world.get("/openapi.json")).json["paths"]
        setting: Any = paths["/admin/v2/namespaces/{tenant}/{namespace}/retention"]["post"]
        assert [each["name"] for each in setting["parameters"]] == ["tenant", "namespace"]
        assert setting["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/RetentionPolicies")
        assert setting["x-needs"] == "namespace policy RETENTION WRITE"
        deletion = paths["/admin/v2/tenants/{tenant}"]["delete"]
        assert deletion["parameters"][1]["schema"] == {"type": "boolean", "default": False}
        assert set(deletion["responses"]) == {"204", "307", "default"}

    play(scenario)


def test_a_route_has_the_names_in_its_path_that_its_permission_is_asked_for() -> None:
    async def scenario(world: AdminWorld) -> None:
        for endpoint in dispatcher(world).endpoints:
            missing = _NEEDED.get(endpoint.access.kind, set()) - set(endpoint.parameters)
            assert not missing, f"{endpoint.method} {endpoint.path}"

    play(scenario)


def test_every_route_says_in_a_line_what_it_does() -> None:
    async def scenario(world: AdminWorld) -> None:
        silent = [
            f"{each.method} {each.path}" for each in dispatcher(world).endpoints if each.described.startswith(each.method)
        ]
        assert silent == []

    play(scenario)
