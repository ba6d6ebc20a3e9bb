"""What the broker does by the clock: deletes unused topics, lets go of consumed ledgers, expires messages, checks quotas.

`Inactivity` decides what is unused, each topic's `upkeep` the rest; `Housekeeping` is the timers. Failures of single topics are
logged and met again at the next round. A round lets others run after every few topics, however many there are.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ports.clock import Clock
from ports.logs import line

from ..errors import BrokerError
from ..topic.contract import Topic, TopicActivity
from .settings import DELETE_WHEN_NO_SUBSCRIPTIONS, BrokerSettings
from .topic_name import TopicName

log = logging.getLogger(__name__)

_SLICE = 50
"""Topics that one turn of the loop may be spent on."""


class Inactivity:
    """Which topics have been inactive long enough (Apache's PersistentTopic.checkGC)."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._last_active_ms: dict[str, int] = {}

    def expired(self, topics: Mapping[str, TopicActivity], now_ms: int) -> list[str]:
        """Called at each round with every topic there is."""
        before, self._last_active_ms = self._last_active_ms, {}
        for name, activity in topics.items():
            last_ms = now_ms if self._is_active(activity) else before.get(name, 0)
            self._last_active_ms[name] = max(last_ms, activity.last_active_ms)
        limit_ms = self._settings.inactive_seconds_min * 1000
        return [
            name
            for name, last_ms in self._last_active_ms.items()
            if now_ms - last_ms >= limit_ms and not self._is_active(topics[name])
        ]

    def _is_active(self, activity: TopicActivity) -> bool:
        if activity.producers or activity.consumers:
            return True
        if self._settings.broker_delete_inactive_topics_mode == DELETE_WHEN_NO_SUBSCRIPTIONS:
            return activity.durable_subscriptions > 0
        return activity.backlog_entries > 0


class Housekeeping:
    """The timers; `run` ends when it is cancelled."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        topics: Mapping[str, Topic],
        delete: Callable[[str], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._topics = topics
        self._delete = delete
        self._inactivity = Inactivity(settings)

    async def run(self) -> None:
        settings = self._settings
        rounds = [
            self._repeat(settings.retention_check_interval_in_seconds, self.trim),
            self._repeat(settings.message_expiry_check_interval_in_minutes * 60, self.expire),
        ]
        if settings.backlog_quota_check_enabled:
            rounds.append(self._repeat(settings.backlog_quota_check_interval_in_seconds, self.check_quotas))
        if self._settings.broker_delete_inactive_topics_enabled:
            rounds.append(self._repeat(self._settings.broker_delete_inactive_topics_frequency_seconds, self.sweep))
        async with asyncio.TaskGroup() as group:
            for each in rounds:
                group.create_task(each)

    async def _repeat(self, seconds: int, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    async def sweep(self) -> None:
        activities = {
            name: topic.activity()
            for name, topic in self._topics.items()
            if not topic.is_closed and not TopicName.parse(name).is_system
        }
        for name in self._inactivity.expired(activities, self._clock.now_ms()):
            try:
                await self._delete(name)
            except BrokerError as error:
                log.info(line("inactive topic not deleted", topic=name, reason=error))
            except Exception:
                log.exception(line("deletion of an inactive topic failed", topic=name))
            else:
                log.info(line("inactive topic deleted", topic=name))

    async def trim(self) -> None:
        await self._each(lambda topic: topic.trim(), "trimming failed")

    async def expire(self) -> None:
        await self._each(lambda topic: topic.upkeep.expire(), "expiring messages failed")

    async def check_quotas(self) -> None:
        await self._each(lambda topic: topic.upkeep.check_quotas(), "checking backlog quotas failed")

    async def _each(self, work: Callable[[Topic], Awaitable[None]], failure: str) -> None:
        for place, (name, topic) in enumerate(list(self._topics.items())):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            try:
                if not topic.is_closed:
                    await work(topic)
            except BrokerError as error:
                log.warning(line(failure, topic=name, error=error))
            except Exception:
                log.exception(line(failure, topic=name))
