"""One consumer on a subscription: turns the connection's requests into events for the dispatcher, and counts.

Owns nothing but its counters. After it was closed, or ended by the broker, every request is ignored or refused.
"""

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from typing import Protocol

from broker.dispatchers.contract import (
    ConsumerId,
    Deliver,
    Dispatcher,
    Event,
    PermitsAdded,
    RedeliveryRequested,
    WritabilityChanged,
)
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedCursor
from ports.clock import Clock
from wire.kernels.delivery_rows import ConsumerRow
from wire.position import Position
from wire.run import AckRun, EntryRun
from wire.transactions import TxnId

from ..acknowledging import Acknowledging
from ..contract import Acknowledgement, ConsumerSink, ConsumerStats, LastMessage, SubscribeRequest, SubscriptionType
from ..statistics.rates import DeliveryCounters, DeliveryRates, Rate, payload_bytes_at
from ..transactions.subscription_transactions import SubscriptionTransactions

NOTICES_WAIT_SECONDS = 1.0
"""Delay after which a consumer without permits gets the notice that it is active, or at the end: Apache's default delay
(activeConsumerFailoverDelayTimeMillis).
"""


class ConsumerSubscription(Protocol):
    """Part of a subscription that its consumers need."""

    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def cursor(self) -> ManagedCursor: ...
    @property
    def dispatcher(self) -> Dispatcher | None: ...
    @property
    def acknowledging(self) -> Acknowledging: ...
    @property
    def transactions(self) -> SubscriptionTransactions: ...
    @property
    def expired_rate(self) -> Rate: ...
    @property
    def is_fenced(self) -> bool: ...
    def handle(self, event: Event) -> None: ...
    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int, now_ms: int) -> None: ...
    def check_takes_transactions(self) -> None: ...
    def check_not_fenced(self) -> None: ...
    def tell_end_of_topic(self) -> None: ...
    def consumer_left(self, consumer: "TopicConsumer") -> None: ...
    async def reset(self, position: Position, ack_set: Sequence[int] = ()) -> None: ...
    async def reset_to_time(self, publish_time_ms: int) -> None: ...
    async def last_message(self) -> LastMessage: ...
    async def last_message_of_compacted(self) -> LastMessage: ...
    async def unsubscribe(self, consumer: "TopicConsumer", force: bool) -> None: ...


class Nobody:
    """The sink of a consumer that is closed: its connection keeps the consumer, and must not be kept by it."""

    is_writable = True

    async def is_alive(self) -> bool:
        return False

    def deliver(
        self,
        run: EntryRun,
        indexes: range | Sequence[int],
        redelivery_counts: Sequence[int] | None,
        ack_sets: Mapping[int, Sequence[int]] | None,
        consumer_epoch: int | None,
    ) -> None: ...
    def active_changed(self, is_active: bool) -> None: ...
    def reached_end_of_topic(self) -> None: ...
    def closed(self, reason: str) -> None: ...


NOBODY = Nobody()


class TopicConsumer(ConsumerRow):
    """A `broker.topic.contract.Consumer`."""

    __slots__ = (
        "__weakref__",
        "_introducing",
        "_is_active",
        "_is_introduced",
        "_knows_end",
        "connected_since_ms",
        "last_flow_ms",
        "rates",
        "request",
    )

    counters: DeliveryCounters
    key: ConsumerId
    _sink: ConsumerSink
    _subscription: ConsumerSubscription

    def __init__(
        self, subscription: ConsumerSubscription, key: ConsumerId, request: SubscribeRequest, sink: ConsumerSink, now_ms: int
    ) -> None:
        self.key = key
        self.request = request
        self.connected_since_ms = now_ms
        self.last_flow_ms = 0
        self.last_delivery_ms = 0
        self.last_acknowledgement_ms = 0
        self.counters = DeliveryCounters()
        self.rates = DeliveryRates()
        self.is_closed = False
        self._subscription = subscription
        self._sink = sink
        self._was_writable = sink.is_writable
        self._is_introduced = False
        self._is_active: bool | None = None
        self._knows_end = False
        self._introducing = asyncio.get_running_loop().call_later(NOTICES_WAIT_SECONDS, self._introduce)

    @property
    def name(self) -> str:
        return self.request.consumer_name

    @property
    def subscription(self) -> str:
        return self._subscription.name

    @property
    def type(self) -> SubscriptionType:
        return self.request.type

    # calls of the connection

    def flow(self, permits: int) -> None:
        if not self.is_closed:
            self._introduce()
            self.last_flow_ms = self._subscription.clock.now_ms()
            self._subscription.handle(PermitsAdded(self.key, permits))

    def acknowledge_run(self, run: AckRun) -> None:
        if not self.is_closed and not self._subscription.is_fenced:  # acknowledgements during a seek belong to the old place
            self.last_acknowledgement_ms = self._subscription.clock.now_ms()
            self._count_acknowledged(self._subscription.acknowledging.run(self.key, run))

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> None:
        """Same as `acknowledge_run`, for one entry, at a part of the cost where the cursor takes it as a plain one."""
        subscription = self._subscription
        if self.is_closed or subscription.is_fenced:
            return
        if not subscription.cursor.acknowledge_entry(ledger_id, entry_id):
            self.acknowledge_run(AckRun(0, array("Q", (ledger_id,)), array("Q", (entry_id,)), 0))
            return
        counters = self.counters
        counters.acknowledged += counters.messages // (counters.entries or 1)
        self.last_acknowledgement_ms = now_ms = subscription.clock.now_ms()
        subscription.entry_acknowledged(self.key, ledger_id, entry_id, now_ms)

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        if self.is_closed:
            return
        if acknowledgement.is_cumulative and self.type in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED):
            raise BrokerError(ServerError.NOT_ALLOWED, "Cumulative acknowledgement is not allowed on a shared subscription")
        if self._subscription.is_fenced:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "Subscription is fenced")
        self.last_acknowledgement_ms = self._subscription.clock.now_ms()
        self._count_acknowledged(self._subscription.acknowledging.command(self.key, acknowledgement))

    async def acknowledge_in(self, txn_id: TxnId, acknowledgement: Acknowledgement) -> None:
        self._check_open()
        if acknowledgement.is_cumulative and self.type in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED):
            raise BrokerError(ServerError.NOT_ALLOWED, "Cumulative acknowledgement is not allowed on a shared subscription")
        self._subscription.check_takes_transactions()
        self._subscription.check_not_fenced()
        await self._subscription.transactions.acknowledge(txn_id, acknowledgement)

    async def acknowledgements_stored(self) -> None:
        await self._subscription.cursor.stored()

    def redeliver(self, positions: Sequence[Position], consumer_epoch: int | None) -> None:
        if not self.is_closed:
            self._subscription.handle(RedeliveryRequested(self.key, positions or None, consumer_epoch))

    def writable(self) -> None:
        if not self.is_closed and not self._was_writable:
            self._was_writable = True
            self._subscription.handle(WritabilityChanged(self.key, True))

    async def seek(self, position: Position, ack_set: Sequence[int]) -> None:
        self._check_open()
        await self._subscription.reset(position, ack_set)

    async def seek_by_time(self, publish_time_ms: int) -> None:
        self._check_open()
        await self._subscription.reset_to_time(publish_time_ms)

    async def last_message(self) -> LastMessage:
        self._check_open()
        if self.request.read_compacted:
            return await self._subscription.last_message_of_compacted()
        return await self._subscription.last_message()

    async def unsubscribe(self, force: bool) -> None:
        self._check_open()
        await self._subscription.unsubscribe(self, force)

    def stats(self) -> ConsumerStats:
        subscription, rates, counters = self._subscription, self.rates, self.counters
        dispatcher = subscription.dispatcher
        state = None if dispatcher is None else dispatcher.consumer_state(self.key)
        return ConsumerStats(
            message_rate_out=rates.messages.per_second,
            byte_rate_out=rates.bytes.per_second,
            redelivery_rate=rates.redelivered.per_second,
            ack_rate=rates.acknowledged.per_second,
            messages_out=counters.messages,
            bytes_out=counters.payload_bytes,
            available_permits=0 if state is None else state.permits,
            unacked_messages=0 if state is None else state.unacked_messages,
            is_blocked_on_unacked=state is not None and state.is_blocked_on_unacked,
            backlog_messages=subscription.cursor.backlog_entries(),
            expired_rate=subscription.expired_rate.per_second,
            connected_since_ms=self.connected_since_ms,
        )

    def close(self) -> None:
        if not self.is_closed:
            self._let_go()
            self._subscription.consumer_left(self)

    # calls of the subscription

    async def is_alive(self) -> bool:
        """Whether its client is there; when not, it has left."""
        return await self._sink.is_alive()

    def deliver(self, delivery: Deliver) -> bool:
        """Hand a delivery to the connection; False when it has just become unable to take more."""
        run, indexes, counters = delivery.run, delivery.indexes, self.counters
        self._sink.deliver(run, indexes, delivery.redelivery_counts, delivery.ack_sets, delivery.consumer_epoch)
        counters.messages += delivery.message_count
        counters.entries += len(indexes)
        counters.payload_bytes += payload_bytes_at(run, indexes)
        if delivery.redelivery_counts is not None:
            counters.redelivered += len(indexes) - delivery.redelivery_counts.count(0)
        self.last_delivery_ms = self._subscription.clock.now_ms()
        was_writable, self._was_writable = self._was_writable, self._sink.is_writable
        return self._was_writable or not was_writable

    def deliver_run(self, run: EntryRun, message_count: int, consumer_epoch: int | None) -> bool:
        """Same as `deliver`, for all entries of a run, for the first time."""
        count, counters, sink = len(run.offsets) - 1, self.counters, self._sink
        sink.deliver(run, range(count), None, None, consumer_epoch)
        counters.messages += message_count
        counters.entries += count
        counters.payload_bytes += run.payload_bytes
        self.last_delivery_ms = self._subscription.clock.now_ms()
        was_writable, self._was_writable = self._was_writable, sink.is_writable
        return self._was_writable or not was_writable

    def delivered(self) -> None:
        """Notes that the consumer got a delivery, and whether its connection takes no more now."""
        if self._was_writable and not self._sink.is_writable:
            self._was_writable = False
            self._subscription.handle(WritabilityChanged(self.key, False))

    def active_changed(self, is_active: bool) -> None:
        self._is_active = is_active
        if self._is_introduced:
            self._sink.active_changed(is_active)

    def reached_end(self) -> None:
        """No message will ever come after the acknowledged ones; the consumer gets the notice once."""
        if self._is_introduced and not self._knows_end:
            self._knows_end = True
            self._sink.reached_end_of_topic()

    def _introduce(self) -> None:
        """Sends notices from now on, first those that have waited. The first permits show that the client has seen SUCCESS:
        before that Go's client knows no such consumer, and drops frames for it."""
        if self._is_introduced:
            return
        self._is_introduced = True
        self._introducing.cancel()
        if self._is_active is not None:
            self._sink.active_changed(self._is_active)
        self._subscription.tell_end_of_topic()

    def end(self, reason: str | None) -> None:
        """The broker ends it; `reason` None: the client asked for it and gets another answer."""
        if not self.is_closed:
            sink = self._sink
            self._let_go()
            if reason is not None:
                sink.closed(reason)

    def refused(self) -> None:
        """The subscription does not take it on."""
        self._let_go()

    def _let_go(self) -> None:
        self.is_closed = True
        self._introducing.cancel()
        self._sink = NOBODY

    def _check_open(self) -> None:
        if self.is_closed:
            raise BrokerError(ServerError.METADATA, "Consumer not found")

    def _count_acknowledged(self, entries: int) -> None:
        """Counts acknowledged messages by the mean size of delivered batches: exact without batches, close to it with them."""
        counters = self.counters
        counters.acknowledged += entries * counters.messages // max(counters.entries, 1)
