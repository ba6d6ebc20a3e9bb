"""WebSocket sessions of a standalone with tokens: who is let in, and for how long."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from websocket import WebSocket, WebSocketBadStatusException, create_connection

from tests.broker.security.token_maker import SECRET, in_setting, token
from tests.clients.server_process import Ready, ServerProcess

SETTINGS = (
    "authenticationEnabled=true",
    "authorizationEnabled=true",
    "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    f"tokenSecretKey={in_setting(SECRET)}",
    "superUserRoles=admin",
    "authenticationRefreshCheckSeconds=1",
)
PRODUCER = "/ws/v2/producer/persistent/public/default/secured"
CONSUMER = "/ws/v2/consumer/persistent/public/default/secured/s"
READER = "/ws/v2/reader/persistent/public/default/secured"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with ServerProcess(tmp_path_factory.mktemp("secured"), SETTINGS) as process:
        yield process.start()


def connected(server: Ready, path: str, credentials: str = "") -> "closing[WebSocket]":
    header = [f"Authorization: Bearer {credentials}"] if credentials else []
    return closing(create_connection(server.web_url.replace("http", "ws", 1) + path, timeout=30, header=header))


@pytest.mark.parametrize("path", [PRODUCER, CONSUMER, READER])
@pytest.mark.parametrize(("credentials", "status"), [("", 401), ("no.token.atall", 401), (token("nobody"), 403)])
def test_a_client_without_a_good_token_or_a_permission_is_refused(
    server: Ready, path: str, credentials: str, status: int
) -> None:
    for shown in ((path, credentials), (f"{path}?token={credentials}", "")):
        with pytest.raises(WebSocketBadStatusException) as refused:
            connected(server, *shown)
        assert refused.value.status_code == status


def test_a_token_is_shown_in_the_header_or_as_a_parameter(server: Ready) -> None:
    with connected(server, PRODUCER, token("admin")) as one, connected(server, f"{PRODUCER}?token={token('admin')}") as other:
        for socket in (one, other):
            socket.send('{"payload":"eA=="}')
            assert '"ok"' in str(socket.recv())


def test_a_token_that_expires_ends_the_session_with_1008(server: Ready) -> None:
    with connected(server, CONSUMER, token("admin", exp=int(time.time()) + 2)) as socket:
        frame = socket.recv_frame()  # type: ignore[no-untyped-call]  # the library has half of its types
        assert int.from_bytes(frame.data[:2]) == 1008
        assert frame.data[2:].startswith(b"5: Failed to authenticate client")
