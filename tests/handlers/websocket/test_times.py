"""Pings, idle sessions, and a server that stops, over real sockets; and what a server loads before its first client."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from websocket import ABNF, WebSocket, create_connection

from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import ROOT

SETTINGS = ("webSocketPingDurationSeconds=1", "webSocketSessionIdleTimeoutMillis=1600")
PRODUCER = "/ws/v2/producer/persistent/public/default/times"


@pytest.fixture
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("times"), SETTINGS) as process:
        process.start()
        yield process


def connected(ready: Ready | None) -> "closing[WebSocket]":
    assert ready is not None
    return closing(create_connection(ready.web_url.replace("http", "ws", 1) + PRODUCER, timeout=30))


def frame_of(socket: WebSocket) -> tuple[int, Any]:
    frame = socket.recv_frame()  # type: ignore[no-untyped-call]  # the library has half of its types
    return frame.opcode, frame.data


def codes_of(socket: WebSocket) -> Iterator[int]:
    """Codes of close frames up to the first; 0 for other frames."""
    while True:
        opcode, data = frame_of(socket)
        yield int.from_bytes(data[:2]) if opcode == ABNF.OPCODE_CLOSE else 0
        if opcode == ABNF.OPCODE_CLOSE:
            return


def code_of(socket: WebSocket) -> int:
    opcode, data = frame_of(socket)
    assert opcode == ABNF.OPCODE_CLOSE
    return int.from_bytes(data[:2])


def test_a_client_is_pinged_and_one_that_answers_nothing_is_let_go(process: ServerProcess) -> None:
    with connected(process.ready) as silent, connected(process.ready) as answering:
        for _ in range(3):
            assert frame_of(answering) == (ABNF.OPCODE_PING, b"PING")
            answering.pong(b"PING")
        assert frame_of(silent) == (ABNF.OPCODE_PING, b"PING")
        assert code_of(silent) == 1001
        answering.send('{"payload":"eA=="}')
        answers = [frame_of(answering) for _ in range(2)]
        assert any(b'"ok"' in data for opcode, data in answers if opcode == ABNF.OPCODE_TEXT)


def test_a_server_that_stops_ends_its_sessions_with_1001(process: ServerProcess) -> None:
    with connected(process.ready) as socket:
        assert process.stop() == 0
        assert [code for code in codes_of(socket) if code] == [1001]


def test_a_broker_loads_nothing_of_websockets_before_the_first_client() -> None:
    program = (
        "import sys, cli.standalone.main, cli.standalone.server, cli.broker.web_ports, broker.admin.app; print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = ran.stdout.split()
    assert "cli.broker.websockets" in loaded
    assert [name for name in loaded if name.startswith(("websockets", "handlers."))] == [
        "handlers.websocket",
        "handlers.websocket.settings",
    ]
