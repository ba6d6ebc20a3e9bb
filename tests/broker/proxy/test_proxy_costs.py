"""Each command that a proxy answers costs the proxy time linear in the command's bytes, in bounded turns of the loop."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.proxy.clients import OwnCredentials
from broker.proxy.connection import FRAMES_PER_TURN, ProxyConnection
from broker.proxy.counts import REQUESTS
from broker.proxy.listener import ProxyListener
from broker.proxy.lookups import RELAYED
from broker.proxy.settings import ProxySettings
from tests.broker.connection.long_commands import rows
from tests.broker.connection.peer import FakeTransport, connect, ping, play_for_real, settle
from tests.clients.standalone.test_proxy_connection import Known
from tests.cost import Counter
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

BOUND = 9.5
"""Above 8 are the logarithm of sorting, and turns of the loop."""
STEPS_PER_TURN = 300_000
BROKER = "broker:6650"
OWN = (BaseCommand.CONNECT, BaseCommand.PING, BaseCommand.PONG)


class BrokersTransport(FakeTransport):
    """A broker that answers each command at once: it takes the proxy for known, and knows nothing itself."""

    def write(self, data: Any) -> None:
        frame = next_frame(bytes(data), 0, len(data))
        assert frame is not None
        answer = BaseCommand(type=BaseCommand.CONNECTED, connected=api.CommandConnected(server_version="b"))
        if frame.command.type != BaseCommand.CONNECT:
            number = next(value.request_id for field, value in frame.command.ListFields() if field.number > 1)
            error = api.CommandError(request_id=number, error=api.MetadataError, message="nothing is known here")
            answer = BaseCommand(type=BaseCommand.ERROR, error=error)
        asyncio.get_running_loop().call_soon(self._tell, encode(answer))

    def _tell(self, answer: bytes) -> None:
        protocol: Any = self.protocol
        protocol.data_received(answer)

    def get_write_buffer_size(self) -> int:
        return 0


class FakeWay:
    """Way to that broker."""

    own, tls = OwnCredentials(), None

    async def connect(self, make: Callable[[], Any], host: str, port: int) -> asyncio.Transport:
        transport, protocol = BrokersTransport(), make()
        transport.protocol = protocol
        protocol.connection_made(transport)
        return transport


async def a_client(*, is_connected: bool = True) -> tuple[Any, FakeTransport]:
    way: Any = FakeWay()
    connection: Any = ProxyConnection(ProxyListener(ProxySettings(), Known(BROKER), way))
    transport = FakeTransport()
    transport.protocol = connection
    connection.connection_made(transport)
    if is_connected:
        connection.data_received(encode(connect()))
        await settle()
        transport.written.clear()
    return connection, transport


async def done(connection: Any) -> None:
    while connection._rest.is_behind or connection._tasks:
        await settle()


async def _a_turn() -> None:
    await asyncio.sleep(0)


def _cost(data: bytes, *, is_connected: bool) -> int:
    found = [0]

    async def scenario() -> None:
        connection, transport = await a_client(is_connected=is_connected)
        with Counter() as counter:
            connection.data_received(data)
            await done(connection)
        found[0] = counter.steps
        transport.close()
        await settle()

    play_for_real(scenario)
    return found[0]


@pytest.mark.parametrize(("kind", "data", "n"), list(rows([*RELAYED, *OWN])))
def test_a_command_costs_a_proxy_time_linear_in_its_bytes(kind: int, data: Callable[[int], bytes], n: int) -> None:
    is_connected = kind != BaseCommand.CONNECT
    small, large = (_cost(data(times * n), is_connected=is_connected) for times in (1, 8))
    assert large <= BOUND * small, f"{large / small:.1f} times: {small} steps for {n}, {large} for {8 * n}"


def test_a_command_that_comes_octet_by_octet_costs_time_linear_in_its_bytes() -> None:
    def cost(size: int) -> int:
        asked = api.CommandLookupTopic(topic="x" * size, request_id=1)
        sent = encode(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=asked))
        found = [0]

        async def scenario() -> None:
            connection, transport = await a_client()
            with Counter() as counter:
                for at in range(len(sent)):
                    connection.data_received(sent[at : at + 1])
            found[0] = counter.steps
            await done(connection)
            transport.close()
            await settle()

        play_for_real(scenario)
        return found[0]

    assert cost(8000) <= BOUND * cost(1000)


LOOKUPS = b"".join(
    encode(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=api.CommandLookupTopic(topic="t", request_id=number)))
    for number in range(20 * FRAMES_PER_TURN)
)


@pytest.mark.parametrize("sent", [encode(ping()) * 6000, LOOKUPS], ids=["pings", "lookups"])
def test_a_turn_of_the_loop_handles_a_bounded_part_of_what_a_client_sends(sent: bytes) -> None:
    async def scenario() -> None:
        connection, transport = await a_client()
        with Counter() as counter:
            connection.data_received(sent)
            assert transport.is_paused(), "nothing is read until all is handled"
            await done(connection)
        assert not transport.is_paused()
        assert counter.longest < STEPS_PER_TURN, f"of {counter.steps} in all"
        transport.close()
        await settle()

    play_for_real(scenario)


@pytest.mark.parametrize("pieces", [1, 3])
def test_requests_that_are_put_off_are_all_answered(pieces: int) -> None:
    async def scenario() -> None:
        connection, transport = await a_client()
        size = -(-len(LOOKUPS) // pieces)
        for at in range(0, len(LOOKUPS), size):
            connection.data_received(LOOKUPS[at : at + size])
            await done(connection)
        assert sorted(_numbers(bytes(transport.written))) == list(range(20 * FRAMES_PER_TURN))
        transport.close()
        await settle()

    play_for_real(scenario)


def _numbers(written: bytes) -> list[int]:
    found, at = [], 0
    while at < len(written):
        frame = next_frame(written, at, len(written))
        assert frame is not None
        found.append(frame.command.error.request_id)
        at = frame.end
    return found


def test_frames_behind_the_connect_to_a_broker_are_kept_whole_and_unparsed() -> None:
    """Bytes after the CONNECT are not parsed."""

    async def scenario() -> None:
        connection, transport = await a_client(is_connected=False)
        hello = connect()
        hello.connect.proxy_to_broker_url = "nobody:1"
        connection.data_received(encode(ping()) * (2 * FRAMES_PER_TURN) + encode(hello) + encode(ping()) * 3)
        await done(connection)
        assert bytes(connection._unused) == encode(ping()) * 3
        transport.close()
        await settle()

    play_for_real(scenario)


def test_a_row_for_each_command_that_a_proxy_relays() -> None:
    assert set(RELAYED) == set(REQUESTS)
