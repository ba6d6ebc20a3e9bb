"""Ways from a part back to its owner that do not keep the owner.

An owner that holds a part, which holds the owner, is a ring: it goes only when the cycle collector looks at it, and a server
sets aside long-lived objects, where the collector never looks (docs/adr/0029). Numerous objects (topics,
subscriptions, cursors, connections) must leave no ring at the end, so a part reaches its owner by one of these.
`python -m tests.leftovers.count_cycles` finds the rings that are left.

A topic has some thirty of these ways: each is an object of two fields, a quarter of the size of a function made for it.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import proxy, ref

P = ParamSpec("P")
T = TypeVar("T")


def weakly(owner: T) -> T:
    """The owner with all its members. ReferenceError once it is gone: for parts whose users hold the owner."""
    found: T = proxy(owner)
    return found


def tell(method: Callable[P, object]) -> Callable[P, None]:
    """Call a method of the owner, whatever it returns; nothing happens once the owner is gone."""
    return _Told(method)


def ask(method: Callable[P, T]) -> Callable[P, T]:
    """Call a method of the owner for its answer. ReferenceError as `weakly`."""
    return _Asked(method)


class _Way:
    """A method, and a reference to its object without a callback: all that refer to one object share it."""

    __slots__ = ("_function", "_owner")

    def __init__(self, method: Any) -> None:
        self._owner: ref[Any] = ref(method.__self__)
        self._function: Callable[..., Any] = method.__func__


class _Told(_Way):
    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> None:
        owner = self._owner()
        if owner is not None:
            self._function(owner, *args, **kwargs)


class _Asked(_Way):
    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        owner = self._owner()
        if owner is None:
            raise ReferenceError(f"{self._function.__qualname__}: its object is gone")
        return self._function(owner, *args, **kwargs)
