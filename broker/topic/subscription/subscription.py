"""One subscription: a cursor, its consumers and the dispatcher that serves them.

Owns the connected consumers, and the rules that hold for all types: one type at a time, limits, and being fenced (refusing
consumers) while its cursor is moved or deleted. The dispatcher decides deliveries; the cursor holds acknowledgements.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from bookkeeper.ledgers import LedgerError
from broker.dispatchers.contract import (
    ConsumerId,
    ConsumerRemoved,
    DelaysChanged,
    Dispatcher,
    EntriesAvailable,
    Event,
    LimitsChanged,
    MarkDeleteMoved,
)
from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedCursor, ManagedLedgerError
from ports.clock import Clock
from ports.loop.owner import tell, weakly
from wire.kernels.delivery_rows import SubscriptionRow
from wire.position import Position
from wire.run import EntryRun, RunMetadata

from ...policies.in_force import PoliciesInForce
from ...policies.topic_settings import TopicSettings
from ..acknowledging import Acknowledging
from ..contract import (
    Acknowledgement,
    ConsumerSink,
    KeySharedMeta,
    LastMessage,
    SubscribeRequest,
    SubscriptionType,
)
from ..delayed.delayed_index import index_of
from ..dispatch.compacted_reading import CompactedReading, compacted_start, last_message_of_compacted
from ..dispatch.dispatch_driver import DispatchDriver
from ..dispatch.dispatch_ports import StoredIndex
from ..errors import broker_error
from ..limits.dispatch_throttle import DispatchLimit, DispatchThrottle, SharedDispatchLimits, ThrottledTimes
from ..limits.unacked_limit import BrokerUnacked
from ..statistics.rates import DeliveryCounters, PublishRates, Rate
from ..transactions.subscription_transactions import SubscriptionTransactions
from .awaited_return import AwaitedReturn
from .consumer import TopicConsumer
from .places import batch_size, first_published_at_or_after, last_message
from .subscription_host import SubscriptionHost
from .subscription_types import consumer_added, make_dispatcher

_log = logging.getLogger(__name__)


class Subscription(SubscriptionRow):
    """A named place in a topic and its consumers."""

    cursor: ManagedCursor
    _consumers: "dict[ConsumerId, TopicConsumer]"
    _driver: DispatchDriver | None
    counts_unacked = True
    """Whether the broker's limit on unacknowledged messages is meant."""

    def __init__(
        self,
        host: "SubscriptionHost[Subscription]",
        name: str,
        cursor: ManagedCursor,
        policies: PoliciesInForce,
        settings: TopicSettings,
        dispatcher_settings: DispatcherSettings,
        clock: Clock,
    ) -> None:
        self.name = name
        self.cursor = cursor
        self.clock = clock
        self._loop = loop = asyncio.get_running_loop()
        self.type: SubscriptionType | None = None
        self.key_shared: KeySharedMeta | None = None
        self.mark_delete_advanced_ms = 0
        self.last_active_s = loop.time()
        """Loop time, since it was loaded, when the last consumer left or something was acknowledged."""
        self.expired_entries = 0
        self.expired_rate = Rate()
        self.last_expire_ms = 0
        self.is_fenced = False
        self.gone = DeliveryCounters()
        """Deliveries to consumers that have left."""
        self._host = host
        self._policies = policies
        self._dispatcher_settings = dispatcher_settings
        self._label = f"{host.name} {name}"
        self._consumers = {}
        self._ids_given, self._last_mark_delete = 0, cursor.mark_delete
        self._driver = None
        self.throttled_times = ThrottledTimes()
        self._dispatch_limit = DispatchLimit()
        self._throttle: DispatchThrottle | None = None
        self._unacked: BrokerUnacked | None = None
        self._held_to = 0
        self._awaited_return = AwaitedReturn(tell(self._give_up))
        self.acknowledging = Acknowledging(
            host.ledger,
            cursor,
            self._label,
            tell(self.handle),
            tell(self._acknowledged),
            batch_indexes=settings.acknowledgment_at_batch_index_level_enabled,
        )
        self.transactions = SubscriptionTransactions(weakly(self), host.logs_of_its_own, tell(host.storage_failed))

    @property
    def consumers(self) -> list[TopicConsumer]:
        return list(self._consumers.values())

    @property
    def consumer_count(self) -> int:
        return len(self._consumers)

    @property
    def dispatcher(self) -> Dispatcher | None:
        return None if self._driver is None else self._driver.dispatcher

    @property
    def index(self) -> StoredIndex | None:
        return None if self._driver is None else self._driver.index

    def handle(self, event: Event) -> None:
        if self._driver is not None:
            self._driver.handle(event)

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> bool:
        """Deliver a run that was just confirmed, at once; False: `entries_available` has to be called. Without a consumer
        there is nothing to do."""
        return not self._consumers or self._driver is None or self._driver.take_newest(run, metadata)

    def entries_available(self) -> None:
        if self._driver is not None and self._consumers:
            self._driver.handle(EntriesAvailable())

    # consumers come and go

    def add_consumer(self, request: SubscribeRequest, sink: ConsumerSink) -> TopicConsumer:
        """BrokerError when it is not accepted. Nothing is delivered before it has given permits."""
        self._check_accepts(request)
        driver = self._driver_for(request.type)
        driver.compacted = self._compacted_reading(request)
        self._ids_given += 1
        key = ConsumerId(self._ids_given)
        consumer = TopicConsumer(self, key, request, sink, self.clock.now_ms())
        self._consumers[key] = driver.targets[key] = consumer
        driver.handle(consumer_added(key, request, sink.is_writable))
        refusal = driver.take_refusal()
        if refusal is not None:
            consumer.refused()
            del self._consumers[key], driver.targets[key]
            raise refusal
        self.key_shared = request.key_shared if request.type is SubscriptionType.KEY_SHARED else None
        self._awaited_return.end()
        self._host.consumers.came(consumer)
        return consumer

    def _compacted_reading(self, request: SubscribeRequest) -> CompactedReading | None:
        if not request.read_compacted:
            return None
        return CompactedReading(self._host.compacted, self._host.ledger, self.cursor, compacted_start(request))

    def _check_accepts(self, request: SubscribeRequest) -> None:
        self.check_not_fenced()
        if self._consumers and self.type is not request.type:
            raise BrokerError(ServerError.CONSUMER_BUSY, "Subscription is of different type")
        if 0 < self._policies.current.max_consumers_per_subscription <= len(self._consumers):
            raise BrokerError(ServerError.CONSUMER_BUSY, "Subscription reached max consumers limit")

    def _driver_for(self, subscription_type: SubscriptionType) -> DispatchDriver:
        if self._driver is None or self.type is not subscription_type:
            self._stop_dispatching()
            self.type = subscription_type
            host, settings = self._host, self._dispatcher_settings
            dispatcher = make_dispatcher(subscription_type, settings, host.partition_index)
            dispatcher.handle(self._limits(), 0)
            dispatcher.handle(self._delays(), 0)
            log, place, wall_ms = host.transactions.committed, self.transactions.cursor, self.clock.now_ms
            self._driver = DispatchDriver(dispatcher, log, place, host.scanned, self._label, host.storage_failed, wall_ms)
            self._driver.limit(self._throttle)
            self._driver.index = index_of(host, self.cursor, place, self.name, self._driver, settings, wall_ms)
            self._driver.on_unacked = None if self._unacked is None else partial(self._unacked.count, self)
        return self._driver

    def _limits(self) -> LimitsChanged:
        policies = self._policies.current
        limits = [limit for limit in (policies.max_unacked_per_subscription, self._held_to) if limit > 0]
        return LimitsChanged(max(0, policies.max_unacked_per_consumer), min(limits, default=0))

    def hold_to(self, messages_max: int) -> None:
        """Sets the maximum that the broker's limit on unacknowledged messages leaves to the subscription (`BrokerUnacked`)."""
        self._held_to = messages_max
        self.handle(self._limits())

    def _delays(self) -> DelaysChanged:
        policies, is_strict = self._policies.current, self._dispatcher_settings.is_delayed_delivery_deliver_at_time_strict
        return DelaysChanged(policies.delayed_delivery_enabled, policies.delayed_delivery_tick_ms, is_strict)

    def policies_changed(self, shared: SharedDispatchLimits) -> None:
        """Applies the policies on deliveries from now on, with the rates that the subscription shares with others."""
        now = self._loop.time()
        self._unacked = shared.unacked if self.counts_unacked else None
        self._dispatch_limit.apply(self._policies.current.dispatch_rate_of(self.name), shared.published, now)
        limiters = (self._dispatch_limit.limiter, shared.topic.limiter, shared.broker)
        throttle = DispatchThrottle(limiters, self.throttled_times, counts_batches_as_one=shared.counts_batches_as_one)
        self._throttle = throttle if throttle.limiters else None
        if self._driver is not None:
            self._driver.limit(self._throttle)
        self.handle(self._limits())
        self.handle(self._delays())

    def publish_rates_sampled(self, published: PublishRates) -> None:
        """A dispatch rate may be relative to them."""
        self._dispatch_limit.sampled(published, asyncio.get_running_loop().time())

    def consumer_left(self, consumer: TopicConsumer) -> None:
        """Removes a consumer that closed or lost its connection; its unacknowledged messages go to others."""
        if not self._forget(consumer):
            return
        self.last_active_s = asyncio.get_running_loop().time()
        self.handle(ConsumerRemoved(consumer.key))
        if self._driver is not None:
            self._driver.targets.pop(consumer.key, None)
        if not (self._consumers or self.cursor.durable or self.is_fenced):
            self._host.abandoned(self)
        self._host.somebody_left()

    def _forget(self, consumer: TopicConsumer) -> bool:
        if self._consumers.pop(consumer.key, None) is None:
            return False
        self.gone.include(consumer.counters)
        self._host.consumers.left(consumer)
        return True

    def end_consumers(self, reason: str | None, *, asked_by: TopicConsumer | None = None) -> None:
        """Disconnects all; the one that asked gets another answer. The dispatcher starts anew with the next consumer."""
        self._awaited_return.end()
        self._stop_dispatching()
        for consumer in self.consumers:
            self._forget(consumer)
            consumer.end(None if consumer is asked_by else reason)

    def _give_up(self) -> None:
        self._host.abandoned(self)

    def _stop_dispatching(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            self._held_to = 0
            if self._unacked is not None:
                self._unacked.forget(self)

    # the place is moved, or given up

    def acknowledge_through(self, position: Position) -> int:
        """Acknowledges all up to and including it, for all consumers; returns the number of newly acknowledged entries.
        Does nothing while the place is being moved otherwise, nor for acknowledged entries."""
        if self.is_fenced or position <= self.cursor.mark_delete:
            return 0
        before = self.cursor.backlog_entries()
        try:
            self.cursor.acknowledge_cumulative(position)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        self.handle(MarkDeleteMoved(self.cursor.mark_delete))
        self._acknowledged()
        return before - self.cursor.backlog_entries()

    def acknowledge_committed(self, acknowledgement: Acknowledgement) -> None:
        """Applies a committed transaction's acknowledgements to the cursor."""
        self.acknowledging.command(None, acknowledgement)

    def expire_through(self, position: Position) -> int:
        """The same, for entries that were not acknowledged in time."""
        count = self.acknowledge_through(position)
        if count:
            self.expired_entries += count
            self.last_expire_ms = self.clock.now_ms()
        return count

    async def reset(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        """Seek: all consumers are closed after the cursor has moved, and come back by themselves."""
        self._fence("Failed to fence subscription")
        try:
            self._stop_dispatching()
            await self._move_cursor(position, ack_set)
        finally:
            self.is_fenced = False
            self.end_consumers("the subscription was reset")
            if not self.cursor.durable:
                self._awaited_return.begin()

    async def reset_to_time(self, publish_time_ms: int) -> None:
        """Moves to the first message published at that time or later; with none, to the end."""
        try:
            position = await first_published_at_or_after(self._host.ledger, publish_time_ms)
        except ManagedLedgerError as error:
            raise _reset_failed(error) from error
        await self.reset(position)

    async def _move_cursor(self, position: Position, ack_set: Sequence[int]) -> None:
        try:
            await self.cursor.reset(position)
            if any(ack_set):
                self.cursor.acknowledge_batch_indexes(position, ack_set, batch_size(ack_set))
        except ManagedLedgerError as error:
            raise _reset_failed(error) from error
        _log.info("%s: reset to %s", self._label, position)

    async def unsubscribe(self, consumer: TopicConsumer, force: bool) -> None:
        """Delete the subscription on a consumer's wish; only its last consumer may, unless it uses force."""
        if len(self._consumers) > 1 and not force:
            message = "Unconnected or shared consumer attempting to unsubscribe"
            raise BrokerError(ServerError.METADATA, message)
        await self._delete(asked_by=consumer)

    async def delete(self, *, force: bool) -> None:
        """Delete it on an administrator's wish."""
        if self._consumers and not force:
            raise BrokerError(ServerError.CONSUMER_BUSY, "Subscription has active connected consumers")
        await self._delete(asked_by=None)

    async def _delete(self, asked_by: TopicConsumer | None) -> None:
        self._fence("Subscription is fenced")
        self.end_consumers("the subscription was deleted", asked_by=asked_by)
        try:
            await self._host.drop_subscription(self)
        except BaseException:
            self.is_fenced = False
            raise
        self._host.somebody_left()

    def check_takes_transactions(self) -> None:
        """BrokerError(NOT_ALLOWED) where there are none."""
        if not self._host.takes_transactions:
            raise BrokerError(ServerError.NOT_ALLOWED, "Transactions are not enabled.")

    def check_not_fenced(self) -> None:
        """BrokerError(SERVICE_NOT_READY) while its place is being moved, or it is being deleted."""
        if self.is_fenced:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "Subscription is fenced")

    def _fence(self, otherwise: str) -> None:
        if self.is_fenced:
            raise BrokerError(ServerError.UNKNOWN, f"Error when resetting subscription: {otherwise}")
        self.is_fenced = True

    def _acknowledged(self) -> None:
        if (mark := self.cursor.mark_delete) != self._last_mark_delete:
            self._last_mark_delete = mark
            self.mark_delete_advanced_ms, self.last_active_s = self.clock.now_ms(), self._loop.time()
        self.tell_end_of_topic()

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int, now_ms: int) -> None:
        """A plain entry was acknowledged on the cursor (`ManagedCursor.acknowledge_entry`): the topic's end is not near."""
        if self._driver is not None:
            self._driver.entry_acknowledged(consumer, ledger_id, entry_id)
        if (mark := self.cursor.mark_delete) != self._last_mark_delete:
            self._last_mark_delete = mark
            self.mark_delete_advanced_ms, self.last_active_s = now_ms, self._loop.time()

    # calls of consumers

    async def last_message(self) -> LastMessage:
        host = self._host
        try:
            return await last_message(host.transactions.committed, self.cursor.mark_delete, host.scanned.metadata)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def last_message_of_compacted(self) -> LastMessage:
        """Last message for a consumer that reads compacted."""
        found = await self.last_message()
        try:
            return await last_message_of_compacted(self._host.compacted, found)
        except (LedgerError, ValueError) as error:
            message = f"the compacted ledger cannot be read: {type(error).__name__}: {error}"
            raise BrokerError(ServerError.PERSISTENCE, message) from error

    def tell_end_of_topic(self) -> None:
        """Sends REACHED_END_OF_TOPIC when the last message of a terminated topic is acknowledged."""
        if self._host.ledger.is_terminated and self.cursor.backlog_entries() == 0:
            for consumer in self.consumers:
                consumer.reached_end()


def _reset_failed(error: ManagedLedgerError) -> BrokerError:
    return BrokerError(ServerError.UNKNOWN, f"Error when resetting subscription: {type(error).__name__}: {error}")
