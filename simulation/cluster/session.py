"""SimSession: one session with `SimZooKeeper`, as kazoo has it: connects again by itself until it is over.

Satisfies `metadata.zookeeper.requests.ZooKeeperSession`, so that everything above it is the product's own: what a session's
events mean, watches, walks, writes whose answers were lost. As kazoo it pings each third of the session's time and gives a
connection up on which nothing was heard for two thirds. Lives and dies with its process.
"""

import asyncio

from metadata.zookeeper.requests import ConnectionLost, Refused, Reply, Request, SessionEvents
from simulation.cluster.zookeeper import (
    HOST,
    PORT,
    Answered,
    Asked,
    Bye,
    Changed,
    Hello,
    Over,
    Ping,
    SimZooKeeper,
    Welcome,
    Word,
)

CONNECT_PAUSE_SECONDS = 0.05
CONNECT_PAUSE_SECONDS_MAX = 0.4


class _Connection(asyncio.Protocol):
    """One connection of the session."""

    def __init__(self, session: "SimSession") -> None:
        self._session = session
        self._buffer = bytearray()
        self.transport: asyncio.Transport
        self.is_welcome = False
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for word in self._session.words.take(self._buffer):
            if not self.ended.is_set():
                self._session.heard(self, word)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        self._session.lost(self)

    def say(self, word: Word) -> None:
        self.transport.write(self._session.words.put(word))


class SimSession:
    """`open_session` of a `ZooKeeperStore` is `partial(SimSession, server, timeout)`."""

    def __init__(self, server: SimZooKeeper, timeout: float, events: SessionEvents) -> None:
        self.words = server.words
        self._timeout, self._events = timeout, events
        self._loop = asyncio.get_running_loop()
        self._session_id = self._last_zxid = self._zxid_when_lost = 0
        self._heard_at = 0.0
        self._connection: _Connection | None = None
        self._pending: dict[int, Reply] = {}
        self._last_number = 0
        self._is_over = False
        self._pinging: asyncio.TimerHandle | None = None
        self._runner = self._loop.create_task(self._run(), name="ZooKeeper session")

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def last_zxid(self) -> int:
        return self._last_zxid

    @property
    def zxid_when_lost(self) -> int:
        return self._zxid_when_lost

    @property
    def heard_at(self) -> float:
        return self._heard_at

    @property
    def timeout(self) -> float:
        return self._timeout

    def send(self, request: Request, reply: Reply) -> None:
        if self._connection is None or self._is_over:
            self._loop.call_soon(reply, ConnectionLost("not connected"))
            return
        self._last_number += 1
        self._pending[self._last_number] = reply
        self._connection.say(Asked(self._last_number, request))

    async def close(self) -> None:
        """The server is told if it can be."""
        if not self._is_over and self._connection is not None:
            self._connection.say(Bye())
            self._connection.transport.close()
        self._is_over = True
        self._runner.cancel()
        await asyncio.wait([self._runner])

    # Connections

    async def _run(self) -> None:
        pause = CONNECT_PAUSE_SECONDS
        while not self._is_over:
            try:
                async with asyncio.timeout(self._timeout):
                    _, connection = await self._loop.create_connection(lambda: _Connection(self), HOST, PORT)
            except OSError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, CONNECT_PAUSE_SECONDS_MAX)
                continue
            await self._live(connection)
            pause = CONNECT_PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def _live(self, connection: _Connection) -> None:
        silence = self._loop.call_later(2 * self._timeout / 3, self._check_welcome, connection)
        try:
            connection.say(Hello(self._session_id, self._timeout))
            await connection.ended.wait()
        finally:
            silence.cancel()
            connection.transport.abort()

    def _check_welcome(self, connection: _Connection) -> None:
        if not connection.is_welcome:
            connection.transport.abort()

    def _ping(self, connection: _Connection) -> None:
        if connection is not self._connection:
            return
        if self._loop.time() - self._heard_at > 2 * self._timeout / 3:
            connection.transport.abort()
            return
        connection.say(Ping())
        self._pinging = self._loop.call_later(self._timeout / 3, self._ping, connection)

    def heard(self, connection: _Connection, word: Word) -> None:
        if self._is_over:
            return
        self._heard_at = self._loop.time()
        match word:
            case Welcome():
                self._session_id = word.session_id
                self._connection, connection.is_welcome = connection, True
                self._events.connected()
                self._ping(connection)
            case Over():
                self._is_over = True
                self._events.expired()
            case Answered():
                self._last_zxid = word.zxid
                answer = word.answer
                reply = self._pending.pop(word.number)
                reply(answer if not isinstance(answer, Refused) else Refused(answer.code, answer.index, answer.text))
            case Changed():
                self._events.changed(word.change, word.path)

    def lost(self, connection: _Connection) -> None:
        """The connection is gone; what was asked on it has no answer."""
        if connection is not self._connection:
            return
        self._connection = None
        if self._pinging is not None:
            self._pinging.cancel()
        self._zxid_when_lost = self._last_zxid
        pending, self._pending = self._pending, {}
        for reply in pending.values():
            reply(ConnectionLost("the connection is lost"))
        if not self._is_over:
            self._events.disconnected()
