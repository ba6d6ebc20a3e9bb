"""SessionDriver: performs what the session machine says, and is the one door to the current session.

Owns the sessions, one after another, the clock that measures their silence, and the waiting for a connection.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from metadata.sessions import SessionListener
from metadata.store import Change
from metadata.zookeeper.requests import ConnectionLost, OpenSession, Reply, Request, ZooKeeperSession
from metadata.zookeeper.session import (
    Closed,
    Connected,
    Disconnected,
    Event,
    Expired,
    OpenNext,
    Resume,
    SessionMachine,
    State,
    Tell,
    Ticked,
)
from ports.logs import line

_log = logging.getLogger(__name__)

TICKS_PER_TIMEOUT = 12
"""Measurements of silence per timeout: noticed a twelfth late, silence still leaves listeners half of the intended time."""


class _Events:
    """Events of one session, for as long as it is the current one."""

    def __init__(self, driver: "SessionDriver") -> None:
        self._driver = driver
        self.is_current = True

    def connected(self) -> None:
        self._pass_on(Connected())

    def disconnected(self) -> None:
        self._pass_on(Disconnected())

    def expired(self) -> None:
        self._pass_on(Expired())

    def changed(self, change: Change, path: str) -> None:
        if self.is_current:
            self._driver.changed(change, path)

    def _pass_on(self, event: Event) -> None:
        if self.is_current:
            self._driver.handle(event)


class SessionDriver:
    """`resume` is called when requests may be sent again, with the newest zxid seen before, `changed` with each watch event."""

    def __init__(
        self, open_session: OpenSession, resume: Callable[[int], None], changed: Callable[[Change, str], None]
    ) -> None:
        self._open_session, self._resume, self.changed = open_session, resume, changed
        self._machine = SessionMachine()
        self._listeners: dict[int, SessionListener] = {}
        self._listeners_so_far = 0
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._seen_zxid = 0
        self._events = _Events(self)
        self._session: ZooKeeperSession = open_session(self._events)
        self._ticker = asyncio.get_running_loop().call_later(self._tick_seconds, self._tick)

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def last_zxid(self) -> int:
        """The newest transaction that any session has shown."""
        return max(self._seen_zxid, self._session.last_zxid)

    @property
    def is_connected(self) -> bool:
        return self._machine.can_send

    def send(self, request: Request, reply: Reply) -> None:
        if self._machine.can_send:
            self._session.send(request, reply)
        else:
            asyncio.get_running_loop().call_soon(reply, ConnectionLost("not connected"))

    async def until_connected(self, deadline: float) -> None:
        """TimeoutError at the deadline (the loop's clock)."""
        while not self._machine.can_send:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = None
            try:
                async with asyncio.timeout_at(deadline):
                    await waiter
            finally:
                self._waiting.pop(waiter, None)

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        self._listeners_so_far += 1
        number = self._listeners_so_far
        self._listeners[number] = listener
        return lambda: self._end_listener(number)

    def _end_listener(self, number: int) -> None:
        self._listeners.pop(number, None)

    def handle(self, event: Event) -> None:
        before = self._machine.state
        effects = self._machine.handle(event)
        if self._machine.state is not before:
            self._log_state(before)
        for effect in effects:
            match effect:
                case Tell():
                    for listener in list(self._listeners.values()):
                        listener(effect.event)
                case Resume():
                    self._let_go()
                case OpenNext():
                    self._open_next()

    def _log_state(self, before: State) -> None:
        after = self._machine.state
        level = logging.WARNING if after in (State.SUSPENDED, State.PRESUMED_LOST, State.LOST) else logging.INFO
        session = f"0x{self.session_id & 0xFFFFFFFFFFFFFFFF:x}"
        _log.log(level, line("ZooKeeper session", state=after.value, was=before.value, session=session))

    def _let_go(self) -> None:
        """Resume the watches first: a waiting caller may rely on news of changes after its request."""
        self._seen_zxid = max(self._seen_zxid, self._session.zxid_when_lost)
        self._resume(self._seen_zxid)
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _open_next(self) -> None:
        self._seen_zxid = max(self._seen_zxid, self._session.zxid_when_lost)
        self._events.is_current = False
        self._end(self._session)
        self._events = _Events(self)
        self._session = self._open_session(self._events)

    def _end(self, session: ZooKeeperSession) -> None:
        task = asyncio.get_running_loop().create_task(session.close(), name="end of a ZooKeeper session")
        self._ending[task] = None
        task.add_done_callback(partial(self._ending.pop))

    @property
    def _tick_seconds(self) -> float:
        return self._session.timeout / TICKS_PER_TIMEOUT

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        if self._session.heard_at:
            self.handle(Ticked(loop.time() - self._session.heard_at, self._session.timeout))
        if self._machine.state is not State.CLOSED:
            self._ticker = loop.call_later(self._tick_seconds, self._tick)

    async def close(self) -> None:
        if self._machine.state is not State.CLOSED:
            self._ticker.cancel()
            self.handle(Closed())
            self._events.is_current = False
            self._end(self._session)
        while self._ending:
            await asyncio.wait(list(self._ending))
