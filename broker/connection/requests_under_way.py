"""The requests of one connection that are under way, each a task: how many there may be, and who hears of a failure.

Owns the tasks. A request outlives its connection when that ends first: what it began is undone at its end, not cut off. At
REQUESTS_MAX the connection is to stop reading until half of them are answered: it is told, and asks `is_too_many`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import BrokerError, ServerError
from .errors import to_broker_error

REQUESTS_MAX = 1000
_GIVEN_UP = BrokerError(ServerError.SERVICE_NOT_READY, "What the request waited for has ended: the topic is being closed")
"""Of a request that is cut off, as reads are when their log is closed: it is answered like the others."""


class RequestsUnderWay:
    """Of one connection. `changed` is called when `is_too_many` has changed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.is_too_many = False

    def begin(self, work: Coroutine[Any, Any, None], on_failure: Callable[[BrokerError], None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._done(done, on_failure))
        if len(self._tasks) >= REQUESTS_MAX and not self.is_too_many:
            self.is_too_many = True
            self._changed()

    def _done(self, task: asyncio.Task[None], on_failure: Callable[[BrokerError], None]) -> None:
        del self._tasks[task]
        failure = _GIVEN_UP if task.cancelled() else task.exception()
        if isinstance(failure, Exception):
            on_failure(to_broker_error(failure))
        if self.is_too_many and 2 * len(self._tasks) <= REQUESTS_MAX:
            self.is_too_many = False
            self._changed()
