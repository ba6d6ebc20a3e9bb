"""Bytes that strangers send to a started server: one log line and a closed connection each, and no loss for anybody else."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.raw_client import RawClient, frame, send_frame
from tests.clients.server_process import ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe

TOPIC = "persistent://public/default/bystander"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("bad-input"), ("keepAliveIntervalSeconds=1",)) as process:
        process.start()
        yield process
        assert process.stop() == 0


def connect_frame() -> bytes:
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version, command.connect.protocol_version = "stranger", 20
    return frame(command)


def flow_frame(permits: int) -> bytes:
    command = BaseCommand(type=BaseCommand.FLOW)
    command.flow.consumer_id, command.flow.message_permits = 77, permits
    return frame(command)


WRONG = {
    "an empty frame": bytes(4),
    "a negative size": b"\xff\xff\xff\xff\x00\x00\x00\x01",
    "a frame over the maximum": (6 << 20).to_bytes(4, "big") + bytes(8),
    "a command larger than its frame": (8).to_bytes(4, "big") + (9).to_bytes(4, "big") + bytes(4),
    "garbage": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an unknown command": (6).to_bytes(4, "big") + (2).to_bytes(4, "big") + b"\x08\x63",
    "a command that is no protobuf": (8).to_bytes(4, "big") + (4).to_bytes(4, "big") + b"\xff\xff\xff\xff",
    "a FLOW of no permits": flow_frame(0),
    "a FLOW of more permits than there can be": flow_frame(0xFFFFFFFF),
    "a SEND for a producer that is not there": send_frame(10, 1),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("is_connected", [False, True])
def test_a_mistake_closes_its_own_connection_with_one_log_line(server: ServerProcess, what: str, is_connected: bool) -> None:
    assert server.ready is not None
    log_before = server.log.stat().st_size  # a stranger before this one may have come from the same port
    with closing(RawClient(server.ready.broker_url)) as bystander, stranger(server) as peer:
        bystander.subscribe(TOPIC, f"{what} {is_connected}", CommandSubscribe.Exclusive)
        bystander.producer(TOPIC)
        if is_connected:
            peer.sendall(connect_frame())
        peer.sendall(WRONG[what])
        name = "{}:{}".format(*peer.getsockname())
        while peer.recv(65536):
            continue
        log = server.log.read_bytes()[log_before:].decode()
        lines = [line for line in log.splitlines() if f"peer={name} " in line and "level=warning" in line]
        assert len(lines) == 1, lines
        assert "reason=" in lines[0]
        assert bystander.publish(send_frame(10, 1), 10, 1.0, 20) > 0


def test_a_peer_that_never_finishes_its_handshake_is_let_go(server: ServerProcess) -> None:
    with stranger(server) as peer:
        peer.sendall(connect_frame()[:7])
        while peer.recv(65536):
            continue


def stranger(server: ServerProcess) -> socket.socket:
    assert server.ready is not None
    host, port = server.ready.broker_url.removeprefix("pulsar://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)
