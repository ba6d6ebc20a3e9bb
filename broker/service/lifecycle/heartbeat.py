"""Whether this broker can store a message and read it back, on its own heartbeat topic (Apache: internalRunHealthCheck).

Owns the beat that is under way, which all who ask meanwhile share. The topic, `pulsar/<broker id>/healthcheck`, is no part of
any bundle and is served by its broker alone; it keeps nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section
from wire.position import Position

from ...errors import BrokerError, ServerError
from ...topic.contract import Topic
from ..system_topics.event_log import ServedEventLog

SECONDS_MAX = 30.0


class Heartbeat:
    """Heartbeat of one broker. `open_topic` loads the topic."""

    def __init__(self, open_topic: Callable[[], Awaitable[Topic]], new_name: Callable[[], str]) -> None:
        self._open_topic, self._new_name = open_topic, new_name
        self._beating: asyncio.Task[None] | None = None

    async def beat(self) -> None:
        """BrokerError when the message does not come back within SECONDS_MAX."""
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat(), name="heartbeat")
            self._beating.add_done_callback(self._done)
        await asyncio.shield(self._beating)

    async def close(self) -> None:
        """Closing twice is fine."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._beating = None
        if not task.cancelled():
            task.exception()  # waiting callers get the error; without any, the next caller asks anew

    async def _beat(self) -> None:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await self._round_trip(await self._open_topic())
        except TimeoutError:
            message = f"The message of the health check did not come back within {SECONDS_MAX} s"
            raise BrokerError(ServerError.SERVICE_NOT_READY, message) from None

    async def _round_trip(self, topic: Topic) -> None:
        log = ServedEventLog(topic, self._new_name, only_new=True)
        news = asyncio.Event()
        seen: list[Position] = []
        ends: list[str] = []

        def on_message(position: Position, section: memoryview) -> None:
            seen.append(position)
            news.set()

        def on_end(reason: str) -> None:
            ends.append(reason)
            news.set()

        try:
            await log.read(on_message, on_end)
            stored = await log.append(_message)
            while stored not in seen and not ends:
                news.clear()
                await news.wait()
        finally:
            log.close()
        if stored not in seen:
            raise BrokerError(ServerError.SERVICE_NOT_READY, f"The reader of the health check was closed: {ends[0]}")


def _message(producer: str) -> bytes:
    """Returns a message with any content: only its position is awaited."""
    metadata = MessageMetadata(producer_name=producer, sequence_id=0, publish_time=0, uncompressed_size=len(producer))
    return payload_section(metadata, producer.encode())
