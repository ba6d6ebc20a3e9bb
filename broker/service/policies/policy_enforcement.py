"""Puts policies in force on loaded topics: those of their namespace and their own, when either changes.

Relies on `NamespacePolicies` and `TopicPolicyDocuments` to know both, also where another broker changed them. The topic gives a
policy its effect.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ports.logs import line
from ports.loop.slices import do_in_slices
from ports.loop.taking_apart import items_taken_apart

from ...errors import BrokerError
from ...policies.documents import from_topic_document
from ...policies.policies import EXEMPT, NOTHING_GOES, NOTHING_SAID, TopicPolicies
from ...topic.contract import Topic
from ..catalogue.loaded_topics import LoadedTopics
from ..topic_name import NamespaceName, TopicName
from .namespace_policies import NamespacePolicies
from .topic_policies import TopicPolicyDocuments

log = logging.getLogger(__name__)

_SLICE = 50
"""Topics that one turn of the loop may be spent on."""
_COMPACTED_NAMES = ("__transaction_buffer_snapshot", "__transaction_buffer_snapshot_indexes")
"""System topics that grow all the time and that need only the last message of each key. Segments are all needed in their
place: an index names it.
"""
_COMPACTED = replace(EXEMPT, compaction_threshold_bytes=1 << 20)


def put_in_force_on_system(name: TopicName, topic: Topic) -> None:
    """Exempts a system topic from all policies but compaction."""
    topic.upkeep.apply(_COMPACTED if name.local_name in _COMPACTED_NAMES else EXEMPT)


class PolicyEnforcement:
    """On the topics of one broker."""

    def __init__(self, namespaces: NamespacePolicies, documents: TopicPolicyDocuments, loaded: LoadedTopics) -> None:
        self.namespaces, self.documents = namespaces, documents
        self._topics = loaded
        namespaces.apply_with(self._namespace_changed)
        self._unwatch = documents.watch(self._topic_changed)

    def close(self) -> None:
        self._unwatch()
        self.namespaces.close()
        self.documents.close()

    async def said_of(self, topic: TopicName) -> tuple[TopicPolicies, TopicPolicies]:
        """Returns the topic's own policies, as far as they are known here, and its namespace's. BrokerError(METADATA)."""
        namespace = await self.namespaces.read(topic.namespace)
        return self._own(topic), namespace

    def put_in_force(self, name: TopicName, topic: Topic) -> None:
        """On a topic, before anybody gets to see it; after `NamespacePolicies.read` of its namespace."""
        if name.is_system:
            put_in_force_on_system(name, topic)
        else:
            topic.upkeep.apply(self.namespaces.of(name.namespace), self._own(name))

    async def settings_changed(self) -> None:
        """The broker's own are other ones now."""
        await self._each(lambda name: True)

    async def _namespace_changed(self, namespace: NamespaceName) -> None:
        start = f"persistent://{namespace}/"
        await self._each(lambda name: name.removeprefix("non-").startswith(start))

    async def _each(self, concerns: Callable[[str], bool]) -> None:
        for place, (name, topic) in enumerate(items_taken_apart(self._topics.all)):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            if concerns(name):
                self.put_in_force(TopicName.parse(name), topic)

    def _topic_changed(self, topic: TopicName) -> None:
        """Put in force on the topic at once, and on its partitions that are loaded in slices."""
        self._put_on_loaded(str(topic))
        start = f"{topic}-partition-"
        partitions = (name for name in list(self._topics.all) if name.startswith(start))
        do_in_slices((partial(self._put_on_loaded, name) for name in partitions), lambda: None, _SLICE)

    def _put_on_loaded(self, name: str) -> None:
        """Puts policies in force on a topic, unless it was unloaded meanwhile."""
        topic = self._topics.all.get(name)
        if topic is not None:
            self.put_in_force(TopicName.parse(name), topic)

    def _own(self, topic: TopicName) -> TopicPolicies:
        """Returns the topic's own policies. An unreadable document is not in force: namespace policies hold, and nothing is
        deleted."""
        document = self.documents.of(topic)
        if not document:
            return NOTHING_SAID
        try:
            return from_topic_document(document)
        except BrokerError as error:
            what = "a topic's policies cannot be read and are not in force: until they are set anew nothing of it is deleted"
            log.error(line(what, topic=topic, error=error))
            return NOTHING_GOES
