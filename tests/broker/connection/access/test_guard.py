"""Connections where authentication is on: who is let in, for how long, and what their commands are answered."""

import asyncio
import logging
from typing import Any

import pytest

from broker.connection.access.command_needs import FOR_OWNERS, NEEDS, OF_ITS_OWN
from broker.connection.connection import HANDSHAKE_BYTES_MAX
from broker.connection.session import _FROM_BROKERS
from broker.errors import ServerError
from tests.broker.connection.peer import TOPIC, flow, lookup, partitions, play, producer, reasons, settle, subscribe
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...security.matrix.conversations import error_in
from ...security.secured_server import BEGINNING, Secured, auth_response, connect, secured
from ...security.token_maker import CANARY, token


def code_of(answer: BaseCommand) -> ServerError:
    assert answer.type == BaseCommand.ERROR, answer
    return ServerError(int(answer.error.error))


async def refused(server: Secured, command: BaseCommand) -> ServerError:
    """The connection is told so and ends."""
    peer = server.peer()
    answer = await peer.ask(command)
    assert peer.transport.closed
    assert answer.error.request_id == (1 << 64) - 1
    return code_of(answer)


def test_a_peer_with_a_good_token_is_let_in_and_others_are_told_that_they_are_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.peer_of("admin")
            wrong = (token("admin", secret=b"x" * 32), token("admin", alg="none"), "", CANARY, token("admin", exp=1))
            for given in wrong:
                assert await refused(server, connect(given)) is ServerError.AUTHENTICATION
            assert await refused(server, connect(token("admin"), "sasl")) is ServerError.AUTHENTICATION
            assert await refused(server, connect(None, "none")) is ServerError.AUTHENTICATION

    caplog.set_level(logging.DEBUG)
    play(scenario)
    assert CANARY not in caplog.text
    assert token("admin") not in caplog.text


def test_nothing_is_done_for_a_peer_that_is_not_known() -> None:
    async def scenario() -> None:
        async with secured() as server:
            for command in (lookup(), producer(), subscribe(), partitions(TOPIC), auth_response(token("admin"))):
                peer = server.peer()
                peer.send(command)
                await settle()
                assert peer.transport.closed
                assert peer.answers() == []

    play(scenario)


def test_cve_2022_34917_a_peer_that_is_not_known_can_have_little_kept_for_it() -> None:
    async def scenario() -> None:
        async with secured() as server:
            peer = server.peer()
            peer.feed((HANDSHAKE_BYTES_MAX + 1).to_bytes(4) + (HANDSHAKE_BYTES_MAX - 10).to_bytes(4) + b"\x08\x02")
            assert peer.transport.closed

    play(scenario)


def test_expired_credentials_are_asked_for_anew_and_a_client_that_brings_them_stays() -> None:
    async def scenario() -> None:
        async with secured(authentication_refresh_check_seconds=10) as server:
            peer = await server.peer_of_until(25)
            await asyncio.sleep(29)
            assert [answer.type for answer in peer.answers() if answer.type != BaseCommand.PING] == []
            await asyncio.sleep(2)
            (challenge,) = [answer for answer in peer.answers() if answer.type == BaseCommand.AUTH_CHALLENGE]
            assert challenge.auth_challenge.challenge.auth_data == b"PulsarAuthRefresh"
            assert challenge.auth_challenge.challenge.auth_method_name == "token"
            peer.send(auth_response(token("admin", exp=BEGINNING + 65)))
            await asyncio.sleep(14)
            assert not peer.transport.closed
            peer.send(lookup())
            await asyncio.sleep(40)
            assert peer.transport.closed, "the second token has expired too, and nobody has answered"

    play(scenario)


@pytest.mark.parametrize(
    "given",
    [token("other"), token("admin", exp=BEGINNING + 1), "x", token("admin", secret=b"y" * 32), token("admin", alg="none")],
)
def test_new_credentials_that_are_bad_or_of_somebody_else_end_the_connection(given: str) -> None:
    async def scenario() -> None:
        async with secured(authentication_refresh_check_seconds=10) as server:
            peer = await server.peer_of_until(5)
            await asyncio.sleep(11)
            peer.answers()
            peer.send(auth_response(given))
            await settle()
            assert code_of(peer.answers()[-1]) is ServerError.AUTHENTICATION
            assert peer.transport.closed

    play(scenario)


def test_cve_2023_31007_no_connection_outlives_its_token() -> None:
    """A client that cannot refresh, and a proxy that keeps its client's credentials to itself."""

    async def scenario() -> None:
        async with secured(authentication_refresh_check_seconds=10) as server:
            cannot = await server.peer_of_until(5, refreshes=False)
            silent = await server.peer_of_until(5)
            proxied = await server.peer_of_until(5, role="proxy", original_principal="alice")
            lasting = await server.peer_of("admin")
            await asyncio.sleep(11)
            assert [peer.transport.closed for peer in (cannot, silent, proxied, lasting)] == [True, False, True, False]
            await asyncio.sleep(10)
            assert [peer.transport.closed for peer in (silent, lasting)] == [True, False]

    play(scenario)


def test_the_credentials_that_a_proxy_forwards_are_checked_and_refreshed_where_that_is_asked_for() -> None:
    async def scenario() -> None:
        async with secured(authentication_refresh_check_seconds=10, authenticate_original_auth_data=True) as server:
            forwarded: dict[str, Any] = {"original_principal": "whatever", "original_auth_method": "token"}
            await server.grant(namespace_auth={"proxy": ["produce"], "alice": ["produce"]})
            peer = await server.peer_of("proxy", **forwarded, original_auth_data=token("alice", exp=BEGINNING + 5))
            assert str(peer.connection.caller) == "alice by proxy"
            await asyncio.sleep(11)
            assert BaseCommand.AUTH_CHALLENGE in [answer.type for answer in peer.answers()]
            peer.send(auth_response(token("alice", exp=BEGINNING + 500)))
            await asyncio.sleep(25)
            assert not peer.transport.closed
            wrong = connect(token("proxy"), **forwarded, original_auth_data=token("alice", secret=b"z" * 32))
            assert await refused(server, wrong) is ServerError.AUTHENTICATION

    play(scenario)


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ("proxy", {}),
        ("proxy", {"original_principal": " "}),
        ("proxy", {"original_principal": "proxy"}),
        ("alice", {"original_principal": "admin"}),
        ("alice", {"original_principal": "alice"}),
        ("alice", {"proxy_version": "x"}),
        ("admin", {"original_principal": "alice"}),
    ],
)
def test_only_a_proxy_speaks_for_others_and_it_says_for_whom(role: str, fields: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with secured() as server:
            assert await refused(server, connect(token(role), **fields)) is ServerError.AUTHORIZATION

    play(scenario)


def test_cve_2023_30429_of_a_proxy_and_its_client_both_must_be_allowed() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth={"alice": ["produce"]})
            alone = await server.peer_of("proxy", original_principal="alice")
            assert code_of(await alone.ask(producer())) is ServerError.AUTHORIZATION
            await server.grant(namespace_auth={"alice": ["produce"], "proxy": ["produce"]})
            for original, is_allowed in (("alice", True), ("bob", False), ("admin", True)):
                peer = await server.peer_of("proxy", original_principal=original)
                answer = await peer.ask(producer())
                assert (answer.type == BaseCommand.PRODUCER_SUCCESS) is is_allowed

    play(scenario)


def commands_of(topic: str = TOPIC) -> dict[int, BaseCommand]:
    """One of each that needs a permission."""
    namespace = topic.partition("://")[2].rpartition("/")[0]
    schema = api.Schema(name="s", schema_data=b"", type=api.Schema.String)
    transaction: dict[str, Any] = {"request_id": 5, "txnid_least_bits": 1, "txnid_most_bits": 1}
    return {
        BaseCommand.PRODUCER: producer(topic=topic),
        BaseCommand.SUBSCRIBE: subscribe(topic=topic),
        BaseCommand.LOOKUP: lookup(topic),
        BaseCommand.PARTITIONED_METADATA: partitions(topic),
        BaseCommand.GET_TOPICS_OF_NAMESPACE: BaseCommand(
            type=BaseCommand.GET_TOPICS_OF_NAMESPACE,
            get_topics_of_namespace=api.CommandGetTopicsOfNamespace(request_id=5, namespace=namespace),
        ),
        BaseCommand.WATCH_TOPIC_LIST: BaseCommand(
            type=BaseCommand.WATCH_TOPIC_LIST,
            watch_topic_list=api.CommandWatchTopicList(
                request_id=5, watcher_id=1, namespace=namespace, topics_pattern="persistent://public/default/.*"
            ),
        ),
        BaseCommand.GET_SCHEMA: BaseCommand(
            type=BaseCommand.GET_SCHEMA, get_schema=api.CommandGetSchema(request_id=5, topic=topic)
        ),
        BaseCommand.GET_OR_CREATE_SCHEMA: BaseCommand(
            type=BaseCommand.GET_OR_CREATE_SCHEMA,
            get_or_create_schema=api.CommandGetOrCreateSchema(request_id=5, topic=topic, schema=schema),
        ),
        BaseCommand.ADD_PARTITION_TO_TXN: BaseCommand(
            type=BaseCommand.ADD_PARTITION_TO_TXN,
            add_partition_to_txn=api.CommandAddPartitionToTxn(request_id=5, partitions=[topic]),
        ),
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN: BaseCommand(
            type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN,
            add_subscription_to_txn=api.CommandAddSubscriptionToTxn(
                request_id=5, subscription=[api.Subscription(topic=topic, subscription="s")]
            ),
        ),
        BaseCommand.END_TXN_ON_PARTITION: BaseCommand(
            type=BaseCommand.END_TXN_ON_PARTITION, end_txn_on_partition=api.CommandEndTxnOnPartition(topic=topic, **transaction)
        ),
        BaseCommand.END_TXN_ON_SUBSCRIPTION: BaseCommand(
            type=BaseCommand.END_TXN_ON_SUBSCRIPTION,
            end_txn_on_subscription=api.CommandEndTxnOnSubscription(
                subscription=api.Subscription(topic=topic, subscription="s"), **transaction
            ),
        ),
    }


def test_every_command_says_what_it_needs_or_why_it_needs_nothing() -> None:
    declared = set(NEEDS) | OF_ITS_OWN | FOR_OWNERS
    of_clients = set(BaseCommand.Type.values()) - _FROM_BROKERS
    assert of_clients == declared
    assert set(commands_of()) == set(NEEDS)


@pytest.mark.parametrize("kind", sorted(NEEDS))
def test_a_stranger_is_denied_every_command_that_needs_anything(kind: int) -> None:
    async def scenario() -> None:
        async with secured() as server:
            stranger = await server.peer_of("stranger")
            answer = await stranger.ask(commands_of()[kind])
            assert error_in(answer) == ServerError.AUTHORIZATION
            assert server.topics.topics == {}, "nothing was done"
            admin = await server.peer_of("admin")
            assert error_in(await admin.ask(commands_of()[kind])) != ServerError.AUTHORIZATION

    play(scenario)


def test_a_command_that_nobody_has_declared_is_denied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with secured() as server:
            admin = await server.peer_of("admin")
            monkeypatch.delitem(NEEDS, BaseCommand.LOOKUP)
            admin.send(lookup())
            await settle()
            assert admin.transport.closed

    play(scenario)
    assert any("LOOKUP is denied" in reason for reason in reasons(caplog))


def test_a_consumer_that_is_denied_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth={"alice": ["consume"]}, subscription_auth_roles={"theirs": ["bob"]})
            alice = await server.peer_of("alice")
            assert code_of(await alice.ask(subscribe(subscription="theirs"))) is ServerError.AUTHORIZATION
            alice.send(flow(1, 10))
            assert (await alice.ask(subscribe(subscription="ours"))).type == BaseCommand.SUCCESS
            await server.grant(namespace_auth={"alice": ["consume"]}, mode="Prefix")
            assert (await alice.answer()).type == BaseCommand.CLOSE_CONSUMER, "ours has no prefix"
            answer = await alice.ask(subscribe(consumer_id=2, subscription="ours"))
            assert code_of(answer) is ServerError.AUTHORIZATION
            assert "like alice-xxxx" in answer.error.message
            assert (await alice.ask(subscribe(consumer_id=2, subscription="alice-1"))).type == BaseCommand.SUCCESS

    play(scenario)


def test_a_producer_that_brings_a_subscription_must_be_allowed_to_subscribe() -> None:
    async def scenario() -> None:
        async with secured() as server:
            await server.grant(namespace_auth={"alice": ["produce"]})
            alice = await server.peer_of("alice")
            assert code_of(await alice.ask(producer(initial_subscription_name="s"))) is ServerError.AUTHORIZATION
            assert (await alice.ask(producer())).type == BaseCommand.PRODUCER_SUCCESS

    play(scenario)


def test_a_permission_that_is_taken_away_is_gone_with_the_next_command() -> None:
    async def scenario() -> None:
        async with secured() as server:
            alice = await server.peer_of("alice")
            for allowed in (["produce"], [], ["consume"], []):
                await server.grant(namespace_auth={"alice": allowed})
                answer = await alice.ask(lookup())
                assert (error_in(answer) is None) is bool(allowed)

    play(scenario)


def test_a_name_that_is_none_is_told_as_that() -> None:
    async def scenario() -> None:
        async with secured() as server:
            alice = await server.peer_of("alice")
            assert error_in(await alice.ask(lookup("persistent://public/default/"))) == ServerError.INVALID_TOPIC_NAME

    play(scenario)
