"""The limits of a proxy, from its keys to what a client is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.broker.process import bound_socket
from cli.configuration.loading import load_configuration
from cli.proxy.server import ProxyServer
from tests.clients.standalone.test_proxy_connection import Peer, made_up_broker
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

NOWHERE = (
    "servicePort=0\nbindAddress=127.0.0.1\nbrokerServiceURL=pulsar://127.0.0.1:1\nbrokerWebServiceURL=http://127.0.0.1:1\n"
)
SECONDS_MAX = 30.0


class Started:
    """A proxy that listens on free ports, before brokers that do not exist."""

    def __init__(self, server: ProxyServer, web_port: int) -> None:
        self.server, self.web_port = server, web_port

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Peer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.listener.port)
        try:
            yield Peer(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async def status(self) -> int:
        """Status of a request over HTTP."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.web_port)
        try:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return int((await reader.read()).split()[1])
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def started(keys: str) -> AsyncIterator[Started]:
    server = ProxyServer(load_configuration([("proxy.conf", NOWHERE + keys)], []), None)
    web_socket = bound_socket("127.0.0.1", 0)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await server.start(web_socket)
            yield Started(server, web_socket.getsockname()[1])
    finally:
        await server.stop()
        web_socket.close()


async def connect(peer: Peer) -> None:
    asked = api.CommandConnect(client_version="test", protocol_version=21)
    peer.writer.write(encode(BaseCommand(type=BaseCommand.CONNECT, connect=asked)))
    assert (await peer.take()).type == BaseCommand.CONNECTED


def test_requests_over_http_beyond_the_limit_get_429_and_are_counted() -> None:
    async def scenario() -> None:
        async with started("httpRequestsLimitEnabled=true\nhttpRequestsMaxPerSecond=0.001\n") as proxy:
            assert [await proxy.status() for _ in range(3)] == [200, 429, 429]
            assert proxy.server.listener.counts.http_rejected == 2

    asyncio.run(scenario())


def test_without_the_limit_no_request_over_http_is_refused() -> None:
    async def scenario() -> None:
        async with started("httpRequestsMaxPerSecond=0.001\n") as proxy:
            assert [await proxy.status() for _ in range(3)] == [200, 200, 200]

    asyncio.run(scenario())


def test_connections_of_one_address_beyond_the_limit_are_told_so() -> None:
    async def scenario() -> None:
        async with started("maxConcurrentInboundConnectionsPerIp=1\n") as proxy, proxy.client() as first:
            await connect(first)
            async with proxy.client() as second:
                assert "maximum number of connections on address 127.0.0.1: 1" in (await second.take()).error.message

    asyncio.run(scenario())


def test_connections_of_all_beyond_the_limit_are_told_so() -> None:
    async def scenario() -> None:
        async with started("maxConcurrentInboundConnections=1\n") as proxy, proxy.client() as first:
            await connect(first)
            async with proxy.client() as second:
                assert "maximum number of connections: 1" in (await second.take()).error.message

    asyncio.run(scenario())


def test_lookups_beyond_the_limit_are_refused_so_that_clients_try_again() -> None:
    async def never_answers(peer: Peer) -> None:
        await peer.reader.read()

    async def scenario() -> None:
        async with (
            made_up_broker(never_answers) as broker,
            started(f"maxConcurrentLookupRequests=1\nbrokerServiceURL=pulsar://{broker}\n") as proxy,
            proxy.client() as peer,
        ):
            await connect(peer)
            peer.say(BaseCommand.LOOKUP, topic="t", request_id=5)
            peer.say(BaseCommand.LOOKUP, topic="t", request_id=6)
            told = (await peer.take()).lookup_topic_response
            assert (told.request_id, told.error) == (6, api.TooManyRequests)
            assert "Too many lookups are under way: 1" in told.message

    asyncio.run(scenario())


def test_a_request_whose_body_is_larger_than_can_be_sent_again_is_refused() -> None:
    async def scenario() -> None:
        async with started("httpInputMaxReplayBufferSize=10\n") as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.web_port)
            writer.write(
                b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nConnection: close\r\n\r\n01234567890"
            )
            assert int((await reader.read()).split()[1]) == 413
            writer.close()
            await writer.wait_closed()

    asyncio.run(scenario())
