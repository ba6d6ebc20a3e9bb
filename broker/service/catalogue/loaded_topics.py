"""The topics that are loaded, each once: concurrent loads join, and a topic that closed itself is loaded again.

Owns the map and the loads under way. A load outlives the caller that began it (others may have joined), never the service.
The caller opens a topic.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext

from ports.ends import ENDS
from ports.loop.side_by_side import side_by_side

from ...errors import BrokerError, ServerError
from ...meters import BrokerMeters
from ...topic.contract import Topic
from ..topic_name import TopicName
from .topic_kinds import require_openable

Open = Callable[[], Awaitable[Topic]]
"""Opens the one topic that is loaded. BrokerError, MetadataError."""


class LoadedTopics:
    """All topics of this broker."""

    def __init__(self, loads_max: int, load_seconds_max: float, meters: BrokerMeters | None = None) -> None:
        self._load_seconds_max = load_seconds_max
        self._meters = meters or BrokerMeters()
        self._turns = asyncio.Semaphore(loads_max)
        self._topics: dict[str, Topic] = {}
        self._busy: dict[str, asyncio.Task[Topic | None]] = {}
        self._is_stopping = False

    @property
    def all(self) -> Mapping[str, Topic]:
        """Read only, in the order of loading."""
        return self._topics

    def names(self) -> list[str]:
        """Also of those that are being loaded or closed."""
        return list(dict.fromkeys([*self._topics, *self._busy]))

    def get(self, name: str) -> Topic | None:
        """The topic if it is loaded and takes people on."""
        topic = self._topics.get(name)
        return topic if topic is not None and not topic.is_closed and name not in self._busy else None

    async def load(self, name: TopicName, open_topic: Open) -> Topic:
        """Returns the topic, loaded. Refusals of `open_topic`; SERVICE_NOT_READY after the time allowed: the load goes on."""
        require_openable(name)
        text = str(name)
        while True:
            topic = self.get(text)
            if topic is not None:
                return topic
            if self._is_stopping:
                raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is stopping")
            busy = self._busy.get(text)
            if busy is None:
                loaded = await self._wait(self._begin(text, self._load(name, open_topic)))
                if loaded is not None:
                    return loaded
            else:
                await self._join(busy)

    async def settled(self, name: str) -> Topic | None:
        """The topic if it is loaded, after any load or close under way. SERVICE_NOT_READY, as `load`."""
        try:
            async with asyncio.timeout(self._load_seconds_max):
                while (busy := self._busy.get(name)) is not None:
                    await asyncio.wait((busy,))
        except TimeoutError:
            raise self._too_slow() from None
        return self.get(name)

    async def _join(self, busy: "asyncio.Task[Topic | None]") -> None:
        """Another caller's load or close. Its refusal concerns that caller, which may have asked without `create`."""
        try:
            await self._wait(busy)
        except BrokerError as error:
            if error.code is not ServerError.TOPIC_NOT_FOUND:
                raise

    async def _wait(self, task: "asyncio.Task[Topic | None]") -> Topic | None:
        try:
            async with asyncio.timeout(self._load_seconds_max):
                return await asyncio.shield(task)
        except TimeoutError:
            raise self._too_slow() from None
        finally:
            del task  # an error of it has this frame in its traceback: together they would stay

    def _too_slow(self) -> BrokerError:
        message = f"Loading or closing the topic took more than {self._load_seconds_max} s"
        return BrokerError(ServerError.SERVICE_NOT_READY, message)

    def _begin(self, name: str, work: Awaitable[Topic | None]) -> "asyncio.Task[Topic | None]":
        async def run() -> Topic | None:
            try:
                return await work
            finally:
                del self._busy[name]

        task = self._busy[name] = asyncio.ensure_future(run())
        task.add_done_callback(_retrieve)
        return task

    async def _load(self, name: TopicName, open_topic: Open) -> Topic:
        old = self._topics.pop(str(name), None)
        if old is not None:
            await old.close()
            ENDS.ended(old)
        topic = await self._open(name, open_topic)
        self._topics[str(name)] = topic
        return topic

    async def _open(self, name: TopicName, open_topic: Open) -> Topic:
        """Counted from the moment that it waits for its turn."""
        meters, loop = self._meters, asyncio.get_running_loop()
        began, has_failed = loop.time(), True
        meters.topic_loads_pending += 1
        try:
            async with nullcontext() if name.is_system else self._turns:  # others may wait for it, with all the turns
                topic = await open_topic()
            has_failed = False
            return topic
        finally:
            meters.topic_loads_pending -= 1
            meters.topic_loads.record(loop.time() - began, has_failed=has_failed)

    async def remove(self, name: str, end: Callable[[Topic], Awaitable[None]]) -> bool:
        """Performs `end` (close or delete) on the topic while no load runs; False when it is not loaded.

        When `end` refuses (BrokerError) the topic stays as it is. SERVICE_NOT_READY, as `load`.
        """
        await self.settled(name)  # the outcome of a load or of another removal does not concern this one
        topic = self._topics.get(name)
        if topic is None:
            return False
        refusals: list[BrokerError] = []
        await asyncio.shield(self._begin(name, self._end(name, topic, end, refusals)))
        if refusals:
            raise refusals[0]
        return True

    async def _end(self, name: str, topic: Topic, end: Callable[[Topic], Awaitable[None]], refusals: list[BrokerError]) -> None:
        try:
            await end(topic)
        except BrokerError as error:
            refusals.append(error)  # for its caller, not for callers that wait to load the topic
            return
        self._topics.pop(name, None)
        ENDS.ended(topic)

    async def close(self) -> list[BaseException]:
        """Unloads everything; returns the failures of single topics. No topic is loaded any more."""
        self._is_stopping = True
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        topics = list(self._topics.values())
        self._topics.clear()
        results = await side_by_side(topic.close() for topic in topics)
        return [result for result in results if isinstance(result, BaseException)]


def _retrieve(task: "asyncio.Task[Topic | None]") -> None:
    """Retrieves the failure of a task: callers that wait get it; callers that stopped waiting were answered with a time-out."""
    if not task.cancelled():
        task.exception()
