"""The policies of topics: Apache's TopicPolicies documents, as stored in `__change_events` of each namespace. Owns the
documents of the namespaces that have topics here; each is read whole before `load` returns and followed from then on. Effects
of policies are not decided here (`broker.policies.policies`). Names are TopicPolicies' fields (maxProducerPerTopic, ...).
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from metadata.store import MetadataStore
from ports.clock import Clock

from ...errors import BrokerError, ServerError
from ..system_topics.event_log import EventLog
from ..topic_name import NamespaceName, TopicName
from .topic_policies_avro import BadAvro
from .topic_policies_events import PolicyEvent, message_of, new_document
from .topic_policies_followed import FollowedNamespace

OpenLog = Callable[[NamespaceName, bool], Awaitable[EventLog | None]]
"""The log of a namespace; None when there is none and it is not to be made. BrokerError."""

Document = Mapping[str, Any]


class TopicPolicyDocuments:
    """Topic policies that this broker knows."""

    def __init__(self, store: MetadataStore, cluster: str, clock: Clock, open_log: OpenLog) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._open_log = open_log
        self._followed: dict[NamespaceName, FollowedNamespace] = {}
        self._listeners: dict[int, Callable[[TopicName], None]] = {}
        self._turn = asyncio.Lock()

    async def load(self, namespace: NamespaceName) -> None:
        """See to it that `of` knows the namespace's topics. BrokerError when they cannot be read."""
        followed = self._followed.get(namespace)
        if followed is None:
            followed = FollowedNamespace(namespace, self._store, self._open_log, self._changed)
            self._followed[namespace] = followed
        await followed.read()

    def of(self, topic: TopicName) -> Document:
        """Returns the policies in force: this cluster's over those of all clusters, field by field. A partition has those of
        its topic."""
        local, everywhere = self.document(topic), self.document(topic, is_global=True)
        if not everywhere:
            return local
        return {**everywhere, **{name: value for name, value in local.items() if value not in ({}, [])}}

    def document(self, topic: TopicName, *, is_global: bool = False) -> Document:
        """Returns the stored document; empty when there is none. Do not change it. After `load`."""
        followed = self._followed.get(topic.namespace)
        return {} if followed is None else followed.documents.get((str(topic.partitioned), is_global), {})

    async def change(self, topic: TopicName, edit: Callable[[dict[str, Any]], None], *, is_global: bool = False) -> None:
        """Stores the result of `edit` on the document (it may raise). The result is in force here at return; an unchanged
        document is not stored. BrokerError.
        """
        async with self._turn:
            await self.load(topic.namespace)
            found = self.document(topic, is_global=is_global)
            before = dict(found) or new_document(is_global=is_global)
            document = copy.deepcopy(before)
            edit(document)
            kept = {name: value for name, value in document.items() if value is not None}
            if kept == before:
                return
            await self._write(topic, PolicyEvent(str(topic.partitioned), is_global, kept))

    async def remove(self, topic: TopicName) -> None:
        """All policies of the topic, those of all clusters too."""
        async with self._turn:
            await self.load(topic.namespace)
            for is_global in (False, True):
                if self.document(topic, is_global=is_global):
                    await self._write(topic, PolicyEvent(str(topic.partitioned), is_global, None))

    def watch(self, listener: Callable[[TopicName], None]) -> Callable[[], None]:
        """Told of each topic (never of a partition) whose documents have changed; returns the call that ends it."""
        key = max(self._listeners, default=0) + 1
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def forget(self, namespace: NamespaceName) -> None:
        """Read it anew when it is asked for again: the namespace was deleted, or has no topics here any more."""
        followed = self._followed.pop(namespace, None)
        if followed is not None:
            followed.close()

    def close(self) -> None:
        for namespace in list(self._followed):
            self.forget(namespace)

    async def _write(self, topic: TopicName, event: PolicyEvent) -> None:
        log = await self._open_log(topic.namespace, True)
        assert log is not None
        try:
            position = await log.append(lambda name: message_of(event, self._cluster, name, 0, self._clock.now_ms()))
        except BadAvro as error:
            raise BrokerError(ServerError.METADATA, f"a policy of {topic} cannot be stored: {error}") from error
        await self._followed[topic.namespace].read_through(position)

    def _changed(self, topic: str) -> None:
        name = TopicName.parse(topic)
        for listener in list(self._listeners.values()):
            listener(name)
