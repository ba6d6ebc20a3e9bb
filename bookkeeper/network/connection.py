"""NetworkConnection: the one connection of a kind to one bookie, made when it is needed and again after it was lost.

Makes it within a time limit; after a failed attempt there is a pause in which all requests fail at once, so that a bookie that
is down is not called at each add. Its `Link` speaks on it. Adds that wait for the connection are kept in order.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from bookkeeper.network.link import AWAY, Add, Link
from bookkeeper.network.start_tls import connect
from ports.network.read_buffer import SharedRoom
from ports.network.tls import RenewedTls
from wire.bookie.codes import BookieError

L = TypeVar("L", bound=Link)
LinkMaker = Callable[[str, SharedRoom, float, Callable[[], None]], L]
"""Name of the bookie, room for bytes read, seconds after which an unanswered request ends the link, call at its end."""

PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 2.0
"""After an attempt that failed; each time twice as long."""


class NetworkConnection(Generic[L]):
    """`close` ends it; a call after that fails."""

    def __init__(
        self,
        make_link: LinkMaker[L],
        name: str,
        host: str,
        port: int,
        room: SharedRoom,
        timeout_seconds: float,
        tls: RenewedTls | None = None,
    ) -> None:
        self._make_link, self._name, self._host, self._port, self._room = make_link, name, host, port, room
        self._timeout, self._tls = timeout_seconds, tls
        self._loop = asyncio.get_running_loop()
        self.losses = 0
        """Number of times that the connection was lost."""
        self._link: L | None = None
        self._connecting: asyncio.Future[L] | None = None
        self._queued: list[Add] = []
        """Adds that wait for the connection, in order."""
        self._is_closed = False
        self._pause_seconds, self._paused_until, self._reason = PAUSE_SECONDS, 0.0, ""

    def add(self, add: Add) -> None:
        """Now, or when it is connected; in order."""
        if self._link is not None:
            self._link.add(add)
        else:
            self._queued.append(add)
            self._connect()

    async def link(self, ledger_id: int) -> L:
        """Connected. BookieError AWAY, which names the ledger."""
        if self._link is not None:
            return self._link
        try:
            return await asyncio.shield(self._connect())
        except OSError as error:
            raise BookieError(AWAY, ledger_id, f"{self._name}: {error}") from error

    def close(self) -> None:
        """Close; requests under way fail. Closing twice is fine."""
        self._is_closed = True
        if self._link is not None:
            self._link.end("closed")

    def _connect(self) -> "asyncio.Future[L]":
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._open(), name=f"connect to {self._name}")
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._connecting

    async def _open(self) -> L:
        try:
            link = await self._try_to_open()
        except OSError as error:
            for add in self._take_queued():
                add.future.set_exception(BookieError(AWAY, add.run.ledger_id, f"{self._name}: {error}"))
            raise
        finally:
            self._connecting = None
        self._link = link
        for add in self._take_queued():
            link.add(add)
        return link

    async def _try_to_open(self) -> L:
        self._check_open()
        if self._loop.time() < self._paused_until:
            raise ConnectionError(self._reason)
        try:
            link = await self._open_link()
        except OSError as error:
            self._reason, self._paused_until = str(error), self._loop.time() + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)
            raise
        self._pause_seconds = PAUSE_SECONDS
        try:
            self._check_open()
        except ConnectionError as closed:  # while it was made
            link.end(str(closed))
            raise
        return link

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionError("closed")

    async def _open_link(self) -> L:
        try:
            async with asyncio.timeout(self._timeout):
                return await connect(self._new_link, self._host, self._port, self._tls)
        except TimeoutError:
            raise ConnectionError(f"no connection in {self._timeout:g} s") from None
        except (UnicodeError, OverflowError) as error:  # as the bookie itself registered it
            raise ConnectionError(f"{self._host}:{self._port} is no address: {error}") from error

    def _new_link(self) -> L:
        return self._make_link(self._name, self._room, self._timeout, self._lost)

    def _take_queued(self) -> list[Add]:
        """Queued adds whose futures are not done."""
        queued, self._queued = self._queued, []
        return [add for add in queued if not add.future.done()]

    def _lost(self) -> None:
        self._link = None
        self.losses += 1
