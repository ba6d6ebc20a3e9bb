"""A proxy between a client that is bytes and brokers that are made up: who is reached, what is forwarded, what is bounded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from broker.proxy.listener import ProxyListener
from broker.proxy.settings import ProxySettings
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

FRAME_BYTES_MAX = 5 * 1024 * 1024
SECONDS_MAX = 30.0
Conversation = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._rest = b""

    async def take(self) -> BaseCommand:
        while (frame := next_frame(self._rest, 0, len(self._rest), FRAME_BYTES_MAX)) is None:
            data = await self.reader.read(65536)
            assert data, "closed"
            self._rest += data
        self._rest = self._rest[frame.end :]
        return frame.command

    def say(self, kind: Any, **body: Any) -> None:
        name = BaseCommand.Type.Name(kind).lower()
        names = {"lookup": "lookup_topic", "lookup_response": "lookup_topic_response"}
        self.writer.write(encode(BaseCommand(type=kind, **{names.get(name, name): body})))

    async def ends(self) -> bool:
        """Nothing more comes."""
        return self._rest == b"" and await self.reader.read(1) == b""


class Known:
    """`Brokers` of a test."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self._picks = 0

    @property
    def count(self) -> int:
        return len(self.addresses)

    def pick(self) -> str | None:
        self._picks += 1
        return self.addresses[(self._picks - 1) % len(self.addresses)] if self.addresses else None

    pick_web = pick

    async def may_reach(self, address: str) -> bool:
        return address in self.addresses

    may_reach_web = may_reach

    async def open(self) -> None: ...
    async def close(self) -> None: ...


@asynccontextmanager
async def made_up_broker(conversation: Conversation) -> AsyncIterator[str]:
    """Address of a made-up broker. Every fault that it finds fails the test at the end."""
    failures: list[BaseException] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await conversation(Peer(reader, writer))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # raised again below
            failures.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert [error for error in failures if not isinstance(error, asyncio.CancelledError)] == []


@asynccontextmanager
async def proxy(known: Known, **settings: Any) -> AsyncIterator[ProxyListener]:
    listener = ProxyListener(ProxySettings(service_port=0, bind_address="127.0.0.1", **settings), known)
    await listener.listen()
    try:
        yield listener
    finally:
        await listener.close()


@asynccontextmanager
async def client(listener: ProxyListener) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await scenario()

    uvloop.run(bounded())


async def greet(peer: Peer) -> None:
    """A broker's side of a handshake with the proxy itself."""
    assert (await peer.take()).type == BaseCommand.CONNECT
    peer.say(BaseCommand.CONNECTED, server_version="b", protocol_version=21)


async def connect(peer: Peer, address: str = "") -> BaseCommand:
    more = {"proxy_to_broker_url": address} if address else {}
    peer.say(BaseCommand.CONNECT, client_version="c", protocol_version=19, **more)
    return await peer.take()


def test_bytes_go_to_the_broker_that_was_named_and_back_as_they_are() -> None:
    async def broker(peer: Peer) -> None:
        hello = (await peer.take()).connect
        assert not hello.HasField("proxy_to_broker_url")
        assert (hello.client_version, hello.protocol_version) == ("c", 19)
        assert hello.proxy_version
        peer.say(BaseCommand.CONNECTED, server_version="the broker's own", protocol_version=17, max_message_size=1234)
        assert await peer.reader.readexactly(9) == b"no frames"
        peer.writer.write(b"nor here")
        await peer.writer.drain()

    async def scenario() -> None:
        async with made_up_broker(broker) as address, proxy(Known(address)) as listener, client(listener) as peer:
            told = (await connect(peer, address)).connected
            assert (told.server_version, told.max_message_size) == ("the broker's own", 1234)
            peer.writer.write(b"no frames")
            assert await peer.reader.read() == b"nor here"

    run(scenario)


def test_commands_sent_right_behind_connect_are_forwarded_too() -> None:
    async def broker(peer: Peer) -> None:
        await peer.take()
        assert (await peer.take()).producer.topic == "t"

    async def scenario() -> None:
        async with made_up_broker(broker) as address, proxy(Known(address)) as listener, client(listener) as peer:
            peer.say(BaseCommand.CONNECT, client_version="c", proxy_to_broker_url=address)
            peer.say(BaseCommand.PRODUCER, topic="t", producer_id=1, request_id=2)
            assert await peer.ends()

    run(scenario)


def test_cve_2022_24280_an_address_that_no_broker_has_is_refused() -> None:
    async def never(peer: Peer) -> None:
        raise AssertionError("reached")

    async def scenario() -> None:
        async with made_up_broker(never) as hidden, proxy(Known("127.0.0.1:1")) as listener, client(listener) as peer:
            told = await connect(peer, hidden)
            assert told.error.error == api.ServiceNotReady
            assert "no broker has this address" in told.error.message
            assert await peer.ends()

    run(scenario)


def test_a_broker_that_is_gone_is_told() -> None:
    async def scenario() -> None:
        async with proxy(Known("127.0.0.1:1")) as listener, client(listener) as peer:
            assert "cannot be reached" in (await connect(peer, "127.0.0.1:1")).error.message
            assert await peer.ends()

    run(scenario)


def test_a_broker_that_does_not_read_stops_its_client_and_loses_nothing() -> None:
    sent, chunk, reading = 48 * 1024 * 1024, bytes(range(256)) * 256, asyncio.Event()

    async def broker(peer: Peer) -> None:
        await peer.take()
        await reading.wait()
        got = len(peer._rest)
        while got < sent:
            data = await peer.reader.read(1 << 20)
            assert data
            got += len(data)

    async def scenario() -> None:
        async with made_up_broker(broker) as address, proxy(Known(address)) as listener, client(listener) as peer:
            peer.say(BaseCommand.CONNECT, client_version="c", proxy_to_broker_url=address)

            async def send() -> None:
                for _ in range(sent // len(chunk)):
                    peer.writer.write(chunk)
                    await peer.writer.drain()

            sending = asyncio.create_task(send())
            (connection,) = await until(lambda: listener._port.connections)
            broker_side = await until(lambda: connection._broker)
            await until(lambda: not connection._transport.is_reading())
            assert broker_side.get_write_buffer_size() < 4 * 1024 * 1024
            assert not sending.done()
            reading.set()
            await sending
            assert await peer.ends()
            assert listener.counts.bytes == sent

    run(scenario)


async def until(found: Callable[[], Any]) -> Any:
    """Result of the proxy's work, which it does in its own time, on this loop."""
    while not (value := found()):  # noqa: ASYNC110
        await asyncio.sleep(0)  # its sockets have no event for us
    return value


def found_at(address: str, *, redirect: bool = False) -> dict[str, Any]:
    kind = api.CommandLookupTopicResponse.Redirect if redirect else api.CommandLookupTopicResponse.Connect
    return {"response": kind, "broker_service_url": f"pulsar://{address}", "authoritative": True}


def test_a_lookup_follows_redirects_and_names_the_owner_behind_the_proxy() -> None:
    async def owner(peer: Peer) -> None:
        await greet(peer)
        asked = (await peer.take()).lookup_topic
        assert asked.authoritative
        peer.say(BaseCommand.LOOKUP_RESPONSE, request_id=asked.request_id, **found_at("owner:6650"))
        await peer.reader.read()

    async def scenario() -> None:
        async with made_up_broker(owner) as second:

            async def first(peer: Peer) -> None:
                await greet(peer)
                asked = (await peer.take()).lookup_topic
                peer.say(BaseCommand.LOOKUP_RESPONSE, request_id=asked.request_id, **found_at(second, redirect=True))
                await peer.reader.read()

            async with made_up_broker(first) as address, proxy(Known(address, second)) as listener, client(listener) as peer:
                assert not (await connect(peer)).connected.feature_flags.supports_topic_watchers
                peer.say(BaseCommand.LOOKUP, topic="t", request_id=77)
                told = (await peer.take()).lookup_topic_response
                assert (told.request_id, told.broker_service_url) == (77, "pulsar://owner:6650")
                assert told.proxy_through_service_url
                await listener.lookups.close()

    run(scenario)


def test_a_redirect_to_an_unknown_broker_fails_the_lookup() -> None:
    async def broker(peer: Peer) -> None:
        await greet(peer)
        asked = (await peer.take()).lookup_topic
        peer.say(BaseCommand.LOOKUP_RESPONSE, request_id=asked.request_id, **found_at("elsewhere:1", redirect=True))
        await peer.reader.read()

    async def scenario() -> None:
        async with made_up_broker(broker) as address, proxy(Known(address)) as listener, client(listener) as peer:
            await connect(peer)
            peer.say(BaseCommand.LOOKUP, topic="t", request_id=1)
            told = (await peer.take()).lookup_topic_response
            assert told.response == api.CommandLookupTopicResponse.Failed
            assert "elsewhere:1, which is no known broker" in told.message
            await listener.lookups.close()

    run(scenario)


def test_another_broker_is_asked_when_one_does_not_answer() -> None:
    async def broker(peer: Peer) -> None:
        await greet(peer)
        asked = (await peer.take()).lookup_topic
        peer.say(BaseCommand.LOOKUP_RESPONSE, request_id=asked.request_id, **found_at("owner:6650"))
        await peer.reader.read()

    async def scenario() -> None:
        known = Known("127.0.0.1:1")
        async with made_up_broker(broker) as address, proxy(known) as listener, client(listener) as peer:
            known.addresses.append(address)
            await connect(peer)
            peer.say(BaseCommand.LOOKUP, topic="t", request_id=5)
            assert (await peer.take()).lookup_topic_response.broker_service_url == "pulsar://owner:6650"
            await listener.lookups.close()

    run(scenario)


def test_without_a_broker_a_lookup_fails_at_once() -> None:
    async def scenario() -> None:
        async with proxy(Known()) as listener, client(listener) as peer:
            await connect(peer)
            peer.say(BaseCommand.LOOKUP, topic="t", request_id=5)
            told = (await peer.take()).lookup_topic_response
            assert (told.error, told.request_id) == (api.ServiceNotReady, 5)
            assert "no broker is registered" in told.message

    run(scenario)


def test_a_client_that_skips_the_handshake_or_asks_for_more_than_lookups_is_dropped() -> None:
    async def scenario() -> None:
        async with proxy(Known()) as listener:
            async with client(listener) as peer:
                peer.say(BaseCommand.LOOKUP, topic="t", request_id=5)
                assert await peer.ends()
            async with client(listener) as peer:
                await connect(peer)
                peer.say(BaseCommand.PRODUCER, topic="t", producer_id=1, request_id=2)
                assert await peer.ends()
            async with client(listener) as peer:
                peer.writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert await peer.ends()

    run(scenario)


def test_connections_beyond_the_limit_are_told_so() -> None:
    async def scenario() -> None:
        async with proxy(Known(), max_concurrent_inbound_connections=1) as listener, client(listener) as first:
            await connect(first)
            async with client(listener) as second:
                assert "maximum number of connections: 1" in (await second.take()).error.message
            assert listener.counts.rejected == 1

    run(scenario)
