"""Watchers of topic lists (WATCH_TOPIC_LIST): told of topics of a namespace that appear and go.

Owns the watch on the metadata store, one per namespace that is watched. Knows nothing of connections: a watcher is a callback.
Changes are told together after NOTICE_SECONDS, because each notice carries a hash over the whole list.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from metadata.store import Change, MetadataStore, Notification
from ports.slices import do_in_slices

from .topic_lists import Pattern, is_matched, topics_hash
from .topic_name import NamespaceName, TopicName, persistent_topics_path

NOTICE_SECONDS = 0.05

TopicListListener = Callable[[list[str], list[str], str], None]
"""New topics, deleted topics, hash of the whole list."""


class TopicListWatcher:
    """What one peer watches, and what it was told last. Pure.

    Made before the list is read, so that no change is lost in between; `begin` says what the list was.
    """

    def __init__(self, pattern: Pattern, listener: TopicListListener) -> None:
        self.pattern = pattern
        self._told: dict[str, None] | None = None
        self._changes: dict[str, bool] = {}
        self._listener = listener

    def begin(self, topics: Iterable[str]) -> None:
        self._told = dict.fromkeys(topics)

    def changed(self, change: Change, topic: TopicName) -> None:
        if is_matched(topic, self.pattern):
            self._changes[str(topic)] = change is Change.CREATED

    def tell(self) -> bool:
        """What has changed since the last time, if anything has; False while the list is still being read."""
        told = self._told
        if told is None:
            return False
        new = [name for name, is_there in self._changes.items() if is_there and name not in told]
        deleted = [name for name, is_there in self._changes.items() if not is_there and name in told]
        self._changes.clear()
        told.update(dict.fromkeys(new))
        for name in deleted:
            del told[name]
        if new or deleted:
            self._listener(new, deleted, topics_hash(list(told)))
        return True


class TopicWatchers:
    """All watchers of this broker."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._watchers: dict[NamespaceName, dict[TopicListWatcher, None]] = {}
        self._unwatch: dict[NamespaceName, Callable[[], None]] = {}
        self._notices: dict[NamespaceName, asyncio.TimerHandle] = {}

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
        for watcher in self._watchers.get(namespace, ()):
            watcher.changed(notification.change, topic)
        self._tell_soon(namespace)

    def _tell_soon(self, namespace: NamespaceName) -> None:
        if namespace not in self._notices:
            loop = asyncio.get_running_loop()
            self._notices[namespace] = loop.call_later(NOTICE_SECONDS, self._tell, namespace)

    def _tell(self, namespace: NamespaceName) -> None:
        """One watcher in a turn of the loop: each has a whole list to be hashed."""
        del self._notices[namespace]
        told: list[bool] = []

        def tell(watcher: TopicListWatcher) -> None:
            told.append(watcher not in self._watchers.get(namespace, {}) or watcher.tell())

        def then() -> None:
            if not all(told):
                self._tell_soon(namespace)

        do_in_slices([partial(tell, watcher) for watcher in self._watchers.get(namespace, ())], then, at_a_time=1)

    def close(self) -> None:
        for unwatch in self._unwatch.values():
            unwatch()
        for notice in self._notices.values():
            notice.cancel()
        self._unwatch.clear()
        self._notices.clear()
        self._watchers.clear()
