"""Ways from a part back to its owner that do not keep the owner.

An owner that holds a part, which holds the owner, is a ring: it goes only when the cycle collector looks at it, and a server
sets aside what has lived for a while, where the collector never looks (docs/adr/0029). Of what there can be very many
(topics, subscriptions, cursors, connections) no ring may be left at the end, so a part reaches its owner by one of these.
`python -m tests.leftovers.count_cycles` finds the rings that are left.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod, proxy

P = ParamSpec("P")
T = TypeVar("T")


def weakly(owner: T) -> T:
    """The owner with all its members. ReferenceError once it is gone: for parts that nobody uses without holding the owner."""
    found: T = proxy(owner)
    return found


def tell(method: Callable[P, object]) -> Callable[P, None]:
    """Call a method of the owner, whatever it returns; nothing happens once the owner is gone."""
    reference = WeakMethod(method)

    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        found = reference()
        if found is not None:
            found(*args, **kwargs)

    return told


def ask(method: Callable[P, T]) -> Callable[P, T]:
    """Call a method of the owner for its answer. ReferenceError as `weakly`."""
    reference = WeakMethod(method)

    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        found = reference()
        if found is None:
            raise ReferenceError(f"the owner of {method_name} is gone")
        return found(*args, **kwargs)

    method_name = getattr(method, "__qualname__", "a method")
    return asked
