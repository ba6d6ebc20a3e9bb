"""The requests of one connection that are under way, each a task: their limit, and the handling of failures.

Owns the tasks. A request outlives its connection when that ends first: its work is undone at its end, not cut off. At
REQUESTS_MAX the connection is to stop reading until half of them are answered: it is notified, and asks `is_too_many`. Requests
that make something begin at the pace of the whole server (`Starts`), which also bounds how many of a connection are under way;
those that have not begun when the connection ends never do.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ports.loop.starts import Starts, StartsFull

from ...errors import BrokerError, ServerError
from ..errors import to_broker_error

REQUESTS_MAX = 1000
_GIVEN_UP = BrokerError(ServerError.SERVICE_NOT_READY, "The request was not finished: its topic is being closed")
"""Failure of a request that is cut off, as reads are when their log is closed: it is answered like the others."""


class RequestsUnderWay:
    """Unanswered requests of one connection. `changed` is called when `is_too_many` has changed."""

    def __init__(self, changed: Callable[[], None], starts: Starts) -> None:
        self._changed, self._starts = changed, starts
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._with_start: set[asyncio.Task[None]] = set()
        """Tasks that `Starts` has let begin."""
        self._has_start = False
        """Whether the next task that begins is one of these."""
        self.is_too_many = False

    def begin(self, work: Coroutine[Any, Any, None], on_failure: Callable[[BrokerError], None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        if self._has_start:
            self._has_start = False
            self._with_start.add(task)
        task.add_done_callback(lambda done: self._done(done, on_failure))
        if len(self._tasks) >= REQUESTS_MAX and not self.is_too_many:
            self.is_too_many = True
            self._changed()

    def in_turn(self, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        """A work that makes something, which is begun next: it waits for its turn. TOO_MANY_REQUESTS where too many wait."""
        self._has_start = self._starts.take(id(self))
        return work if self._has_start else self._later(work)

    async def _later(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await self._starts.turn(id(self))
        except StartsFull as error:
            work.close()
            raise BrokerError(ServerError.TOO_MANY_REQUESTS, str(error)) from error
        except BaseException:
            work.close()
            raise
        task = asyncio.current_task()
        assert task is not None
        self._with_start.add(task)
        if self._is_closed:
            work.close()
        else:
            await work

    def close(self) -> None:
        """The connection has ended."""
        self._is_closed = True

    def _done(self, task: asyncio.Task[None], on_failure: Callable[[BrokerError], None]) -> None:
        del self._tasks[task]
        if task in self._with_start:
            self._with_start.remove(task)
            self._starts.ended(id(self))
        failure = _GIVEN_UP if task.cancelled() else task.exception()
        if isinstance(failure, Exception):
            on_failure(to_broker_error(failure))
        if self.is_too_many and 2 * len(self._tasks) <= REQUESTS_MAX:
            self.is_too_many = False
            self._changed()
