"""KazooSession: one ZooKeeper session on kazoo's client, whose threads end here.

kazoo runs one thread per connection. Everything that it says (answers, watch events, states) is handed to the event loop
from that thread, at once and in the order in which it was read: a change is told before the answer that shows it. One client
is one session: when that expires the client is stopped, so that a request meant for one session can never run in the next.
Never in here: what an event means.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError, NoWatcherError, ZookeeperError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import GetChildren2, GetData, Watch
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from metadata.paths import ROOT
from metadata.store import Change
from metadata.zookeeper.kazoo_wire import AddWatchRequest, MultiRequest, RemoveWatchRequest, SyncRequest, node_stat, refusal
from metadata.zookeeper.requests import (
    AddWatch,
    Answer,
    Children,
    ConnectionLost,
    Found,
    Get,
    Listed,
    Multi,
    Refused,
    RemoveWatch,
    Reply,
    Request,
    SessionEvents,
    Sync,
)
from metadata.zookeeper.session_key import SessionKey
from ports.logs import line

_log = logging.getLogger(__name__)
_kazoo_log = logging.getLogger("kazoo")
_kazoo_log.setLevel(logging.ERROR)  # it warns of each attempt to connect; the session driver says what matters

CONNECT_PAUSE_SECONDS = 0.05
CONNECT_PAUSE_SECONDS_MAX = 1.0
"""Between two rounds over the servers; grows from the one to the other."""
_CHANGES = {1: Change.CREATED, 2: Change.DELETED, 3: Change.MODIFIED}


class _InPlace(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Runs callbacks in the connection's thread, where kazoo would queue them for two others and lose their order."""

    def start(self) -> None:
        """No threads."""

    def stop(self) -> None:
        """No threads."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Says when the server was heard, and tells every watch event: kazoo's own would look for watchers that fire once."""

    heard_at = 0.0
    changed: Callable[[Change, str], None]

    def _read_socket(self, read_timeout: float) -> Any:
        response = super()._read_socket(read_timeout)
        self.heard_at = time.monotonic()
        return response

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        change = _CHANGES.get(watch.type)
        if change is not None:
            self.changed(change, self.client.unchroot(watch.path))

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        timeouts = super()._connect(host, hostip, port)
        self.heard_at = time.monotonic()
        return timeouts


class _Client(KazooClient):  # type: ignore[misc]
    """kazoo's client with our connection; `timeout` as agreed with the server."""

    def __init__(self, servers: str, timeout: float) -> None:
        retry = KazooRetry(max_tries=-1, delay=CONNECT_PAUSE_SECONDS, backoff=2, max_delay=CONNECT_PAUSE_SECONDS_MAX)
        super().__init__(servers, timeout=timeout, handler=_InPlace(), connection_retry=retry, logger=_kazoo_log)
        self._connection = _Connection(self, self._conn_retry.copy(), logger=_kazoo_log)


class KazooSession:
    """Satisfies `metadata.zookeeper.requests.ZooKeeperSession`. `servers` is `host:port,...` with the chroot after it."""

    def __init__(
        self,
        servers: str,
        timeout_seconds: float,
        events: SessionEvents,
        on_key: Callable[[SessionKey], None] | None = None,
    ) -> None:
        """`on_key` is given, on the loop, what another process needs to end this session."""
        self._loop = asyncio.get_running_loop()
        self._events = events
        self._servers, self._timeout = servers, timeout_seconds
        self._client = _Client(servers, timeout_seconds)
        self._client.add_listener(self._on_state)
        self._client._connection.changed = self._on_changed
        self._is_over = False
        self._clocks_apart = self._loop.time() - time.monotonic()
        self._session_id = 0
        self._on_key = on_key
        self._zxid_when_lost = 0
        self._client.start_async()

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def last_zxid(self) -> int:
        return int(self._client.last_zxid)

    @property
    def zxid_when_lost(self) -> int:
        return self._zxid_when_lost

    @property
    def heard_at(self) -> float:
        heard = self._client._connection.heard_at
        return heard + self._clocks_apart if heard else 0.0

    @property
    def timeout(self) -> float:
        return self._timeout

    def send(self, request: Request, reply: Reply) -> None:
        if self._is_over:
            self._loop.call_soon(reply, ConnectionLost("the session is over"))
            return
        result = self._client.handler.async_result()
        answered = threading.Event()

        def once(done: Any) -> None:  # kazoo fails a request twice when it has no connection to write to
            if not answered.is_set():
                answered.set()
                self._hand_over(reply, _answer(done))

        result.rawlink(once)
        self._client._call(self._wire(request), result)

    def _wire(self, request: Request) -> Any:
        root = self._client.chroot
        if isinstance(request, Multi):
            return MultiRequest(root, request.steps)
        path = root + request.path if request.path != ROOT else root or ROOT
        match request:
            case Get():
                return GetData(path, None)
            case Children():
                return GetChildren2(path, None)
            case AddWatch():
                return AddWatchRequest(path)
            case RemoveWatch():
                return RemoveWatchRequest(path)
            case Sync():
                return SyncRequest(path)

    async def close(self) -> None:
        self._is_over = True
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client._connection.stop(self._timeout)  # for a client that was stopped by the expiry of its session
            self._client.close()
        except (KazooException, OSError) as error:
            _log.warning(line("ZooKeeper session not closed cleanly: the server ends it when its time is out", reason=error))

    # In kazoo's thread

    def _on_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._session_id = self._client._session_id
            if self._on_key is not None:
                self._hand_over(self._on_key, SessionKey(self._servers, self._session_id, self._client._session_passwd))
            self._hand_over(self._events.connected)
        elif state == KazooState.SUSPENDED:
            self._zxid_when_lost = int(self._client.last_zxid)
            self._hand_over(self._events.disconnected)
        elif self._client.client_state == KeeperState.EXPIRED_SESSION:
            self._client._stopped.set()  # or kazoo opens the next session on this client
            self._hand_over(self._events.expired)

    def _on_changed(self, change: Change, path: str) -> None:
        self._hand_over(self._events.changed, change, path)

    def _hand_over(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            self._client._stopped.set()  # nobody is left to be told


def _answer(done: Any) -> Answer | Exception:
    """kazoo's result in the port's words."""
    error = done.exception
    if error is None:
        return _value(done.value)
    if isinstance(error, NoNodeError | NoWatcherError):
        return None  # of a reading request; a multi has its refusals in its answer
    code = getattr(error, "code", None)
    if isinstance(error, ZookeeperError) and code not in _OF_THE_CONNECTION:
        return refusal(int(code or 0), 0, type(error).__name__)
    return ConnectionLost(f"{type(error).__name__} {error}".strip())


_OF_THE_CONNECTION = (-4, -7, -112, -118)
"""Codes that say nothing of the request: connection loss, time-out, session expired, session moved."""


def _value(value: Any) -> Answer | Exception:
    match value:
        case None:
            return None
        case [Refused() as refused]:
            return refused
        case list():
            return tuple(value)
        case (list() as names, stat):
            return Listed(tuple(names), node_stat(stat))
        case (data, stat):
            return Found(data or b"", node_stat(stat))
    raise AssertionError(f"kazoo answered {value!r}")
