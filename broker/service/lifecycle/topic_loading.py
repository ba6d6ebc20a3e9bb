"""Loading of topics that this broker owns. Policies are in force on a topic before anybody else gets it."""

from collections.abc import Callable
from functools import partial

from ...errors import BrokerError
from ...topic.contract import OpenTopic, Topic
from ..lookup import Lookup, heartbeat_topic
from ..policies.policy_enforcement import put_in_force_on_system
from ..system_topics.system_logs import add_compaction_cursor
from ..topic_name import TopicName
from .creation_rules import CreationRules

PutInForce = Callable[[TopicName, Topic], None]
"""Puts policies in force on a topic that was opened."""


class TopicLoading:
    """Loader of one broker. Policies of single topics are not read here: they are in system topics, which are loaded here."""

    def __init__(self, open_topic: OpenTopic, lookup: Lookup, rules: CreationRules) -> None:
        self._open_topic, self._lookup, self._rules = open_topic, lookup, rules
        self._catalogue = rules.catalogue

    async def load(self, topic: TopicName, may_create: bool, put_in_force: PutInForce) -> Topic:
        """Returns the topic, created if missing and `may_create`. TopicElsewhere; BrokerError."""
        self._lookup.require_owned(topic)
        if may_create and not await self._catalogue.topic_exists(topic):
            await self._catalogue.namespaces.require_growing(topic.namespace)
            await self._rules.require_room(topic, 1)
        return await self._catalogue.loaded.load(topic, partial(self._open, topic, may_create, put_in_force))

    async def load_system(self, topic: TopicName, may_create: bool) -> Topic:
        """Returns a system topic, as `load`."""
        return await self.load(topic, may_create, put_in_force_on_system)

    async def load_heartbeat(self, put_in_force: PutInForce) -> Topic:
        """Returns the topic of this broker's health check. The topic's namespace does not exist in metadata."""
        topic = heartbeat_topic(self._lookup.advertised)
        return await self._catalogue.loaded.load(topic, partial(self._open, topic, True, put_in_force))

    async def _open(self, topic: TopicName, may_create: bool, put_in_force: PutInForce) -> Topic:
        await self._rules.policies.read(topic.namespace)
        self._lookup.require_owned(topic)
        opened = await self._open_topic(str(topic), topic.managed_ledger_name, topic.partition_index, create=may_create)
        try:
            await self._check_alone(topic)
            self._lookup.require_owned(topic)  # it may have been given up while it was opened
        except BrokerError:
            await opened.close()
            raise
        await add_compaction_cursor(topic, opened)
        put_in_force(topic, opened)
        return opened

    async def _check_alone(self, topic: TopicName) -> None:
        """Raises BrokerError when a non-persistent topic became a partitioned one meanwhile (`partitioned_creation`)."""
        if not topic.is_persistent and not topic.is_partition:
            await self._catalogue.partitioned_topics.check_consistent(topic)
