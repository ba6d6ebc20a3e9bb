"""Upkeep of one topic by its policies: what expires, whether a backlog is too large, and what is done about it.

Owns the policies in effect. What they mean is `backlog`'s and `policies`' to say (pure); here it is performed. A check of a
topic that has nothing to do costs a few comparisons: with ten thousand topics that is what a round consists of.
(Apache: PersistentTopic.checkMessageExpiry, checkBacklogQuotaExceeded; BacklogQuotaManager.)
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from bookkeeper.ledgers import Quorums
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedLedger
from ports.clock import Clock
from ports.logs import line
from ports.loop.owner import ask, tell
from ports.loop.slices import in_slices
from wire.position import Position

from ...policies.in_force import PoliciesInForce
from ...policies.policies import (
    NOTHING_SAID,
    BacklogQuota,
    EffectivePolicies,
    PersistencePolicy,
    QuotaPolicy,
    QuotaType,
    TopicPolicies,
)
from ...policies.topic_settings import TopicSettings
from ..acknowledging import is_replicated
from ..publish.publishers import Publishers
from ..statistics.compaction_stats import CompactedLedgerFacts
from ..statistics.compaction_status import CompactionStatus
from ..subscription.subscription import Subscription
from ..subscription.subscriptions import Subscriptions
from .backlog import REDUCTION, backlog_bytes, closed_before, entries_to_evict, is_size_exceeded
from .cursor_operations import CursorOperations
from .expiry_timer import ExpiryTimer
from .topic_compaction import TopicCompaction

_log = logging.getLogger(__name__)

KEPT = frozenset({"__compaction"})
"""Subscriptions of the broker's own."""
_EVICTIONS_MAX = 1000
"""Subscriptions that one check evicts from; more wait for the next check."""


class UpkeepHost(Protocol):
    """Part of a topic that upkeep needs."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def publishers(self) -> Publishers: ...
    @property
    def subscriptions(self) -> Subscriptions: ...
    @property
    def compaction(self) -> TopicCompaction: ...
    def run_task(self, work: Coroutine[Any, Any, None]) -> None: ...


class Upkeep:
    """Upkeep of one topic."""

    def __init__(self, host: UpkeepHost, policies: PoliciesInForce, settings: TopicSettings, clock: Clock) -> None:
        self._host = host
        self._policies = policies
        self._settings = settings
        self._clock = clock
        self._operations = CursorOperations(host.ledger)
        self._oldest_ms: int | None = None
        """Oldest message of the backlog at the last check of quotas."""
        self.evictions = dict.fromkeys(QuotaType, 0)
        """Checks that evicted from a backlog, by the quota that was exceeded."""
        self._expiry = ExpiryTimer(host.name, ask(self._expire_and_look), tell(host.run_task), clock)
        self._expiry.set_ttl(self.policies.message_ttl_seconds)

    def close(self) -> None:
        """Nothing is done by the clock any more."""
        self._expiry.close()

    @property
    def policies(self) -> EffectivePolicies:
        return self._policies.current

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies = NOTHING_SAID) -> None:
        """Applies the policies from now on, also to work that goes on by itself."""
        old = self._policies.current
        self._policies.apply(namespace, topic)
        new = self._policies.current
        if new.retention != old.retention:
            self._host.ledger.set_retention(new.retention.age_ms, new.retention.size_bytes)
        if new.persistence != old.persistence:
            self._set_persistence(new.persistence)
        self._expiry.set_ttl(new.message_ttl_seconds)
        self._keep_for_compaction()
        self._host.publishers.policies_changed()
        self._host.publishers.deduplication.policies_changed()
        self._host.subscriptions.policies_changed()

    def _set_persistence(self, policy: PersistencePolicy | None) -> None:
        if policy is None:
            self._host.ledger.set_persistence(Quorums(), None)
        else:
            quorums = Quorums(policy.ensemble_size, policy.write_quorum, policy.ack_quorum)
            self._host.ledger.set_persistence(quorums, policy.mark_delete_rate)

    # time to live

    async def expire(self) -> None:
        """Acknowledge, on every durable subscription, what is older than its time to live."""
        ttl_seconds = self.policies.message_ttl_seconds
        if ttl_seconds <= 0:
            return
        if not await self._has_backlog():
            return
        async for subscription in in_slices(self._durable()):
            if not subscription.is_fenced and subscription.cursor.backlog_entries():
                await self._expire(subscription, ttl_seconds)

    async def _expire_and_look(self) -> int | None:
        await self.expire()
        first = self._slowest() if await self._has_backlog() else None
        return None if first is None else await self._operations.published_ms(first.cursor.first_unacknowledged())

    async def _has_backlog(self) -> bool:
        """Whether a durable subscription has one; `_slowest` takes no time afterwards."""
        await self._host.subscriptions.durable.settle()
        slowest = self._slowest()
        return slowest is not None and slowest.cursor.backlog_entries() > 0

    async def _expire(self, subscription: Subscription, seconds: float) -> None:
        count = await self._operations.expire(subscription, self._clock.now_ms() - int(seconds * 1000))
        if count:
            _log.info(line("messages expired", topic=self._host.name, subscription=subscription.name, entries=count))

    async def expire_subscriptions(self) -> None:
        """Delete those without consumers that nothing has happened to for the time allowed (checkInactiveSubscriptions).

        The time is the loop's: no step of the wall clock ends it. One that is replicated is used elsewhere, perhaps.
        """
        minutes = self.policies.subscription_expiration_minutes
        if minutes <= 0:
            return
        before_s = asyncio.get_running_loop().time() - minutes * 60
        async for subscription in in_slices(self._durable()):
            if subscription.consumer_count or subscription.is_fenced or is_replicated(subscription.cursor.properties):
                continue
            if subscription.last_active_s < before_s:
                await subscription.delete(force=False)
                _log.info(line("subscription expired", topic=self._host.name, subscription=subscription.name))

    # compaction

    def _keep_for_compaction(self) -> None:
        """Keeps the log untrimmed before the first compaction, where a policy has topics compacted."""
        if self.policies.compaction_threshold_bytes > 0 and self._host.compaction.lacks_its_cursor:
            self._host.run_task(self._host.compaction.keep_what_comes())

    def check_compaction(self) -> None:
        self._keep_for_compaction()
        self._host.compaction.check(self.policies.compaction_threshold_bytes)

    def compact(self) -> None:
        self._host.compaction.trigger()

    @property
    def compaction_status(self) -> CompactionStatus:
        return self._host.compaction.status

    async def compacted_ledger(self) -> CompactedLedgerFacts | None:
        return await self._host.compaction.compacted_ledger()

    # backlog quotas

    async def producer_refusal(self) -> BrokerError | None:
        """Why a producer is not taken on: a backlog is too large, and the policy is one that holds producers back."""
        await self._host.subscriptions.durable.settle()
        for kind, quota in self._quotas():
            if quota.policy is not QuotaPolicy.CONSUMER_BACKLOG_EVICTION and await self._is_exceeded(kind, quota):
                return _blocked(quota.policy)
        return None

    async def check_quotas(self) -> None:
        """The first quota that is exceeded, size before age, is acted upon."""
        await self._host.subscriptions.durable.settle()
        await self._act_on_quotas()
        self._oldest_ms = await self._look_at_oldest()

    async def _act_on_quotas(self) -> None:
        for kind, quota in self._quotas():
            if await self._is_exceeded(kind, quota):
                _log.warning(line("backlog quota exceeded", topic=self._host.name, quota=kind, policy=quota.policy))
                await self._enforce(kind, quota)
                return

    async def _look_at_oldest(self) -> int | None:
        """Without preciseTimeBasedBacklogQuotaCheck nothing is read: when its ledger was closed (updateOldPositionInfo)."""
        slowest = self._slowest()
        if slowest is None or not slowest.cursor.backlog_entries():
            return None
        first = slowest.cursor.first_unacknowledged()
        if self._settings.precise_time_based_backlog_quota_check:
            return await self._operations.published_ms(first)
        return next((each.closed_at_ms for each in self._host.ledger.ledgers() if each.ledger_id == first.ledger_id), 0) or None

    def backlog_age_seconds(self) -> int:
        """Age of the oldest unacknowledged message at the last check of quotas; -1: not known, or none."""
        if self._oldest_ms is None:
            return -1
        slowest = self._slowest()
        if slowest is None or not slowest.cursor.backlog_entries():
            return -1
        return max(0, self._clock.now_ms() - self._oldest_ms) // 1000

    def _quotas(self) -> tuple[tuple[QuotaType, BacklogQuota], ...]:
        policies = self.policies
        return ((QuotaType.DESTINATION_STORAGE, policies.size_quota), (QuotaType.MESSAGE_AGE, policies.age_quota))

    async def _is_exceeded(self, kind: QuotaType, quota: BacklogQuota) -> bool:
        if kind is QuotaType.DESTINATION_STORAGE:
            return self._host.ledger.size_bytes >= quota.limit_bytes >= 0 and is_size_exceeded(quota, self._backlog_bytes())
        slowest = self._slowest() if quota.limit_seconds > 0 else None
        if slowest is None or not slowest.cursor.backlog_entries():
            return False
        before_ms = self._clock.now_ms() - quota.limit_seconds * 1000
        if self._settings.precise_time_based_backlog_quota_check:
            return await self._operations.is_published_before(slowest.cursor.first_unacknowledged(), before_ms)
        return self._closed_before(slowest, before_ms) is not None

    def _backlog_bytes(self) -> int:
        """Backlog of the slowest durable subscription; without one there is no backlog."""
        slowest = self._slowest()
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
            async for subscription in in_slices(self._durable()):
                await self._expire(subscription, REDUCTION * quota.limit_seconds)
        else:
            await self._evict_to_age(quota)

    async def _send_producers_away(self) -> None:
        """Sends the producers away. Returning producers are refused until the backlog is small enough."""
        await self._host.publishers.send_away("the backlog quota is exceeded")

    async def _evict_to_size(self, quota: BacklogQuota) -> None:
        previous = None
        for _ in range(_EVICTIONS_MAX):
            slowest = self._slowest()
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
        async for subscription in in_slices(self._durable()):
            target = self._closed_before(subscription, before_ms)
            if target is not None:
                self._evicted(subscription, subscription.acknowledge_through(target))

    def _evicted(self, subscription: Subscription, count: int) -> None:
        _log.warning(line("backlog evicted", topic=self._host.name, subscription=subscription.name, entries=count))

    def _slowest(self) -> Subscription | None:
        name = self._host.subscriptions.durable.slowest()
        return None if name is None else self._host.subscriptions.get(name)

    def _durable(self) -> list[Subscription]:
        """Compaction's own is none of them: what it has not read must not expire, nor be evicted."""
        found = self._host.subscriptions.all
        return [subscription for subscription in found if subscription.cursor.durable and subscription.name not in KEPT]


def _blocked(policy: QuotaPolicy) -> BrokerError:
    is_hold = policy is QuotaPolicy.PRODUCER_REQUEST_HOLD
    code = (
        ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR if is_hold else ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION
    )
    return BrokerError(code, "Cannot create producer on topic with backlog quota exceeded")
