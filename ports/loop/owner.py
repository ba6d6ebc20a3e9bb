"""Ways from a part back to its owner that do not keep the owner.

An owner that holds a part, which holds the owner, is a ring: it goes only when the cycle collector looks at it, and a server
sets aside what has lived for a while, where the collector never looks (docs/adr/0029). Of what there can be very many
(topics, subscriptions, cursors, connections) no ring may be left at the end, so a part reaches its owner by one of these.
`python -m tests.leftovers.count_cycles` finds the rings that are left.

A topic has some thirty of these ways: each is a `partial` of one function, a third of the size of a function made for it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import proxy, ref

P = ParamSpec("P")
T = TypeVar("T")


def weakly(owner: T) -> T:
    """The owner with all its members. ReferenceError once it is gone: for parts that nobody uses without holding the owner."""
    found: T = proxy(owner)
    return found


def tell(method: Callable[P, object]) -> Callable[P, None]:
    """Call a method of the owner, whatever it returns; nothing happens once the owner is gone."""
    return partial(_told, *_apart(method))


def ask(method: Callable[P, T]) -> Callable[P, T]:
    """Call a method of the owner for its answer. ReferenceError as `weakly`."""
    return partial(_asked, *_apart(method))


def _told(owner: ref[Any], function: Callable[..., object], /, *args: Any, **kwargs: Any) -> None:
    found = owner()
    if found is not None:
        function(found, *args, **kwargs)


def _asked(owner: ref[Any], function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    found = owner()
    if found is None:
        raise ReferenceError(f"{function.__qualname__}: its object is gone")
    return function(found, *args, **kwargs)


def _apart(method: Any) -> tuple[ref[Any], Callable[..., Any]]:
    """A reference without a callback: all that refer to one object share it."""
    return ref(method.__self__), method.__func__
