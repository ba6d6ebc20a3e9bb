"""StoredTopicOperations: operators' changes to a topic's cursors, by the names of subscriptions. Satisfies `TopicOperations`.

Owns nothing. A moved cursor is stored when the call returns (Apache leaves it to the cursor's next write).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedLedger, ManagedLedgerError
from managed_ledger.cursor.properties import public
from ports.clock import Clock
from ports.loop.slices import in_slices
from wire.kernels.metadata import publish_times
from wire.position import Position
from wire.run import EntryRun

from ...policies.topic_settings import TopicSettings
from ..errors import broker_error
from ..operations_contract import BacklogAnalysis
from ..subscription.places import first_published_at_or_after, first_with_index_at_or_after
from ..subscription.subscription import Subscription
from ..subscription.subscriptions import OF_COMPACTION, Subscriptions, check_properties
from .backlog import backlog_bytes
from .cursor_operations import CursorOperations


class OperatedTopic(Protocol):
    """Part of a topic that operations need."""

    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def subscriptions(self) -> Subscriptions: ...


class StoredTopicOperations:
    """Operations on one topic."""

    def __init__(self, topic: OperatedTopic, settings: TopicSettings, clock: Clock) -> None:
        self._topic = topic
        self._settings = settings
        self._clock = clock
        self._cursors = CursorOperations(topic.ledger)
        self._oldest: tuple[Position, int] | None = None
        """Position and publish time of the backlog's oldest message when it was asked for last."""

    @property
    def log(self) -> ManagedLedger:
        return self._topic.ledger

    def has_subscription(self, subscription: str) -> bool:
        return self._topic.subscriptions.get(subscription) is not None

    def subscription_names(self) -> list[str]:
        return self._topic.subscriptions.names

    def durable_subscription_names(self) -> list[str]:
        return self._topic.subscriptions.durable.names

    def backlog_entries(self, subscription: str) -> int:
        return self._found(subscription).cursor.backlog_entries()

    async def skip(self, subscription: str, entries: int) -> int:
        found = self._movable(subscription)
        return await _stored(found, await self._cursors.skip(found, entries))

    async def clear_backlog(self, subscription: str) -> int:
        found = self._movable(subscription)
        return await _stored(found, self._cursors.clear(found))

    async def expire_older_than(self, subscription: str, seconds: int) -> int:
        found = self._movable(subscription)
        if not seconds:
            return 0  # as a time to live of 0 (MessageImpl.isEntryExpired)
        return await _stored(found, await self._cursors.expire(found, self._clock.now_ms() - seconds * 1000))

    async def expire_through(self, subscription: str, position: Position) -> int:
        found = self._movable(subscription)
        return await _stored(found, self._cursors.expire_through(found, position))

    async def reset(self, subscription: str, position: Position, ack_set: Sequence[int] = ()) -> None:
        await self._movable(subscription, despite_fence=True).reset(position, ack_set)

    async def reset_to_time(self, subscription: str, publish_time_ms: int) -> None:
        await self._movable(subscription, despite_fence=True).reset_to_time(publish_time_ms)

    async def peek(self, subscription: str, number: int) -> EntryRun | None:
        return await self._cursors.peek(self._found(subscription), number)

    async def read(self, position: Position) -> EntryRun | None:
        return await self._cursors.read(position)

    async def first_published_at_or_after(self, publish_time_ms: int) -> Position:
        try:
            return await first_published_at_or_after(self._topic.ledger, publish_time_ms)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def first_with_index_at_or_after(self, index: int) -> Position | None:
        if not self._settings.broker_entry_metadata_interceptors:
            reason = "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
            raise BrokerError(ServerError.NOT_ALLOWED, reason)
        try:
            return await first_with_index_at_or_after(self._topic.ledger, index)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def analyze_backlog(self, subscription: str, start: Position | None) -> BacklogAnalysis:
        settings = self._settings
        deadline_ms = self._clock.now_ms() + settings.subscription_backlog_scan_max_time_ms
        found = self._found(subscription)
        return await self._cursors.analyze(
            found, start, settings.subscription_backlog_scan_max_entries, lambda: self._clock.now_ms() >= deadline_ms
        )

    async def examine(self, number: int, *, from_earliest: bool) -> EntryRun | None:
        """Entry of that number; a number below 1 is 1, as in Apache (PersistentTopicsBase.internalExamineMessageAsync)."""
        log = self._topic.ledger
        if not log.entry_count:
            return None
        nth = min(max(number, 1), log.entry_count)
        return await self._cursors.read(_nth_of(log, nth if from_earliest else log.entry_count - nth + 1))

    def size_after(self, position: Position) -> int:
        log = self._topic.ledger
        first = max(position, log.first_position())
        return backlog_bytes(log.ledgers(), Position(first.ledger_id, first.entry_id - 1))

    async def earliest_publish_time_ms(self, subscription: str) -> int:
        cursor = self._found(subscription).cursor
        if not cursor.backlog_entries():
            return 0
        try:
            run = await self._topic.ledger.read(cursor.first_unacknowledged(), 1, 1)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        return 0 if run is None else publish_times(run)[0]

    async def oldest_in_backlog(self) -> tuple[str, int] | None:
        """The log is read only where the place is another than the last time."""
        await self._topic.subscriptions.durable.settle()
        slowest = self._topic.subscriptions.get(self._topic.subscriptions.durable.oldest() or "")
        if slowest is None or not slowest.cursor.backlog_entries():
            return None
        position = slowest.cursor.first_unacknowledged()
        if self._oldest is None or self._oldest[0] != position:
            published_ms = await self._cursors.published_ms(position)
            if published_ms is None:
                return None
            self._oldest = position, published_ms
        return slowest.name, max(0, self._clock.now_ms() - self._oldest[1]) // 1000

    async def change_properties(self, edit: Callable[[dict[str, str]], object]) -> None:
        properties = dict(self._topic.ledger.properties)
        edit(properties)
        try:
            await self._topic.ledger.set_properties(properties)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    def subscription_properties(self, subscription: str) -> Mapping[str, str]:
        return public(self._found(subscription).cursor.cursor_properties)

    async def set_subscription_properties(self, subscription: str, properties: Mapping[str, str]) -> None:
        check_properties(properties)
        try:
            await self._found(subscription).cursor.set_cursor_properties(properties)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def truncate(self) -> None:
        last = self._topic.ledger.last_confirmed  # messages that come meanwhile stay
        async for subscription in in_slices(self._topic.subscriptions.all):
            if self._topic.subscriptions.get(subscription.name) is subscription:  # not deleted meanwhile
                subscription.acknowledge_through(last)
        try:
            await self._topic.ledger.trim(despite_retention=True)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    def _found(self, name: str) -> Subscription:
        subscription = self._topic.subscriptions.get(name)
        if subscription is None:
            raise BrokerError(ServerError.SUBSCRIPTION_NOT_FOUND, f"Subscription {name} not found")
        return subscription

    def _movable(self, name: str, *, despite_fence: bool = False) -> Subscription:
        subscription = self._found(name)
        if name == COMPACTION_CURSOR:
            raise BrokerError(ServerError.NOT_ALLOWED, OF_COMPACTION)
        if subscription.is_fenced and not despite_fence:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "Subscription is fenced")
        return subscription


def _nth_of(log: ManagedLedger, number: int) -> Position:
    """Position of the `number`-th of all entries; there are at least so many."""
    for ledger in log.ledgers():
        if number <= ledger.entries:
            return Position(ledger.ledger_id, number - 1)
        number -= ledger.entries
    return log.last_confirmed


async def _stored(subscription: Subscription, count: int) -> int:
    try:
        await subscription.cursor.flush()
    except ManagedLedgerError as error:
        raise broker_error(error) from error
    return count
