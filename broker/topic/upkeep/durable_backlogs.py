"""Backlogs of one topic's durable subscriptions, but compaction's: the slowest of them, and the expiry of old messages."""

import logging
from typing import Protocol

from managed_ledger.contract import ManagedLedger
from ports.clock import Clock
from ports.logs import line

from ..subscription.subscription import Subscription
from ..subscription.subscriptions import Subscriptions
from .cursor_operations import CursorOperations

_log = logging.getLogger(__name__)

KEPT = frozenset({"__compaction"})
"""Subscriptions of the broker's own: messages that compaction has not read must not expire, nor be evicted."""


class BacklogsHost(Protocol):
    """Part of a topic that its backlogs need."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def subscriptions(self) -> Subscriptions: ...


class DurableBacklogs:
    """Durable subscriptions of one topic, as its time to live and its quotas see them."""

    def __init__(self, host: BacklogsHost, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._operations = CursorOperations(host.ledger)

    def durable(self) -> list[Subscription]:
        """Durable subscriptions without the broker's own."""
        found = self._host.subscriptions.all
        return [subscription for subscription in found if subscription.cursor.durable and subscription.name not in KEPT]

    def slowest(self) -> Subscription | None:
        """Subscription that is furthest behind; None: there is none. Call `has_any` first, or `settle`."""
        name = self._host.subscriptions.durable.slowest()
        return None if name is None else self._host.subscriptions.get(name)

    async def settle(self) -> None:
        """Puts the order of the subscriptions right; `slowest` takes no time afterwards."""
        await self._host.subscriptions.durable.settle()

    async def has_any(self) -> bool:
        """Whether a durable subscription has a backlog; `slowest` takes no time afterwards."""
        await self.settle()
        slowest = self.slowest()
        return slowest is not None and slowest.cursor.backlog_entries() > 0

    async def oldest_published_ms(self) -> int | None:
        """Publish time of the oldest message in a backlog; None without a backlog, or where the message gives no time."""
        first = self.slowest() if await self.has_any() else None
        return None if first is None else await self._operations.published_ms(first.cursor.first_unacknowledged())

    async def expire(self, subscription: Subscription, seconds: float) -> None:
        """Acknowledges messages of the subscription that are older than that."""
        count = await self._operations.expire(subscription, self._clock.now_ms() - int(seconds * 1000))
        if count:
            _log.info(line("messages expired", topic=self._host.name, subscription=subscription.name, entries=count))
