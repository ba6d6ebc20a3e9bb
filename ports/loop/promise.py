"""Promise: a future whose listeners get a result at once, in the stack of the call that gives it.

asyncio's futures tell each callback in the next turn of the loop: a handle, a context and a look at the sockets for every link
of a chain. A run passes five such links between the disk and the socket; with promises it passes them in one turn.
Failures and cancellations are told in the next turn, as asyncio does it: they are not urgent, and code that fails many
promises in a row need not expect to be called back in the middle of it.
A listener must not raise (the loop's exception handler gets the error), and its caller may be in the middle of its work.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
_set_result = asyncio.Future.set_result


class Promise(asyncio.Future[T]):
    """Awaitable like any future. Listeners come first, in the order in which they came, then asyncio's callbacks."""

    _listeners: "tuple[Callable[[asyncio.Future[T]], object], ...]" = ()

    def listen(self, listener: "Callable[[asyncio.Future[T]], object]") -> None:
        """Call it with this promise; in the next turn when that is done already."""
        if self.done():
            self.add_done_callback(listener)
        else:
            self._listeners += (listener,)

    def ignore(self, listener: "Callable[[asyncio.Future[T]], object]") -> None:
        """Remove a listener."""
        self._listeners = tuple(each for each in self._listeners if each != listener)
        self.remove_done_callback(listener)

    def set_result(self, result: T) -> None:
        _set_result(self, result)
        listeners = self._listeners
        if listeners:
            self._listeners = ()
            for listener in listeners:
                try:
                    listener(self)
                except Exception as error:  # noqa: BLE001  # as the loop does it for callbacks
                    self._raised(listener, error)

    def set_exception(self, exception: type | BaseException) -> None:
        self.tell_later()
        super().set_exception(exception)

    def cancel(self, msg: Any | None = None) -> bool:
        self.tell_later()
        return super().cancel(msg)

    def _raised(self, listener: "Callable[[asyncio.Future[T]], object]", error: Exception) -> None:
        self.get_loop().call_exception_handler({"message": f"{listener} raised", "exception": error, "future": self})

    def tell_later(self) -> None:
        """Listeners are called in the next turn, as asyncio's callbacks are."""
        for listener in self.take_listeners():
            self.add_done_callback(listener)

    def take_listeners(self) -> "tuple[Callable[[asyncio.Future[T]], object], ...]":
        """Take the listeners away."""
        listeners, self._listeners = self._listeners, ()
        return listeners


def promises(loop: asyncio.AbstractEventLoop) -> "Callable[[], Promise[Any]]":
    """Factory of promises on this loop. A loop with promises of its own (the simulation's) makes those."""
    own: Callable[[], Promise[Any]] | None = getattr(loop, "create_promise", None)
    return own if own is not None else partial(Promise, loop=loop)


def listen(future: "asyncio.Future[T]", listener: "Callable[[asyncio.Future[T]], object]") -> None:
    """Listen to a promise in its own way; to any other future as futures do."""
    if isinstance(future, Promise):
        future.listen(listener)
    else:
        future.add_done_callback(listener)


def ignore(future: "asyncio.Future[T]", listener: "Callable[[asyncio.Future[T]], object]") -> None:
    """Undo `listen`."""
    if isinstance(future, Promise):
        future.ignore(listener)
    else:
        future.remove_done_callback(listener)
