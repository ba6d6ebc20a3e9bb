"""GET_TOPICS_OF_NAMESPACE and WATCH_TOPIC_LIST: which topics there are, and telling of new and deleted ones."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ports.logs import line
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError, ServerError
from ...service.catalogue.catalogue import Catalogue
from ...service.catalogue.namespaces import listed
from ...service.catalogue.topic_lists import Pattern, UnusablePattern, compile_pattern, matching, topics_hash
from ...service.settings import BrokerSettings
from ...service.topic_name import NamespaceName, TopicName
from .. import replies
from ..link import Link, Routes
from . import topic_list_replies

log = logging.getLogger(__name__)

WATCHERS_MAX = 1000
"""On one connection; each pattern consumer has one."""


class TopicLists:
    """Topic lists of one connection."""

    def __init__(self, link: Link, catalogue: Catalogue, settings: BrokerSettings) -> None:
        self._link = link
        self._catalogue, self._settings = catalogue, settings
        self._watchers: dict[int, Callable[[], None]] = {}
        self._asked: dict[int, int] = {}
        """Last request of each watcher, until it is answered or taken back."""
        self._turn = asyncio.Lock()
        """A list of 100,000 names takes some thirty megabytes until it is answered: of one connection one is made at a time."""

    # ---- GET_TOPICS_OF_NAMESPACE

    def on_get_topics(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.get_topics_of_namespace
        self._link.run(
            command, self._get_topics(asked), lambda failure: self._link.answer(replies.error(asked.request_id, failure))
        )

    async def _get_topics(self, asked: api.CommandGetTopicsOfNamespace) -> None:
        async with self._turn:
            if self._link.is_open:
                self._link.answer(await self._topics_told(asked))

    async def _topics_told(self, asked: api.CommandGetTopicsOfNamespace) -> bytes:
        namespace = NamespaceName.parse(asked.namespace)
        topics = await self._listed(namespace, asked.mode)
        pattern = self._pattern_of(asked)
        names, is_filtered = await matching(topics, pattern), pattern is not None
        known = await topics_hash(names)
        changed = asked.topics_hash != known
        told = names if changed else ()
        return await topic_list_replies.topics_of_namespace(
            asked.request_id, told, known, filtered=is_filtered, changed=changed
        )

    def _pattern_of(self, asked: api.CommandGetTopicsOfNamespace) -> Pattern | None:
        """None where the client matches the names by itself."""
        settings = self._settings
        if not settings.enable_broker_side_subscription_pattern_evaluation or not asked.HasField("topics_pattern"):
            return None
        try:
            return compile_pattern(asked.topics_pattern, settings.subscription_pattern_max_length)
        except UnusablePattern as why:
            log.info(
                line(
                    "topics pattern not evaluated by the broker: the client filters the list",
                    peer=self._link.address,
                    reason=why,
                )
            )
            return None

    async def _listed(self, namespace: NamespaceName, mode: int) -> list[TopicName]:
        modes, topics = api.CommandGetTopicsOfNamespace, list[TopicName]()
        if mode != modes.NON_PERSISTENT:
            topics += await listed(self._catalogue.list_topics(namespace))
        if mode != modes.PERSISTENT:
            topics += await listed(self._catalogue.list_non_persistent(namespace))
        return topics

    # ---- WATCH_TOPIC_LIST

    def on_watch(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.watch_topic_list
        self._asked[asked.watcher_id] = asked.request_id

        def refuse(failure: BrokerError) -> None:
            self._is_current(asked)
            self._link.answer(replies.error(asked.request_id, failure))

        self._link.run(command, self._watch_in_turn(asked), refuse)

    def _is_current(self, asked: api.CommandWatchTopicList) -> bool:
        """Whether the client still wants this: it has not closed the watcher, nor asked again. Then it counts as answered."""
        if self._asked.get(asked.watcher_id) != asked.request_id:
            return False
        del self._asked[asked.watcher_id]
        return self._link.is_open

    async def _watch_in_turn(self, asked: api.CommandWatchTopicList) -> None:
        async with self._turn:
            await self._watch(asked)

    async def _watch(self, asked: api.CommandWatchTopicList) -> None:
        """A second time for the same watcher: the client compares notes (its hash with ours)."""
        settings = self._settings
        if not settings.enable_broker_topic_list_watcher:
            raise BrokerError(ServerError.NOT_ALLOWED, "Unable to create topic list watcher: topic list watching is disabled.")
        namespace = NamespaceName.parse(asked.namespace)
        try:
            pattern = compile_pattern(asked.topics_pattern, settings.subscription_pattern_max_length)
        except UnusablePattern as why:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Topics pattern is not evaluated by this broker: {why}") from why
        if len(self._watchers) >= WATCHERS_MAX and asked.watcher_id not in self._watchers:
            raise BrokerError(ServerError.NOT_ALLOWED, f"More than {WATCHERS_MAX} topic list watchers on one connection")
        watched = await self._catalogue.watch_topics(namespace, pattern, partial(self._change, asked.watcher_id))
        told = () if asked.topics_hash == watched.hash else watched.topics
        answer = await topic_list_replies.watch_topic_list_success(asked.request_id, asked.watcher_id, told, watched.hash)
        if self._is_current(asked):
            self._close(asked.watcher_id)
            self._watchers[asked.watcher_id] = watched.end
            watched.begin()
        else:
            watched.end()
        self._link.answer(answer)

    async def _change(self, watcher_id: int, new: list[str], deleted: list[str], known: str) -> Callable[[], None]:
        return partial(self._link.answer, await topic_list_replies.watch_topic_update(watcher_id, new, deleted, known))

    def _close(self, watcher_id: int) -> None:
        unwatch = self._watchers.pop(watcher_id, None)
        if unwatch is not None:
            unwatch()

    def on_watch_close(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.watch_topic_list_close
        self._asked.pop(asked.watcher_id, None)
        self._close(asked.watcher_id)
        self._link.answer(replies.success(asked.request_id))

    def close(self) -> None:
        """The connection is gone."""
        watchers, self._watchers = self._watchers, {}
        for unwatch in watchers.values():
            unwatch()


ROUTES: Routes[TopicLists] = {
    BaseCommand.GET_TOPICS_OF_NAMESPACE: TopicLists.on_get_topics,
    BaseCommand.WATCH_TOPIC_LIST: TopicLists.on_watch,
    BaseCommand.WATCH_TOPIC_LIST_CLOSE: TopicLists.on_watch_close,
}
