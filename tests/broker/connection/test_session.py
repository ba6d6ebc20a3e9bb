"""Session, pure, and the keep-alive timer that drives it, on virtual time."""

import asyncio

import pytest

from broker.connection.errors import ProtocolViolation
from broker.connection.session import Session, Tick
from broker.connection.settings import ConnectionSettings
from tests.broker.connection.peer import Peer, a_peer, a_server, message, ping, play, send
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand


def connected(version: int = 21) -> Session:
    session = Session()
    session.connect(api.CommandConnect(client_version="c", protocol_version=version))
    return session


def test_every_type_of_command_is_either_for_clients_or_for_brokers() -> None:
    legal = set()
    for kind in BaseCommand.Type.values():
        try:
            connected().check(kind)
            legal.add(BaseCommand.Type.Name(BaseCommand.Type.ValueType(kind)))
        except ProtocolViolation:
            continue
    assert {"SEND", "PING", "PONG", "CLOSE_CONSUMER", "AUTH_RESPONSE", "END_TXN_ON_PARTITION"} <= legal
    assert not [name for name in legal if name.endswith(("RESPONSE", "SUCCESS", "RECEIPT")) and name != "AUTH_RESPONSE"]
    assert len(legal) == 29


def test_before_connect_only_ping_pong_and_connect_are_legal() -> None:
    legal = []
    for kind in BaseCommand.Type.values():
        try:
            Session().check(kind)
            legal.append(kind)
        except ProtocolViolation:
            continue
    assert legal == [BaseCommand.CONNECT, BaseCommand.PING, BaseCommand.PONG]


def test_a_silent_peer_is_asked_once_and_given_up_at_the_next_tick() -> None:
    session = connected()
    session.heard()
    assert session.tick(is_reading=True) is Tick.NOTHING
    assert session.tick(is_reading=True) is Tick.SEND_PING
    assert session.tick(is_reading=True) is Tick.PEER_SILENT


def test_anything_heard_from_the_peer_answers_the_ping() -> None:
    session = connected()
    assert session.tick(is_reading=True) is Tick.SEND_PING
    session.heard()
    assert session.tick(is_reading=True) is Tick.NOTHING
    assert session.tick(is_reading=True) is Tick.SEND_PING


def test_a_peer_that_we_do_not_read_is_not_silent() -> None:
    session = connected()
    assert session.tick(is_reading=True) is Tick.SEND_PING
    assert session.tick(is_reading=False) is Tick.NOTHING
    assert session.tick(is_reading=True) is Tick.SEND_PING


def test_a_peer_that_knows_no_ping_is_left_alone() -> None:
    session = connected(version=0)
    assert [session.tick(is_reading=True) for _ in range(3)] == [Tick.NOTHING] * 3


def test_an_unfinished_handshake_ends_at_the_first_tick(caplog: pytest.LogCaptureFixture) -> None:
    """Also when the peer goes on to send a byte a second, and PINGs."""

    async def scenario() -> None:
        async with a_server() as (listener, topics):
            quiet, slow = Peer(listener, topics), Peer(listener, topics)
            slow.send(ping())
            for octet in encode(ping())[:-1] * 5:
                await asyncio.sleep(1)
                if not slow.transport.closed:
                    slow.feed(bytes([octet]))
            assert (quiet.transport.closed, slow.transport.closed) == (True, True)
            said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
            assert [("handshake not finished" in line) for line in said] == [True, True]

    play(scenario)


def test_a_connected_peer_that_says_nothing_gets_a_ping_and_is_closed() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await asyncio.sleep(59)
            assert peer.frames() == []
            await asyncio.sleep(2)
            assert [command.type for command, _ in peer.frames()] == [BaseCommand.PING]
            await asyncio.sleep(28)
            assert not peer.transport.closed
            await asyncio.sleep(2)
            assert peer.transport.closed

    play(scenario)


def test_a_connected_peer_that_sends_a_byte_a_second_of_a_frame_is_closed() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            frame = encode(send(1, 1), message(b"x" * 500))
            for octet in frame:
                await asyncio.sleep(1)
                if peer.transport.closed:
                    break
                peer.feed(bytes([octet]))
            assert peer.transport.closed

    play(scenario)


def test_a_peer_that_answers_stays() -> None:
    async def scenario() -> None:
        pong = BaseCommand(type=BaseCommand.PONG, pong=api.CommandPong())
        async with a_peer(settings=ConnectionSettings(keep_alive_interval_seconds=5)) as peer:
            for _ in range(100):
                await asyncio.sleep(1)
                if any(command.type == BaseCommand.PING for command, _ in peer.frames()):
                    peer.send(pong)
            assert not peer.transport.closed

    play(scenario)


def test_a_closed_connection_that_cannot_send_its_last_bytes_is_cut() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.transport.close = lambda: None  # type: ignore[method-assign]  # what a full socket makes of it
            peer.feed((0).to_bytes(4))
            await asyncio.sleep(6)
            assert peer.transport.aborted
            del peer.transport.close

    play(scenario)


def test_the_first_version_of_the_protocol_knows_ping_and_the_one_before_does_not() -> None:
    ticks = []
    for version in (0, 1):
        session = connected(version)
        session.heard()
        session.tick(is_reading=True)
        ticks.append(session.tick(is_reading=True))
    assert ticks == [Tick.NOTHING, Tick.SEND_PING]
