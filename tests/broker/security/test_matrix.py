"""Roles by routes and commands: what we decide beside what Apache Pulsar 4.0.8 decided (`matrix/apache-*.txt`), by letter."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from broker.admin.rest.answers import Refusal
from broker.admin.rest.authorize import authorizer
from broker.admin.rest.dispatch import Dispatcher
from broker.admin.rest.endpoints import Endpoint
from broker.connection.session import _FROM_BROKERS
from broker.security.security import Security
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.admin.admin_world import AdminWorld
from tests.broker.connection.peer import Peer, settle
from tests.broker.transaction.test_who_may import coordinated, opened
from tests.simulation.worlds import run
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnId

from .matrix.conversations import UNASKED, Step, World, conversations
from .matrix.conversations import letter as letter_of
from .matrix.differences import BY_COMMAND, BY_PREFIX, BY_ROUTE, NOT_APACHES
from .matrix.record_apache_commands import connect_as, credentials
from .matrix.roles import (
    NAMESPACE,
    ON_NAMESPACE,
    ON_TOPIC,
    ROLES,
    SUBSCRIPTION,
    SUPER_USER,
    TENANT,
    TENANT_ADMINS,
    TOPIC,
    Who,
    filled,
)
from .secured_server import Secured, settings
from .token_maker import SECRET, token

COMMANDS_RECORDED = Path(__file__).parent / "matrix" / "apache-4.0.8-commands.txt"
RECORDED = Path(__file__).parent / "matrix" / "apache-4.0.8.txt"
TURNS_MAX = 30
"""Turns of a thousandth of a second each: a server that has not answered by then does not."""


@cache
def recorded() -> dict[str, str]:
    """Letters by `METHOD path`."""
    rows = (line.rsplit(" ", 1) for line in RECORDED.read_text().splitlines() if line and not line.startswith("#"))
    return dict(rows)


def dispatcher() -> Dispatcher:
    found: list[Any] = []

    async def make() -> None:
        found.extend(AdminWorld().app.routes)

    run(lambda _: make())
    (only,) = found
    assert isinstance(only, Dispatcher)
    return only


async def a_store() -> MemoryStore:
    """With the tenant, its namespace, and what `roles` grants."""
    store = MemoryStore(RealClock())
    policies = {
        "auth_policies": {
            "namespace_auth": {role: [action] for role, action in ON_NAMESPACE.items()},
            "destination_auth": {
                topic: {role: [action] for role, action in ON_TOPIC.items()} for topic in (TOPIC, f"non-{TOPIC}")
            },
            "subscription_auth_roles": {SUBSCRIPTION: ["sub-user"]},
        }
    }
    await store.put(f"/admin/policies/{TENANT}", json.dumps({"adminRoles": TENANT_ADMINS}).encode())
    await store.put("/admin/policies/other", json.dumps({"adminRoles": ["other-admin"]}).encode())
    await store.put(f"/admin/policies/{NAMESPACE}", json.dumps(policies).encode())
    return store


def headers_of(who: Who) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-original-principal", who.original.encode())] if who.original else []
    if who.role is not None:
        signed = token(who.role) if who.role else token(SUPER_USER, secret=b"x" * 32)
        headers.append((b"authorization", f"Bearer {signed}".encode()))
    return headers


async def letter(security: Security, endpoint: Endpoint, values: list[str], who: Who) -> str:
    scope = {"type": "http", "method": endpoint.method, "path": "/", "headers": headers_of(who), "query_string": b""}
    request = Request(scope | {"path_params": dict(zip(endpoint.parameters, values, strict=True))})
    try:
        await authorizer(security)(request, endpoint)
    except Refusal as refusal:
        return {401: "1", 403: "3"}[refusal.status]
    return "A"


def decided(security: Security, endpoint: Endpoint, values: list[str], who: Who) -> str:
    found: str = run(lambda _: letter(security, endpoint, values, who))
    return found


async def differences(found: Dispatcher) -> AsyncIterator[tuple[str, str, str, str]]:
    """Route, role, Apache's letter and ours, where they are not alike. A refusal is one whatever its status."""
    security = Security(settings(), await a_store(), {}, lambda: 1_000_000.0)
    for route, letters in recorded().items():
        method, path = route.split(" ")
        endpoint = found.find(method, [part for part in filled(path).split("/") if part])
        if endpoint is None:
            continue
        for who, theirs in zip(ROLES, letters, strict=True):
            ours = await letter(security, *endpoint, who)
            if theirs not in "-?" and (theirs == "A") != (ours == "A"):
                yield route, who.name, theirs, ours


def test_authorization_of_each_route_is_apaches_but_for_the_listed_differences() -> None:
    served = dispatcher()

    async def scenario() -> list[tuple[str, str, str, str]]:
        return [each async for each in differences(served)]

    found = run(lambda _: scenario())
    assert [each for each in found if each[0] not in BY_ROUTE and not each[0].split(" ")[1].startswith(tuple(BY_PREFIX))] == []
    assert [each for each in found if each[0] in BY_ROUTE and each[3] == "A"] == [], "where we differ, we are the stricter"
    assert BY_ROUTE.keys() - {route for route, *_ in found} == set(), "the list has nothing that is alike"


def test_apache_was_asked_for_every_route_that_is_here() -> None:
    def unnamed(path: str) -> str:
        return re.sub(r"\{[^}]*\}", "{}", path).rstrip("/")

    asked = {(method, unnamed(path)) for method, path in (route.split(" ") for route in recorded())}
    ours = {f"{each.method} {each.path}" for each in dispatcher().endpoints if (each.method, unnamed(each.path)) not in asked}
    assert ours <= NOT_APACHES


def test_a_client_without_credentials_may_use_only_the_public_routes() -> None:
    found = dispatcher()
    store = run(lambda _: a_store())
    security = Security(settings(), store, {}, lambda: 1_000_000.0)
    nobody = next(who for who in ROLES if who.name == "nobody")
    open_to_all = set()
    for endpoint in found.endpoints:
        values = [{"tenant": "acme", "domain": "persistent"}.get(name, "x") for name in endpoint.parameters]
        if decided(security, endpoint, values, nobody) == "A":
            open_to_all.add(f"{endpoint.method} {endpoint.path}")
    assert open_to_all <= {"GET /status.html", "GET /metrics", "GET /metrics/", "GET /docs", "GET /openapi.json"}


def test_the_files_of_a_bookie_are_for_super_users_alone_and_for_no_proxy() -> None:
    """They have entries of all tenants."""
    security = Security(settings(), run(lambda _: a_store()), {}, lambda: 1_000_000.0)
    found = dispatcher().find("GET", ["admin", "v2", "bookies", "local-reads"])
    assert found is not None
    assert [who.name for who in ROLES if decided(security, *found, who) == "A"] == ["admin"]


@pytest.mark.parametrize("who", ROLES, ids=lambda who: who.name)
def test_a_route_that_declares_nothing_is_for_super_users(who: Who) -> None:
    async def handler(request: Request) -> Any:
        raise AssertionError("not called")

    async def scenario() -> str:
        security = Security(settings(), await a_store(), {}, lambda: 1_000_000.0)
        return await letter(security, Endpoint("GET", "/admin/v2/new/{tenant}", handler), [TENANT], who)

    assert (run(lambda _: scenario()) == "A") is (who.name == "admin")


def test_authorization_of_each_command_is_apaches_but_for_the_listed_differences() -> None:
    """Whether one is let in at all is part of it."""

    async def scenario() -> dict[str, str]:
        async with coordinated() as server:
            policies = await a_store()
            for path in (f"/admin/policies/{TENANT}", f"/admin/policies/{NAMESPACE}"):
                found = await policies.get(path)
                assert found is not None
                await server.store.put(path, found.value)
            return {name: await letters(server, name, steps) for name, steps in conversations(TOPIC, SUBSCRIPTION).items()}

    logging.disable(logging.WARNING)
    try:
        ours = run(lambda _: scenario())
    finally:
        logging.disable(logging.NOTSET)
    theirs = recorded_commands()
    assert ours.keys() == theirs.keys()
    different = {name: f"{ours[name]} and not {theirs[name]}" for name in theirs if ours[name] != theirs[name]}
    assert {name: each for name, each in different.items() if name not in BY_COMMAND} == {}
    assert BY_COMMAND.keys() - different.keys() == set(), "the list has nothing that is alike"
    assert {name for name in different if is_laxer(ours[name], theirs[name])} == set(), "where we differ, we are the stricter"


def test_every_type_of_command_that_a_client_may_send_is_asked() -> None:
    asked = {BaseCommand.Type.Value(name.split()[0]) for name in recorded_commands()}
    assert asked == set(BaseCommand.Type.values()) - _FROM_BROKERS


def recorded_commands() -> dict[str, str]:
    return dict(line.split(": ") for line in COMMANDS_RECORDED.read_text().splitlines())


def is_laxer(ours: str, theirs: str) -> bool:
    """Whether a role had done here (`A`), or may have had (`.`), what it did not have there."""
    return any(mine in "A." and other not in "A." for mine, other in zip(ours, theirs, strict=True))


async def letters(server: Secured, name: str, steps: Sequence[Step]) -> str:
    return "".join([await became(server, name, steps, who) for who in ROLES])


async def became(server: Secured, name: str, steps: Sequence[Step], who: Who) -> str:
    """A letter, as `record_apache_commands` writes down Apache's."""
    txn_id = await opened(await server.peer_of("admin")) if "TXN" in name else TxnId(0, 0)
    world = World(TOPIC, SUBSCRIPTION, txn_id, (credentials(who, SECRET) or "").encode())
    peer, said = server.peer(), list[BaseCommand]()
    if (await peer.ask(connect_as(who, SECRET))).type != BaseCommand.CONNECTED:
        return "C"
    for step in steps:
        answers = await answers_to(peer, step(world, said))
        said += answers
    ended = peer.transport.closed
    peer.transport.close()
    await settle()
    return letter_of(answers, ended=ended)


async def answers_to(peer: Peer, data: bytes) -> list[BaseCommand]:
    """Coordinators answer after a while."""
    peer.feed(data)
    for _ in range(TURNS_MAX):
        await asyncio.sleep(0.001)
        answers = [each for each in peer.answers() if each.type not in UNASKED]
        if answers or peer.transport.closed:
            return answers
    return []
