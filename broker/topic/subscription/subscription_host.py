"""SubscriptionHost: the part of a topic that a subscription needs."""

from typing import Protocol, TypeVar

from bookkeeper.ledgers import LedgerStore
from broker.compaction.compacted_topic import CompactedTopic
from managed_ledger.contract import ManagedLedger

from ..dispatch.scanned_runs import ScannedRuns
from ..transactions.logs import LogsOfItsOwn
from ..transactions.topic_transactions import TopicTransactions
from .consumer_totals import ConsumerTotals

OwnSubscription = TypeVar("OwnSubscription", contravariant=True)
"""The class of subscriptions that the topic serves."""


class SubscriptionHost(Protocol[OwnSubscription]):
    """Part of a topic that a subscription needs."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def consumers(self) -> ConsumerTotals:
        """All of the topic's together; told of each that comes and leaves."""

    @property
    def partition_index(self) -> int: ...
    @property
    def scanned(self) -> ScannedRuns: ...
    @property
    def compacted(self) -> CompactedTopic: ...
    @property
    def transactions(self) -> TopicTransactions: ...
    @property
    def logs_of_its_own(self) -> LogsOfItsOwn | None: ...
    @property
    def ledger_store(self) -> LedgerStore | None:
        """Store of delayed messages beside the log; None: they are not stored."""

    @property
    def takes_transactions(self) -> bool: ...
    def storage_failed(self, error: BaseException) -> None: ...
    def somebody_left(self) -> None: ...
    async def drop_subscription(self, subscription: OwnSubscription) -> None:
        """Delete its cursor and forget it."""

    def abandoned(self, subscription: OwnSubscription) -> None:
        """The last consumer of a non-durable subscription has left: it is of no use to anybody."""
