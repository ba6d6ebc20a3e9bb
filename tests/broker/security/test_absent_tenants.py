"""Answers about an absent tenant, and about the owner of a transaction, to callers who are known and are no super users.

Recorded beside Apache 4.0.8: 404 over HTTP to every caller; on a connection TopicNotFound to PARTITIONED_METADATA alone.
"""

import pytest

from broker.admin.app import admin_app
from broker.admin.rest.authorize import authorizer
from broker.errors import ServerError
from broker.security.security import Security
from tests.broker.admin.admin_world import AdminWorld
from tests.broker.admin.admin_world import play as play_admin
from tests.broker.connection.peer import lookup, partitions, play, producer
from tests.broker.transaction.test_coordinators import CoordinatedServer, a_server
from wire.generated import pulsar_api_pb2 as api

from .matrix.conversations import error_in
from .secured_server import secured, settings
from .token_maker import token

NOWHERE = "persistent://nobody/ns/t"


def bearing(role: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {token(role)}".encode())]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "persistent/nobody/ns"),
        ("GET", "namespaces/nobody/ns/retention"),
        ("PUT", "namespaces/nobody/ns"),
        ("GET", "namespaces/nobody"),
        ("GET", "persistent/nobody/ns/t/stats"),
        ("DELETE", "persistent/nobody/ns/t"),
        ("GET", "schemas/nobody/ns/t/schema"),
    ],
)
def test_a_tenant_that_is_not_there_is_not_found_whoever_asks(method: str, path: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        security = Security(settings(), world.store, {}, lambda: 1_000_000.0)
        world.app = admin_app(world.service, world.store, "1", authorizer(security))
        world.headers = bearing("stranger")
        assert (await world.call(method, f"/admin/v2/{path}")).refused == (404, "Tenant does not exist")
        there = await world.call(method, f"/admin/v2/{path}".replace("nobody", "public"))
        assert there.status in (401, 403)

    play_admin(scenario)


def test_a_stranger_cannot_tell_existing_tenants_from_absent_ones() -> None:
    async def scenario(world: AdminWorld) -> None:
        security = Security(settings(), world.store, {}, lambda: 1_000_000.0)
        world.app = admin_app(world.service, world.store, "1", authorizer(security))
        world.headers = bearing("stranger")
        for method in ("GET", "DELETE"):
            for tenant in ("nobody", "public"):
                assert (await world.call(method, f"/admin/v2/tenants/{tenant}")).status == 401

    play_admin(scenario)


def test_asked_for_partitions_of_a_missing_tenants_topic_the_broker_says_that_there_is_none() -> None:
    async def scenario() -> None:
        async with secured() as server:
            stranger = await server.peer_of("stranger")
            answer = (await stranger.ask(partitions(NOWHERE))).partition_metadata_response
            assert (answer.error, "nobody/ns" in answer.message) == (api.TopicNotFound, True)
            for command in (lookup(NOWHERE), producer(1, NOWHERE), partitions("persistent://public/ns/t")):
                assert error_in(await stranger.ask(command)) == ServerError.AUTHORIZATION

    play(scenario)


class OwnedTransactions(AdminWorld):
    """The routes of a server with coordinators that authenticates its callers."""

    def __init__(self, server: CoordinatedServer) -> None:
        self.service = server.service
        security = Security(settings(), server.storage.store, {}, lambda: 1_000_000.0)
        self.app = admin_app(server.service, server.storage.store, "1", authorizer(security), coordinators=server.coordinators)


def test_a_transaction_is_told_to_who_opened_it_and_to_super_users() -> None:
    async def scenario() -> None:
        async with a_server() as server:
            world = OwnedTransactions(server)
            coordinator = await server.coordinators.connect(5)
            await coordinator.open("opener", 60_000)
            await coordinator.open(None, 60_000)
            told = {}
            for role in ("opener", "stranger", "admin"):
                world.headers = bearing(role)
                paths = [f"/admin/v3/transactions/transactionMetadata/5/{least}" for least in (0, 1, 2)]
                told[role] = [(await world.get(path)).status for path in paths]
            assert told == {"opener": [200, 200, 404], "stranger": [401, 200, 404], "admin": [200, 200, 404]}

    play(scenario)
