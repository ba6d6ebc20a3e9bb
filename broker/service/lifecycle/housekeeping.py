"""Periodic upkeep of a broker: deletes unused topics, trims consumed ledgers, expires messages, checks quotas.

`Inactivity` decides what is unused, each topic's `upkeep` the rest; `Housekeeping` is the timers. Failures of single topics are
logged and tried again at the next round. A round lets other tasks run after every few topics. docs/what-is-deleted.md lists
deletions and ways to prevent them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import Enum, auto

from ports.logs import line
from ports.loop.slices import in_slices
from ports.loop.taking_apart import items_taken_apart
from wire.record import record

from ...errors import BrokerError, ServerError
from ...meters import BrokerMeters
from ...policies.policies import InactiveMode, InactiveTopicPolicy, RetentionPolicy
from ...topic.contract import Topic, TopicActivity
from ..settings import BrokerSettings
from ..topic_name import TopicName

log = logging.getLogger(__name__)

CheckUnused = Callable[[Topic], None]
"""BrokerError when the topic is not to be deleted after all."""

_SLICE = 50
"""Topics that one turn of the loop may be spent on."""


@record(frozen=True, slots=True)
class SeenTopic:
    """A topic at one moment, and the policies by which it goes or stays."""

    activity: TopicActivity
    inactive: InactiveTopicPolicy
    retention: RetentionPolicy


class Standing(Enum):
    """Whether a topic goes."""

    IN_USE = auto()
    IDLE = auto()
    """Unused, but not for long enough; or topics are not deleted here."""
    RETAINED = auto()
    """Unused long enough, but retention keeps its messages."""
    EXPIRED = auto()


class Inactivity:
    """Topics that have been inactive long enough (Apache's PersistentTopic.checkGC). Times are the loop's."""

    def __init__(self) -> None:
        self._last_active_ms: dict[str, int] = {}
        self._seen_ms: dict[str, int] = {}
        """The same, of the round under way: names that are not in it at its end are forgotten."""

    def judged(self, name: str, seen: SeenTopic, now_ms: int) -> Standing:
        """Called in each round with every topic there is, one after the other."""
        last_ms = now_ms if _is_active(seen) else self._last_active_ms.get(name, 0)
        self._last_active_ms[name] = self._seen_ms[name] = max(last_ms, seen.activity.last_active_ms)
        return self.standing(name, seen, now_ms)

    def round_ended(self) -> None:
        self._last_active_ms, self._seen_ms = self._seen_ms, {}

    def standing(self, name: str, seen: SeenTopic, now_ms: int) -> Standing:
        """Returns the present standing of the topic, between rounds too."""
        if _is_active(seen):
            return Standing.IN_USE
        idle_ms = now_ms - max(self._last_active_ms.get(name, 0), seen.activity.last_active_ms)
        if not seen.inactive.is_deleted or idle_ms < seen.inactive.seconds_min * 1000:
            return Standing.IDLE
        return Standing.RETAINED if _is_retained(seen, idle_ms) else Standing.EXPIRED


class Housekeeping:
    """The timers; `run` ends when it is cancelled.

    `delete` deletes the topic of a name unless the check that it is handed, called right before, refuses (BrokerError).
    """

    def __init__(
        self,
        settings: BrokerSettings,
        topics: Mapping[str, Topic],
        delete: Callable[[str, CheckUnused], Awaitable[None]],
        meters: BrokerMeters | None = None,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._delete = delete
        self._inactivity = Inactivity()
        self._retained: dict[str, None] = {}
        """Names of the topics that the last round left because of their retention."""
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
        expired, retained = list[str](), dict[str, None]()
        async for name, topic in self._open_topics():
            if not TopicName.parse(name).is_system:
                seen = _seen(topic)
                match self._inactivity.judged(name, seen, loop_ms()):
                    case Standing.EXPIRED:
                        expired.append(name)
                    case Standing.RETAINED:
                        self._tell_retained(name, seen)
                        retained[name] = None
        self._inactivity.round_ended()
        self._retained = retained
        async for name in in_slices(expired):
            await self._delete_inactive(name)

    async def _delete_inactive(self, name: str) -> None:
        try:
            await self._delete(name, self._require_unused)
        except BrokerError as error:
            log.info(line("inactive topic not deleted", topic=name, reason=error))
        except Exception:
            log.exception(line("deletion of an inactive topic failed", topic=name))
        else:
            log.info(line("inactive topic deleted", topic=name))

    def _require_unused(self, topic: Topic) -> None:
        """Other topics of the round took time: a client may have come, or a policy may have changed, since the look at this
        topic.
        """
        if self._inactivity.standing(topic.name, _seen(topic), loop_ms()) is not Standing.EXPIRED:
            raise BrokerError(ServerError.NOT_ALLOWED, "the topic was used, or its policies were changed, meanwhile")

    def _tell_retained(self, name: str, seen: SeenTopic) -> None:
        """Once for each topic, when retention begins to be all that keeps it."""
        if name not in self._retained:
            entries, minutes = seen.activity.entries, seen.retention.minutes
            log.info(line("inactive topic kept by its retention", topic=name, entries=entries, retention_minutes=minutes))

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
        """Topics of the beginning of a round, but for those closed before their turn; other tasks run between slices."""
        for place, (name, topic) in enumerate(items_taken_apart(self._topics)):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            if not topic.is_closed:
                yield name, topic


def loop_ms() -> int:
    """The loop's time, which no step of the wall clock moves."""
    return int(asyncio.get_running_loop().time() * 1000)


def _seen(topic: Topic) -> SeenTopic:
    policies = topic.upkeep.policies
    return SeenTopic(topic.activity(), policies.inactive, policies.retention)


def _is_active(seen: SeenTopic) -> bool:
    activity = seen.activity
    if activity.producers or activity.consumers:
        return True
    is_by_subscriptions = seen.inactive.mode is InactiveMode.NO_SUBSCRIPTIONS
    return activity.durable_subscriptions > 0 if is_by_subscriptions else activity.backlog_entries > 0


def _is_retained(seen: SeenTopic, idle_ms: int) -> bool:
    """Whether retention by time keeps the topic, as in Apache (shouldTopicBeRetained): a size says nothing of a topic that
    stopped growing."""
    if not seen.activity.entries:
        return False
    return seen.retention.minutes < 0 or idle_ms < seen.retention.age_ms
