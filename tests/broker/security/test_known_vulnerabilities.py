"""Vulnerabilities that Pulsar once had, by CVE: the routes and the code. Others are beside what they are about.

CVE-2021-22160 (test_authentication), 2023-30429 and 2023-31007 (test_guarded_connections), 2022-33681, -33682 and -33683
(tests/broker/service/test_neighbours), 2022-24280 (tests/clients/test_proxy_connection), 2025-30677
(tests/cli/test_secrets_in_logs), and of Kafka's 2022-34917 and 2026-111108 what they teach (test_guarded_connections,
tests/broker/connection/test_bad_frames). Functions, connectors, packages, OAuth2, a UI of its own and the WebSocket endpoint
/pingpong are not there, nor what was wrong in them (2022-33684, 2023-37544, 2023-37579, 2020-17520); nor is a check of bookies'
host names, off by default in Apache's too (BookKeeper's 2022-32531): authorities alone are trusted.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from broker.admin.rest.dispatch import Dispatcher
from broker.admin.rest.endpoints import Endpoint
from broker.security.authorization.needs import Kind
from broker.security.security import Security
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.topic.topic_world import payload, send_run, settle
from tests.simulation.worlds import run

from .matrix.roles import ROLES, filled
from .secured_server import settings
from .test_matrix import a_store, dispatcher, letter

ROOT = Path(__file__).parents[3]
SERVERS = ("bookie", "bookkeeper", "broker", "handlers", "managed_ledger", "metadata", "ports", "wire")
WITHOUT_NAME = {"/status.html", "/docs", "/openapi.json", "/metrics"}
"""Paths that anybody may see; `/metrics` unless authenticateMetricsEndpoint is set."""
CLIENTS = [who for who in ROLES if who.name in ("ns-produce", "ns-consume", "topic-produce", "topic-consume", "stranger")]


async def roles_that_may(found: Dispatcher, endpoints: list[Endpoint]) -> list[tuple[str, str]]:
    """Roles of clients that may use an endpoint."""
    security = Security(settings(), await a_store(), {}, lambda: 1_000_000.0)
    may: list[tuple[str, str]] = []
    for endpoint in endpoints:
        _, values = found.find(endpoint.method, filled(endpoint.path).strip("/").split("/")) or (None, [])
        for who in CLIENTS:
            decision = await letter(security, endpoint, values, who)
            may += [(f"{endpoint.method} {endpoint.path}", who.name)] * (decision == "A")
    return may


def test_cve_2021_41571_a_message_of_another_topic_is_not_shown_and_is_no_place_to_go_to() -> None:
    async def scenario(world: AdminWorld) -> None:
        own, other = [await world.loaded(f"{NAME}/{name}") for name in ("own", "other")]
        other.ledger.roll_over()
        for topic in (own, other):
            await topic.ledger.append(send_run([0], [payload()]).entries)
        await world.done("PUT", "own/subscription/s", {"ledgerId": -1, "entryId": -1})
        await settle()
        foreign = other.ledger.last_confirmed
        assert foreign.ledger_id != own.ledger.last_confirmed.ledger_id
        assert (await world.topic("GET", f"other/ledger/{foreign.ledger_id}/entry/{foreign.entry_id}")).status == 200
        assert (await world.topic("GET", f"own/ledger/{foreign.ledger_id}/entry/{foreign.entry_id}")).status == 404
        subscription = own.subscriptions.get("s")
        place = {"ledgerId": foreign.ledger_id, "entryId": foreign.entry_id}
        await world.topic("POST", "own/subscription/s/resetcursor", place)
        assert subscription.cursor.first_unacknowledged().ledger_id != foreign.ledger_id

    play(scenario)


def test_cve_2022_34321_every_route_but_those_of_health_wants_to_know_who_asks() -> None:
    async def scenario(found: Dispatcher) -> set[str]:
        security = Security(settings(), await a_store(), {}, lambda: 1_000_000.0)
        nobody = next(who for who in ROLES if who.role is None)
        return {
            endpoint.path.rstrip("/")
            for endpoint in found.endpoints
            if await letter(security, endpoint, ["x"] * len(endpoint.parameters), nobody) == "A"
        }

    found = dispatcher()
    assert run(lambda _: scenario(found)) <= WITHOUT_NAME


@pytest.mark.parametrize("cve", ["CVE-2024-28098"])
def test_no_policy_of_a_topic_is_changed_by_those_who_publish_and_consume(cve: str) -> None:
    found = dispatcher()
    policies = [each for each in found.endpoints if each.access.kind is Kind.TOPIC_POLICY and each.access.writes]
    assert len(policies) > 50
    assert run(lambda _: roles_that_may(found, policies)) == []


@pytest.mark.parametrize("cve", ["CVE-2024-29834"])
def test_neither_unloading_nor_compacting_nor_properties_are_for_those_who_publish_and_consume(cve: str) -> None:
    found = dispatcher()
    ends = ("/unload", "/offload", "/compaction", "/trim", "/properties", "/property/{key}", "/property/{key}/{value}")
    guarded = [
        each
        for each in found.endpoints
        if each.method != "GET" and each.path.endswith(ends) and "/subscription/" not in each.path
    ]
    assert len(guarded) >= 10
    assert run(lambda _: roles_that_may(found, guarded)) == []


def test_cve_2023_30428_who_may_not_publish_may_not_do_it_over_http_either() -> None:
    found = dispatcher()
    publishing = [each for each in found.endpoints if each.path.startswith("/topics/")]
    assert publishing
    assert {who for _, who in run(lambda _: roles_that_may(found, publishing))} <= {"ns-produce", "topic-produce"}


@cache
def sources() -> dict[str, ast.Module]:
    """Modules that a server runs, by path."""
    paths = (path for layer in SERVERS for path in (ROOT / layer).rglob("*.py") if "generated" not in path.parts)
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def called(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_cve_2024_27135_nothing_that_comes_in_becomes_code() -> None:
    forbidden = {"eval", "exec", "compile", "__import__", "pickle.loads", "marshal.loads", "yaml.load", "os.system"}
    assert {path: found for path, tree in sources().items() if (found := forbidden & set(called(tree)))} == {}
    modules = {"importlib", "pickle", "marshal", "runpy", "subprocess"}
    assert {path: found for path, tree in sources().items() if (found := modules & set(imported(tree)))} == {}


def test_cve_2024_27317_no_archive_is_unpacked() -> None:
    assert {path for path, tree in sources().items() if {"zipfile", "tarfile"} & set(imported(tree))} == set()
    assert not any(call.startswith("shutil.unpack") for tree in sources().values() for call in called(tree))


def test_cve_2024_27894_no_url_that_somebody_names_is_opened() -> None:
    openers = {"urllib.request", "requests", "httpx", "aiohttp", "http.client"}
    assert {path for path, tree in sources().items() if openers & set(imported(tree))} == set()


def test_cve_2023_51437_secrets_are_compared_in_constant_time() -> None:
    """A signature, a digest or a password beside what was sent, by `==` or `!=`."""
    secret = ("signature", "password", "hashed", "digest", "secret", "computed", "stored")
    found = []
    for path, tree in sources().items():
        if not path.startswith("broker/security/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators) if not isinstance(side, ast.Constant)]
                if len(sides) == 2 and any(word in side for word in secret for side in sides):
                    found.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    assert found == []
