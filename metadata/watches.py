"""Watches: the paths that each watcher follows. Each watcher is called on the event loop in the order of the changes."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from metadata.paths import check_path, is_at_or_below
from metadata.store import MetadataStore, Notification

Watcher = Callable[[Notification], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Watch:
    prefix: str
    watcher: Watcher
    context: contextvars.Context


class Watches:
    """The watchers of one tree. A watcher runs in the context in which it began to watch: it may belong to another process
    of a simulation than the one that writes."""

    def __init__(self) -> None:
        self._watches: dict[_Watch, None] = {}

    def add(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        check_path(prefix)
        watch = _Watch(prefix, watcher, contextvars.copy_context())
        self._watches[watch] = None
        return lambda: self._watches.pop(watch, None)

    def tell(self, notifications: Iterable[Notification]) -> None:
        """Soon, so that a watcher never runs inside a write; what it raises goes to the loop's exception handler."""
        if not self._watches:
            return
        loop = asyncio.get_running_loop()
        for notification in notifications:
            for watch in self._watches:
                if is_at_or_below(notification.path, watch.prefix):
                    loop.call_soon(self._call, watch, notification, context=watch.context)

    def _call(self, watch: _Watch, notification: Notification) -> None:
        if watch in self._watches:
            watch.watcher(notification)


async def until(store: MetadataStore, path: str, is_so: Callable[[], Awaitable[bool]], seconds_max: float) -> bool:
    """Wait until `is_so`; False when the time ends before. Errors of `is_so` are raised."""
    changed = asyncio.Event()
    unwatch = store.watch(path, lambda _: changed.set())
    try:
        async with asyncio.timeout(seconds_max):
            while not await is_so():
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return False
    finally:
        unwatch()
    return True
