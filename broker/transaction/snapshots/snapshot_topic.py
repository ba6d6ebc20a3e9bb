"""SnapshotTopic: one topic of snapshots of one namespace, at any broker; read through, and written, like a client does. Owns
the readings under way: one at a time, for all callers that asked before it began. Nothing is kept in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from broker.errors import BrokerError, ServerError
from broker.service.system_topics.event_log import EventLog, OnMessage
from broker.service.topic_name import TopicName
from ports.clock import Clock
from wire.position import Position

from .messages import Keyed, keyed_of, section_of

READ_SECONDS_MAX = 30.0

OpenLog = Callable[[TopicName, bool], Awaitable[EventLog | None]]
"""The log of a topic; None when there is none and it is not to be made. BrokerError."""


@dataclass(slots=True)
class _Round:
    """A reading that has not begun, and the keys that it looks for."""

    keys: dict[str, None]
    task: "asyncio.Task[Mapping[str, bytes]]"


class SnapshotTopic:
    """BrokerError, mostly SERVICE_NOT_READY, for every failure."""

    def __init__(self, topic: TopicName, open_log: OpenLog, clock: Clock) -> None:
        self._topic, self._open_log, self._clock = topic, open_log, clock
        self._turn = asyncio.Lock()
        self._next: _Round | None = None
        self._running: dict[asyncio.Task[Mapping[str, bytes]], None] = {}

    async def latest(self, key: str) -> bytes | None:
        """The last record of the key; None: there is none."""
        found = self._next or self._begin()
        found.keys[key] = None
        task = found.task
        await asyncio.wait([task])
        if task.cancelled():
            raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is stopping")
        return task.result().get(key)

    def _begin(self) -> "_Round":
        keys: dict[str, None] = {}
        task = asyncio.get_running_loop().create_task(self._read(keys), name=f"snapshots in {self._topic}")
        self._running[task] = None
        task.add_done_callback(self._ended)
        self._next = _Round(keys, task)
        return self._next

    def _ended(self, task: "asyncio.Task[Mapping[str, bytes]]") -> None:
        del self._running[task]
        if not task.cancelled():
            task.exception()  # marked as retrieved, also without a waiting caller

    async def _read(self, asked: Mapping[str, None]) -> Mapping[str, bytes]:
        async with self._turn:
            self._next = None  # later callers may know of later records
            found: dict[str, bytes] = {}

            def hear(position: Position, section: memoryview) -> None:
                keyed = keyed_of(section)
                if keyed is None or keyed.key not in asked:
                    return
                if keyed.record is None:
                    found.pop(keyed.key, None)
                else:
                    found[keyed.key] = keyed.record

            await self._read_through(hear)
            return found

    async def at(self, places: "set[Position]") -> Mapping[Position, bytes]:
        """The records at these places, those that are still there."""
        found: dict[Position, bytes] = {}

        def hear(position: Position, section: memoryview) -> None:
            if position in places and (keyed := keyed_of(section)) is not None and keyed.record is not None:
                found[position] = keyed.record

        await self._read_through(hear)
        return found

    async def _read_through(self, hear: OnMessage) -> None:
        """Reads all messages that are there now."""
        log = await self._open_log(self._topic, False)
        if log is None:
            return
        reading = _Reading(hear)
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                end = await log.read(reading.on_message, reading.on_end)
                await reading.until(end)
        except TimeoutError:
            message = f"{self._topic} was not read within {READ_SECONDS_MAX} s"
            raise BrokerError(ServerError.SERVICE_NOT_READY, message) from None
        finally:
            log.close()

    async def append(self, keyed: Keyed, *, is_made: bool = True) -> Position | None:
        """Durable when it returns. `is_made`: the topic is made when it is missing, else None."""
        log = await self._open_log(self._topic, is_made)
        if log is None:
            return None
        now_ms = self._clock.now_ms()
        return await log.append(lambda producer: section_of(keyed, producer, now_ms))

    async def close(self) -> None:
        """Ends all readings."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running))


class _Reading:
    """Progress of one reading."""

    def __init__(self, hear: OnMessage) -> None:
        self._hear = hear
        self._seen = Position(-1, -1)
        self._end = ""
        self._moved = asyncio.Event()

    def on_message(self, position: Position, section: memoryview) -> None:
        self._hear(position, section)
        self._seen = position
        self._moved.set()

    def on_end(self, reason: str) -> None:
        self._end = reason or "the reading ended"
        self._moved.set()

    async def until(self, end: Position) -> None:
        """BrokerError(SERVICE_NOT_READY) when it ends before."""
        while end.entry_id >= 0 and self._seen < end:
            if self._end:
                raise BrokerError(ServerError.SERVICE_NOT_READY, self._end)
            self._moved.clear()
            await self._moved.wait()
