"""Watchers of topic lists (WATCH_TOPIC_LIST): notified of new and deleted topics of a namespace.

Owns the watch on the metadata store, one per namespace that is watched. Knows nothing of connections: a watcher is a callback.
Changes are sent together after NOTICE_SECONDS, because each notice carries a hash over the whole list. One task for each
namespace notifies its watchers, one after the other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from metadata.store import Change, MetadataStore, Notification
from ports.logs import line
from ports.loop.slices import in_slices

from ..topic_name import NamespaceName, TopicName, persistent_topics_path
from .topic_lists import NAMES_PER_SLICE, Pattern, is_matched, topics_hash

log = logging.getLogger(__name__)

NOTICE_SECONDS = 0.05

NAMES_PER_NOTICE_SECOND = 100_000
"""A notice about a long list waits longer: the hash over so many names is a fifth of a second of work, in slices."""
TopicListListener = Callable[[list[str], list[str], str], Awaitable[Callable[[], None]]]
"""New topics, deleted topics, hash of the whole list; returns the call that sends them."""


class TopicListWatcher:
    """Topics that one peer watches, and the list that it was sent last.

    Made before the list is read, so that no change is lost in between; `begin` gives the list.
    """

    def __init__(self, pattern: Pattern, listener: TopicListListener) -> None:
        self.pattern = pattern
        self._told: dict[str, None] | None = None
        self._changes: dict[str, bool] = {}
        self._listener = listener
        self._has_ended = False

    def begin(self, topics: Iterable[str]) -> None:
        self._told = dict.fromkeys(topics)

    @property
    def told_count(self) -> int:
        return len(self._told or ())

    async def heard(self, changes: Mapping[TopicName, Change]) -> None:
        """Reports the changes of the namespace since the last report. In slices; `changes` stays unchanged meanwhile."""
        async for topic, change in in_slices(changes.items(), NAMES_PER_SLICE):
            if is_matched(topic, self.pattern):
                self._changes[str(topic)] = change is Change.CREATED

    def end(self) -> None:
        """Ends all notifications."""
        self._has_ended = True

    async def tell(self) -> bool:
        """Sends the changes since the last time; False while the list is still being read. One call at a time."""
        told = self._told
        if told is None:
            return self._has_ended
        new, deleted = await self._take_changes(told)
        if (new or deleted) and not self._has_ended:
            tell = await self._listener(new, deleted, await topics_hash(list(told)))
            if not self._has_ended:
                tell()
        return True

    async def _take_changes(self, told: dict[str, None]) -> tuple[list[str], list[str]]:
        new, deleted = list[str](), list[str]()
        changes, self._changes = self._changes, {}
        async for name, is_there in in_slices(changes.items(), NAMES_PER_SLICE):
            if is_there and name not in told:
                told[name] = None
                new.append(name)
            elif not is_there and name in told:
                del told[name]
                deleted.append(name)
        return new, deleted


@dataclass(frozen=True, slots=True)
class WatchedTopics:
    """Start of a watch. `begin`: the peer has these, and gets changes. `end`: it gets no more; twice is fine."""

    topics: list[str]
    hash: str
    begin: Callable[[], None]
    end: Callable[[], None]


class TopicWatchers:
    """All watchers of this broker."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._watchers: dict[NamespaceName, dict[TopicListWatcher, None]] = {}
        self._unwatch: dict[NamespaceName, Callable[[], None]] = {}
        self._tellers: dict[NamespaceName, asyncio.Task[None]] = {}
        self._untold: dict[NamespaceName, dict[TopicName, Change]] = {}
        """Changes by namespace that its task has still to send: the last one of each topic; one entry for a topic."""

    def add(self, namespace: NamespaceName, watcher: TopicListWatcher) -> Callable[[], None]:
        """Returns the call that ends it; calling that twice is fine."""
        watchers = self._watchers.setdefault(namespace, {})
        if not watchers:
            path = persistent_topics_path(namespace)
            self._unwatch[namespace] = self._store.watch(path, lambda change: self._notified(namespace, path, change))
        watchers[watcher] = None
        return lambda: self._remove(namespace, watcher)

    def _remove(self, namespace: NamespaceName, watcher: TopicListWatcher) -> None:
        watchers = self._watchers.get(namespace, {})
        if watcher not in watchers:
            return
        watcher.end()
        del watchers[watcher]
        if not watchers:
            del self._watchers[namespace]
            self._unwatch.pop(namespace)()

    def _notified(self, namespace: NamespaceName, path: str, notification: Notification) -> None:
        encoded = notification.path[len(path) + 1 :]
        if not encoded or "/" in encoded or notification.change is Change.MODIFIED:
            return
        topic = TopicName.of_metadata("persistent", namespace, encoded)
        if topic.is_system:
            return
        self._untold.setdefault(namespace, {})[topic] = notification.change
        self._tell_soon(namespace)

    def _tell_soon(self, namespace: NamespaceName) -> None:
        if namespace not in self._tellers:
            task = self._tellers[namespace] = asyncio.get_running_loop().create_task(self._tell(namespace), name="topic list")
            task.add_done_callback(lambda done: self._ended(namespace, done))

    async def _tell(self, namespace: NamespaceName) -> None:
        while namespace in self._untold:
            watchers = self._watchers.get(namespace, {})
            await asyncio.sleep(max(NOTICE_SECONDS, sum(each.told_count for each in watchers) / NAMES_PER_NOTICE_SECOND))
            changes, is_all_told = self._untold.pop(namespace), True
            for watcher in tuple(self._watchers.get(namespace, ())):
                await watcher.heard(changes)
                is_all_told &= await watcher.tell()
            if not is_all_told:
                self._untold.setdefault(namespace, {})

    def _ended(self, namespace: NamespaceName, teller: "asyncio.Task[None]") -> None:
        self._tellers.pop(namespace, None)
        if not teller.cancelled() and teller.exception() is not None:
            log.error(
                line("a watcher of a topic list was not notified of changes", namespace=namespace), exc_info=teller.exception()
            )

    def close(self) -> None:
        for unwatch in self._unwatch.values():
            unwatch()
        for teller in self._tellers.values():
            teller.cancel()
        self._unwatch.clear()
        self._watchers.clear()
