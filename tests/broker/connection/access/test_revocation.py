"""Permissions that are taken away count for those who are attached already."""

import asyncio
from typing import Any

import pytest

from broker.errors import ServerError
from tests.broker.connection.peer import Peer, play, producer, settle, subscribe
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...security.secured_server import Secured, secured

BOTH = {"alice": ["produce", "consume"]}


async def attached(server: Secured) -> Peer:
    """alice, with a producer and a consumer."""
    peer = await server.peer_of("alice")
    assert (await peer.ask(producer())).type == BaseCommand.PRODUCER_SUCCESS
    assert (await peer.ask(subscribe())).type == BaseCommand.SUCCESS
    return peer


async def closed(peer: Peer) -> set[int]:
    """The types of what the broker says next."""
    await settle()
    return {answer.type for answer in peer.answers()}


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ({}, {BaseCommand.CLOSE_PRODUCER, BaseCommand.CLOSE_CONSUMER}),
        ({"alice": ["produce"]}, {BaseCommand.CLOSE_CONSUMER}),
        ({"alice": ["consume"]}, {BaseCommand.CLOSE_PRODUCER}),
        (BOTH | {"bob": ["produce"]}, set()),
    ],
    ids=["both", "consume", "produce", "another's grant"],
)
def test_a_revoked_permission_closes_its_producers_or_consumers_and_no_others(
    left: dict[str, list[str]], told: set[Any]
) -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth=BOTH)
            peer = await attached(server)
            await server.grant(namespace_auth=left)
            assert await closed(peer) == told
            assert not peer.transport.closed
            if BaseCommand.CLOSE_PRODUCER in told:
                answer = await peer.ask(producer())
                assert int(answer.error.error) == ServerError.AUTHORIZATION

    play(scenario)


def test_a_subscription_that_is_given_to_others_is_closed() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth=BOTH)
            peer = await attached(server)
            await server.grant(namespace_auth=BOTH, subscription_auth_roles={"s": ["bob"]})
            assert await closed(peer) == {BaseCommand.CLOSE_CONSUMER}

    play(scenario)


def test_an_admin_of_the_tenant_that_is_none_any_more_is_closed() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.admins("public", "alice")
            peer = await attached(server)
            await server.admins("public", "bob")
            assert await closed(peer) == {BaseCommand.CLOSE_PRODUCER, BaseCommand.CLOSE_CONSUMER}

    play(scenario)


def test_grants_of_another_namespace_close_nothing_and_a_client_that_left_is_not_told() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth=BOTH)
            peer = await attached(server)
            await server.grant("public/other", namespace_auth={})
            assert await closed(peer) == set()
            peer.connection.close()
            await server.grant(namespace_auth={})
            assert await closed(peer) == set()
            await asyncio.sleep(0)

    play(scenario)
