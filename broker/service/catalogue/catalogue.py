"""Catalogue: namespaces, topics and partitioned topics that exist, and lists of their names. Creates and loads no topic.

Owns the watchers of topic lists. Topics are stored in metadata; topics that are not persistent exist where they are loaded.
"""

from collections.abc import Mapping

from metadata.store import MetadataStore

from ...topic.contract import Topic
from ..topic_name import NamespaceName, TopicName, persistent_topics_path
from .loaded_topics import LoadedTopics
from .namespaces import Namespaces, listed
from .partitions import PartitionedTopics
from .topic_kinds import non_persistent_of, persistent_of
from .topic_lists import Pattern, matching, topics_hash
from .topic_watchers import TopicListListener, TopicListWatcher, TopicWatchers, WatchedTopics


class Catalogue:
    """Catalogue of one broker, on its metadata store."""

    def __init__(self, store: MetadataStore, loaded: LoadedTopics, partitions_max: int) -> None:
        """`partitions_max`: partitions that one topic may have; 0: no limit."""
        self.store = store
        self.namespaces = Namespaces(store)
        self.partitioned_topics = PartitionedTopics(store, partitions_max)
        self.loaded = loaded
        self._watchers = TopicWatchers(store)

    def close(self) -> None:
        """Ends all watches."""
        self._watchers.close()

    @property
    def loaded_topics(self) -> Mapping[str, Topic]:
        """Loaded topics by full name. Read only."""
        return self.loaded.all

    def loaded_topic(self, topic: TopicName) -> Topic | None:
        return self.loaded.get(str(topic))

    async def topic_exists(self, topic: TopicName) -> bool:
        """Whether a topic of exactly this name is loaded or stored."""
        return self.loaded.get(str(topic)) is not None or await self.store.exists(topic.managed_ledger_path)

    async def is_promised(self, topic: TopicName) -> bool:
        """Whether the topic exists, or is a partition of a topic that has so many."""
        if await self.topic_exists(topic):
            return True
        return topic.is_partition and topic.partition_index < (await self.partitioned_topics.get(topic.partitioned)).partitions

    async def stored_count(self, namespace: NamespaceName) -> int:
        """Number of stored topics of a namespace, its system topics too."""
        return len(await self.store.children(persistent_topics_path(namespace)))

    async def list_topics(self, namespace: NamespaceName, *, system_topics: bool = False) -> list[TopicName]:
        """Persistent topics, partitions one by one, in the order of their encoded names."""
        await self.namespaces.require(namespace)
        names = await self.store.children(persistent_topics_path(namespace))
        return await persistent_of(namespace, names, system_topics=system_topics)

    async def list_non_persistent(self, namespace: NamespaceName) -> list[TopicName]:
        """Non-persistent topics that are loaded here: no other place knows them (getListOfNonPersistentTopics)."""
        await self.namespaces.require(namespace)
        return await non_persistent_of(namespace, list(self.loaded.all))

    async def watch_topics(self, namespace: NamespaceName, pattern: Pattern, listener: TopicListListener) -> WatchedTopics:
        """Returns the topics that match now; `listener` is notified of changes once the watcher has begun."""
        watcher = TopicListWatcher(pattern, listener)
        unwatch = self._watchers.add(namespace, watcher)
        try:
            topics = await matching(await listed(self.list_topics(namespace)), pattern)
            return WatchedTopics(topics, await topics_hash(topics), lambda: watcher.begin(topics), unwatch)
        except BaseException:
            unwatch()
            raise
