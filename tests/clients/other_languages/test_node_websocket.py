"""A WebSocket client of Node.js (the package `ws`, which compresses its messages): `tests/clients/node_websocket`."""

import shutil
from pathlib import Path

import pytest

from tests.clients.server_process import given_or_started
from tests.toolchain import run_tool

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "node_websocket"


@pytest.mark.skipif(shutil.which("npm") is None, reason="no Node.js")
def test_messages_go_through_websockets_of_node_in_order(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copytree(HERE, program)
    run_tool(["npm", "ci", "--no-audit", "--no-fund"], program, 120)
    with given_or_started(tmp_path / "server") as server:
        url = server.web_url.replace("http", "ws", 1)
        assert run_tool(["node", "exchange.js", url, "900"], program, 60) == "900 received in order, 900 stored\n"
