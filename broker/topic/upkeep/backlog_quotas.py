"""Backlog quotas of one topic: whether its backlog is too large or too old, and the action of its policy. A check of a topic
within its quota costs a few comparisons: a round of ten thousand topics consists mostly of these. (Apache:
PersistentTopic.checkBacklogQuotaExceeded, BacklogQuotaManager.)
"""

import logging
from typing import Protocol

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedLedger
from ports.clock import Clock
from ports.logs import line
from ports.loop.slices import in_slices
from wire.position import Position

from ...policies.in_force import PoliciesInForce
from ...policies.policies import BacklogQuota, QuotaPolicy, QuotaType
from ...policies.topic_settings import TopicSettings
from ..publish.publishers import Publishers
from ..subscription.subscription import Subscription
from ..subscription.subscriptions import Subscriptions
from .backlog import REDUCTION, backlog_bytes, closed_before, entries_to_evict, is_size_exceeded
from .cursor_operations import CursorOperations
from .durable_backlogs import DurableBacklogs

_log = logging.getLogger(__name__)

_EVICTIONS_MAX = 1000
"""Subscriptions that one check evicts from; more wait for the next check."""


class QuotasHost(Protocol):
    """Part of a topic that its backlog quotas need."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def publishers(self) -> Publishers: ...
    @property
    def subscriptions(self) -> Subscriptions: ...


class BacklogQuotas:
    """Quotas on the size and the age of one topic's backlog."""

    def __init__(
        self, host: QuotasHost, backlogs: DurableBacklogs, policies: PoliciesInForce, settings: TopicSettings, clock: Clock
    ) -> None:
        self._host = host
        self._backlogs = backlogs
        self._policies = policies
        self._settings = settings
        self._clock = clock
        self._operations = CursorOperations(host.ledger)
        self._oldest_ms: int | None = None
        """Oldest message of the backlog at the last check of quotas."""
        self.evictions = dict.fromkeys(QuotaType, 0)
        """Checks that evicted from a backlog, by the quota that was exceeded."""

    async def refusal(self) -> BrokerError | None:
        """Reason to refuse a producer: a backlog is too large, and the policy is one that holds producers back."""
        await self._backlogs.settle()
        for kind, quota in self._quotas():
            if quota.policy is not QuotaPolicy.CONSUMER_BACKLOG_EVICTION and await self._is_exceeded(kind, quota):
                return _blocked(quota.policy)
        return None

    async def check(self) -> None:
        """Acts upon the first quota that is exceeded, size before age."""
        await self._backlogs.settle()
        await self._act_on_quotas()
        self._oldest_ms = await self._look_at_oldest()

    async def _act_on_quotas(self) -> None:
        for kind, quota in self._quotas():
            if await self._is_exceeded(kind, quota):
                _log.warning(line("backlog quota exceeded", topic=self._host.name, quota=kind, policy=quota.policy))
                await self._enforce(kind, quota)
                return

    async def _look_at_oldest(self) -> int | None:
        """Publish time of the oldest; without preciseTimeBasedBacklogQuotaCheck its ledger's close (updateOldPositionInfo)."""
        slowest = self._backlogs.slowest()
        if slowest is None or not slowest.cursor.backlog_entries():
            return None
        first = slowest.cursor.first_unacknowledged()
        if self._settings.precise_time_based_backlog_quota_check:
            return await self._operations.published_ms(first)
        return next((each.closed_at_ms for each in self._host.ledger.ledgers() if each.ledger_id == first.ledger_id), 0) or None

    def age_seconds(self) -> int:
        """Age of the oldest unacknowledged message at the last check of quotas; -1: not known, or none."""
        if self._oldest_ms is None:
            return -1
        slowest = self._backlogs.slowest()
        if slowest is None or not slowest.cursor.backlog_entries():
            return -1
        return max(0, self._clock.now_ms() - self._oldest_ms) // 1000

    def _quotas(self) -> tuple[tuple[QuotaType, BacklogQuota], ...]:
        policies = self._policies.current
        return ((QuotaType.DESTINATION_STORAGE, policies.size_quota), (QuotaType.MESSAGE_AGE, policies.age_quota))

    async def _is_exceeded(self, kind: QuotaType, quota: BacklogQuota) -> bool:
        if kind is QuotaType.DESTINATION_STORAGE:
            return self._host.ledger.size_bytes >= quota.limit_bytes >= 0 and is_size_exceeded(quota, self._backlog_bytes())
        slowest = self._backlogs.slowest() if quota.limit_seconds > 0 else None
        if slowest is None or not slowest.cursor.backlog_entries():
            return False
        before_ms = self._clock.now_ms() - quota.limit_seconds * 1000
        if self._settings.precise_time_based_backlog_quota_check:
            return await self._operations.is_published_before(slowest.cursor.first_unacknowledged(), before_ms)
        return self._closed_before(slowest, before_ms) is not None

    def _backlog_bytes(self) -> int:
        """Backlog of the slowest durable subscription; without one there is no backlog."""
        slowest = self._backlogs.slowest()
        return 0 if slowest is None else backlog_bytes(self._host.ledger.ledgers(), slowest.cursor.mark_delete)

    def _closed_before(self, subscription: Subscription, before_ms: int) -> Position | None:
        return closed_before(self._host.ledger.ledgers(), subscription.cursor.mark_delete, before_ms)

    async def _enforce(self, kind: QuotaType, quota: BacklogQuota) -> None:
        if quota.policy is not QuotaPolicy.CONSUMER_BACKLOG_EVICTION:
            await self._send_producers_away()
            return
        self.evictions[kind] += 1
        if kind is QuotaType.DESTINATION_STORAGE:
            await self._evict_to_size(quota)
        elif self._settings.precise_time_based_backlog_quota_check:
            async for subscription in in_slices(self._backlogs.durable()):
                await self._backlogs.expire(subscription, REDUCTION * quota.limit_seconds)
        else:
            await self._evict_to_age(quota)

    async def _send_producers_away(self) -> None:
        """Sends the producers away. Returning producers are refused until the backlog is small enough."""
        await self._host.publishers.send_away("the backlog quota is exceeded")

    async def _evict_to_size(self, quota: BacklogQuota) -> None:
        previous = None
        for _ in range(_EVICTIONS_MAX):
            slowest = self._backlogs.slowest()
            if slowest is None or slowest is previous:
                return
            count = entries_to_evict(self._backlog_bytes(), quota.limit_bytes, slowest.cursor.backlog_entries())
            if count <= 0:
                return
            self._evicted(slowest, await self._operations.skip(slowest, count))
            previous = slowest

    async def _evict_to_age(self, quota: BacklogQuota) -> None:
        """Whole ledgers that were closed too long ago."""
        before_ms = self._clock.now_ms() - quota.limit_seconds * 1000
        async for subscription in in_slices(self._backlogs.durable()):
            target = self._closed_before(subscription, before_ms)
            if target is not None:
                self._evicted(subscription, subscription.acknowledge_through(target))

    def _evicted(self, subscription: Subscription, count: int) -> None:
        _log.warning(line("backlog evicted", topic=self._host.name, subscription=subscription.name, entries=count))


def _blocked(policy: QuotaPolicy) -> BrokerError:
    is_hold = policy is QuotaPolicy.PRODUCER_REQUEST_HOLD
    code = (
        ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR if is_hold else ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION
    )
    return BrokerError(code, "Cannot create producer on topic with backlog quota exceeded")
