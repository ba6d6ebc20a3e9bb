"""What the broker does by the clock: deletes unused topics, lets go of consumed ledgers, expires messages, checks quotas.

`Inactivity` decides what is unused, each topic's `upkeep` the rest; `Housekeeping` is the timers. Failures of single topics are
logged and met again at the next round. A round lets others run after every few topics, however many there are.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from ports.clock import Clock
from ports.logs import line

from ..errors import BrokerError
from ..meters import BrokerMeters
from ..topic.contract import Topic, TopicActivity
from ..topic.policies import InactiveMode, InactiveTopicPolicy
from .settings import BrokerSettings
from .topic_name import TopicName

log = logging.getLogger(__name__)

_SLICE = 50
"""Topics that one turn of the loop may be spent on."""


class Inactivity:
    """Which topics have been inactive long enough (Apache's PersistentTopic.checkGC)."""

    def __init__(self) -> None:
        self._last_active_ms: dict[str, int] = {}

    def expired(self, topics: Mapping[str, tuple[TopicActivity, InactiveTopicPolicy]], now_ms: int) -> list[str]:
        """Called at each round with every topic there is, and what holds for it."""
        before, self._last_active_ms = self._last_active_ms, {}
        found = []
        for name, (activity, policy) in topics.items():
            is_active = _is_active(activity, policy.mode)
            last_ms = max(now_ms if is_active else before.get(name, 0), activity.last_active_ms)
            self._last_active_ms[name] = last_ms
            if policy.is_deleted and not is_active and now_ms - last_ms >= policy.seconds_min * 1000:
                found.append(name)
        return found


class Housekeeping:
    """The timers; `run` ends when it is cancelled."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        topics: Mapping[str, Topic],
        delete: Callable[[str], Awaitable[None]],
        meters: BrokerMeters | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._topics = topics
        self._delete = delete
        self._inactivity = Inactivity()
        self._meters = meters or BrokerMeters()

    async def run(self) -> None:
        settings = self._settings
        rounds = [
            self._repeat(settings.retention_check_interval_in_seconds, self.trim),
            self._repeat(settings.message_expiry_check_interval_in_minutes * 60, self.expire),
            self._repeat(settings.subscription_expiry_check_interval_in_minutes * 60, self.expire_subscriptions),
            self._repeat(settings.broker_service_compaction_monitor_interval_in_seconds, self.check_compaction),
            self._repeat(settings.broker_delete_inactive_topics_frequency_seconds, self.sweep),
        ]
        if settings.backlog_quota_check_enabled:
            rounds.append(self._repeat(settings.backlog_quota_check_interval_in_seconds, self.check_quotas))
        async with asyncio.TaskGroup() as group:
            for each in rounds:
                group.create_task(each)

    async def _repeat(self, seconds: int, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    async def sweep(self) -> None:
        topics: dict[str, tuple[TopicActivity, InactiveTopicPolicy]] = {}
        async for name, topic in self._open_topics():
            if not TopicName.parse(name).is_system:
                topics[name] = (topic.activity(), topic.upkeep.policies.inactive)
        for name in self._inactivity.expired(topics, self._clock.now_ms()):
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

    async def expire_subscriptions(self) -> None:
        await self._each(lambda topic: topic.upkeep.expire_subscriptions(), "expiring subscriptions failed")

    async def check_quotas(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._each(lambda topic: topic.upkeep.check_quotas(), "checking backlog quotas failed")
        self._meters.quota_check_seconds.record(loop.time() - began)

    async def check_compaction(self) -> None:
        async def check(topic: Topic) -> None:
            topic.upkeep.check_compaction()

        await self._each(check, "checking compaction failed")

    async def _each(self, work: Callable[[Topic], Awaitable[None]], failure: str) -> None:
        async for name, topic in self._open_topics():
            try:
                await work(topic)
            except BrokerError as error:
                log.warning(line(failure, topic=name, error=error))
            except Exception:
                log.exception(line(failure, topic=name))

    async def _open_topics(self) -> AsyncIterator[tuple[str, Topic]]:
        """Those of the beginning of a round that are not closed when it is their turn; others run between slices of them."""
        for place, (name, topic) in enumerate(list(self._topics.items())):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            if not topic.is_closed:
                yield name, topic


def _is_active(activity: TopicActivity, mode: InactiveMode) -> bool:
    if activity.producers or activity.consumers:
        return True
    return activity.durable_subscriptions > 0 if mode is InactiveMode.NO_SUBSCRIPTIONS else activity.backlog_entries > 0
