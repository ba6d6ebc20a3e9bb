"""Upkeep of one topic by its policies: time to live, unused subscriptions, compaction, backlog quotas (`backlog_quotas`).

Owns the policies in force; a change takes effect by `policy_effects`. A check of a topic without work costs a few comparisons:
a round of ten thousand topics consists mostly of these. (Apache: PersistentTopic.checkMessageExpiry.)
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from broker.errors import BrokerError
from managed_ledger.contract import ManagedLedger
from ports.clock import Clock
from ports.logs import line
from ports.loop.owner import ask, tell
from ports.loop.slices import in_slices

from ...policies.in_force import PoliciesInForce
from ...policies.policies import (
    NOTHING_SAID,
    EffectivePolicies,
    TopicPolicies,
)
from ...policies.topic_settings import TopicSettings
from ..acknowledging import is_replicated
from ..publish.publishers import Publishers
from ..statistics.compaction_stats import CompactedLedgerFacts, CompactionStatus
from ..subscription.subscriptions import Subscriptions
from .backlog_quotas import BacklogQuotas
from .durable_backlogs import DurableBacklogs
from .expiry_timer import ExpiryTimer
from .policy_effects import take_effect
from .topic_compaction import TopicCompaction

_log = logging.getLogger(__name__)


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
        self._backlogs = DurableBacklogs(host, clock)
        self.quotas = BacklogQuotas(host, self._backlogs, policies, settings, clock)
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
        take_effect(self._host, old, new)
        self._expiry.set_ttl(new.message_ttl_seconds)
        self._keep_for_compaction()

    # time to live

    async def expire(self) -> None:
        """Acknowledges, on every durable subscription, messages older than its time to live."""
        ttl_seconds = self.policies.message_ttl_seconds
        if ttl_seconds <= 0:
            return
        if not await self._backlogs.has_any():
            return
        async for subscription in in_slices(self._backlogs.durable()):
            if not subscription.is_fenced and subscription.cursor.backlog_entries():
                await self._backlogs.expire(subscription, ttl_seconds)

    async def _expire_and_look(self) -> int | None:
        await self.expire()
        return await self._backlogs.oldest_published_ms()

    async def expire_subscriptions(self) -> None:
        """Delete those without consumers that nothing has happened to for the time allowed (checkInactiveSubscriptions).

        The time is the loop's: no step of the wall clock ends it. One that is replicated is used elsewhere, perhaps.
        """
        minutes = self.policies.subscription_expiration_minutes
        if minutes <= 0:
            return
        before_s = asyncio.get_running_loop().time() - minutes * 60
        async for subscription in in_slices(self._backlogs.durable()):
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
        """Reason to refuse a producer: a backlog is too large, and the policy is one that holds producers back."""
        return await self.quotas.refusal()

    async def check_quotas(self) -> None:
        await self.quotas.check()

    def backlog_age_seconds(self) -> int:
        return self.quotas.age_seconds()
