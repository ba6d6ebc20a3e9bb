"""Builds stats from counters, and samples the rates. Changes nothing but the rates."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from managed_ledger.contract import LedgerFacts, ManagedLedger
from managed_ledger.cursor.properties import public

from ..policies.policies import QuotaType
from .contract import KeySharedMode, SubscriptionType
from .publish.producer import TopicProducer
from .publish.publishers import Publishers
from .statistics.compaction_stats import CompactionStats
from .statistics.rates import DeliveryCounters
from .statistics.topic_stats import PublisherStats, SubscriberStats, SubscriptionStats, TopicStats, TopicTraffic
from .subscription.consumer import TopicConsumer
from .subscription.consumer_totals import ConsumerTotals
from .subscription.subscription import Subscription
from .subscription.subscription_types import SUBSCRIPTION_TYPE_NAMES
from .transactions.buffer import TransactionBuffer
from .upkeep.backlog import backlog_bytes
from .upkeep.upkeep import Upkeep

ACCESS_MODE_NAMES = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


def samples(
    publishers: Publishers, subscriptions: Iterable[Subscription], consumers: ConsumerTotals, seconds: float
) -> Iterator[Callable[[], None]]:
    """Steps that sample the rates since the last call, a step for each producer, subscription and consumer."""
    yield partial(publishers.rates.sample, publishers.counters, seconds)
    for producer in publishers.all:
        yield partial(producer.rates.sample, producer.counters, seconds)
    for subscription in subscriptions:
        yield partial(subscription.expired_rate.sample, subscription.expired_entries, seconds)
        for consumer in subscription.consumers:
            yield partial(consumers.sample, consumer, seconds)


def topic_traffic(publishers: Publishers, consumers: ConsumerTotals) -> TopicTraffic:
    return TopicTraffic(
        publishers.rates.messages.per_second,
        consumers.message_rate,
        publishers.rates.bytes.per_second,
        consumers.byte_rate,
        publishers.count,
        consumers.count,
    )


class StatsParts:
    """The stats of subscriptions and producers as they are made, one at a time, and their sums."""

    def __init__(self, ledgers: Sequence[LedgerFacts]) -> None:
        self.subscriptions: dict[str, SubscriptionStats] = {}
        self.publishers: list[PublisherStats] = []
        self.msg_rate_out = self.msg_throughput_out = self.drop_rate = 0.0
        self.out = DeliveryCounters()
        self.backlog_size = self.delayed_bytes = 0
        self._ledgers = ledgers

    def works(self, subscriptions: Iterable[Subscription], producers: Iterable[TopicProducer]) -> Iterator[Callable[[], None]]:
        """Steps that add up the stats, one for each subscription and producer."""
        yield from (partial(self.add_subscription, each) for each in subscriptions)
        yield from (partial(self.add_publisher, each) for each in producers)

    def add_subscription(self, subscription: Subscription) -> None:
        stats = self.subscription_stats(subscription)
        self.subscriptions[subscription.name] = stats
        self.msg_rate_out += stats.msg_rate_out
        self.msg_throughput_out += stats.msg_throughput_out
        self.drop_rate += stats.msg_drop_rate or 0.0
        self.out.messages += stats.msg_out_counter
        self.out.payload_bytes += stats.bytes_out_counter
        self.delayed_bytes += stats.delayed_message_index_size_in_bytes
        if stats.is_durable:
            self.backlog_size = max(self.backlog_size, stats.backlog_size)

    def add_publisher(self, producer: TopicProducer) -> None:
        stats = self.publisher_stats(producer)
        self.publishers.append(stats)
        self.drop_rate += stats.msg_drop_rate or 0.0

    def subscription_stats(self, subscription: Subscription) -> SubscriptionStats:
        return subscription_stats(subscription, self._ledgers)

    def publisher_stats(self, producer: TopicProducer) -> PublisherStats:
        return publisher_stats(producer)


def topic_stats(
    ledger: ManagedLedger,
    publishers: Publishers,
    parts: StatsParts,
    gone: DeliveryCounters,
    transactions: TransactionBuffer,
    compaction: CompactionStats | None,
    created_ms: int,
    upkeep: Upkeep,
) -> TopicStats:
    rates, counters, evictions = publishers.rates, publishers.counters, upkeep.quotas.evictions
    return TopicStats(
        msg_rate_in=rates.messages.per_second,
        msg_throughput_in=rates.bytes.per_second,
        msg_rate_out=parts.msg_rate_out,
        msg_throughput_out=parts.msg_throughput_out,
        bytes_in_counter=counters.payload_bytes,
        msg_in_counter=counters.messages,
        bytes_out_counter=gone.payload_bytes + parts.out.payload_bytes,
        msg_out_counter=gone.messages + parts.out.messages,
        average_msg_size=_mean(rates.bytes.per_second, rates.messages.per_second),
        msg_chunk_published=counters.chunks > 0,
        storage_size=ledger.size_bytes,
        backlog_size=parts.backlog_size,
        backlog_quota_limit_size=upkeep.policies.size_quota.limit_bytes,
        backlog_quota_limit_time=upkeep.policies.age_quota.limit_seconds,
        oldest_backlog_message_age_seconds=upkeep.backlog_age_seconds(),
        quota_evictions=(evictions[QuotaType.DESTINATION_STORAGE], evictions[QuotaType.MESSAGE_AGE]),
        publish_rate_limited_times=publishers.rate_limited_times,
        waiting_publishers=publishers.waiting_count,
        delayed_message_index_size_in_bytes=parts.delayed_bytes,
        topic_epoch=publishers.topic_epoch,
        topic_creation_time_stamp=created_ms,
        last_publish_time_stamp=publishers.last_publish_ms,
        last_confirmed_position=str(ledger.last_confirmed),
        is_terminated=ledger.is_terminated,
        deduplication_status=publishers.deduplication.status.value,
        ongoing_txn_count=transactions.open_count,
        aborted_txn_count=transactions.aborted_count,
        committed_txn_count=transactions.committed_count,
        compaction=compaction,
        publishers=tuple(parts.publishers),
        subscriptions=parts.subscriptions,
    )


def publisher_stats(producer: TopicProducer) -> PublisherStats:
    request, rates = producer.request, producer.rates
    return PublisherStats(
        access_mode=ACCESS_MODE_NAMES[request.access_mode],
        msg_rate_in=rates.messages.per_second,
        msg_throughput_in=rates.bytes.per_second,
        average_msg_size=_mean(rates.bytes.per_second, rates.messages.per_second),
        chunked_message_rate=rates.chunks.per_second,
        producer_id=request.producer_id,
        producer_name=request.name,
        address=request.address,
        connected_since_ms=producer.connected_since_ms,
        client_version=request.client_version,
        metadata=request.metadata,
    )


def subscription_stats(subscription: Subscription, ledgers: Sequence[LedgerFacts]) -> SubscriptionStats:
    consumers = tuple(subscriber_stats(subscription, consumer) for consumer in subscription.consumers)
    dispatcher, cursor, gone = subscription.dispatcher, subscription.cursor, subscription.gone
    state = None if dispatcher is None else dispatcher.state()
    key_shared = subscription.key_shared
    return SubscriptionStats(
        type="None" if subscription.type is None else SUBSCRIPTION_TYPE_NAMES[subscription.type],
        msg_rate_out=sum(stats.msg_rate_out for stats in consumers),
        msg_throughput_out=sum(stats.msg_throughput_out for stats in consumers),
        bytes_out_counter=gone.payload_bytes + sum(stats.bytes_out_counter for stats in consumers),
        msg_out_counter=gone.messages + sum(stats.msg_out_counter for stats in consumers),
        msg_rate_redeliver=sum(stats.msg_rate_redeliver for stats in consumers),
        message_ack_rate=sum(stats.message_ack_rate for stats in consumers),
        msg_backlog=cursor.backlog_entries(),
        backlog_size=backlog_bytes(ledgers, cursor.mark_delete),
        msg_rate_expired=subscription.expired_rate.per_second,
        total_msg_expired=subscription.expired_entries,
        last_expire_timestamp=subscription.last_expire_ms,
        blocked_subscription_on_unacked_msgs=state is not None and state.is_blocked_on_unacked,
        msg_in_replay=0 if state is None else state.entries_in_replay,
        unacked_messages=0 if state is None else state.unacked_messages,
        active_consumer_name=_active_name(subscription),
        last_consumed_flow_timestamp=max((stats.last_consumed_flow_timestamp for stats in consumers), default=0),
        last_consumed_timestamp=max((stats.last_consumed_timestamp for stats in consumers), default=0),
        last_acked_timestamp=max((stats.last_acked_timestamp for stats in consumers), default=0),
        last_mark_delete_advanced_timestamp=subscription.mark_delete_advanced_ms,
        is_durable=cursor.durable,
        allow_out_of_order_delivery=key_shared is not None and key_shared.allow_out_of_order,
        key_shared_mode="" if key_shared is None else KeySharedMode(key_shared.mode).name,
        draining_hashes_count=0 if state is None else state.draining_hashes,
        msg_delayed=0 if state is None else state.delayed_entries,
        delayed_message_index_size_in_bytes=0 if state is None else state.delayed_bytes,
        delayed_index=() if subscription.index is None else subscription.index.metrics(),
        read_position="" if state is None or state.read_position is None else str(state.read_position),
        is_waiting=state is not None and state.is_waiting,
        dispatch_throttled_events=subscription.throttled_times.counts(),
        subscription_properties=public(cursor.cursor_properties),
        mark_delete_position=str(cursor.mark_delete),
        pending_acks=subscription.transactions.counts,
        consumers=consumers,
    )


def subscriber_stats(subscription: Subscription, consumer: TopicConsumer) -> SubscriberStats:
    stats, counters, request = consumer.stats(), consumer.counters, consumer.request
    state = None if subscription.dispatcher is None else subscription.dispatcher.consumer_state(consumer.key)
    return SubscriberStats(
        consumer_name=request.consumer_name,
        msg_rate_out=stats.message_rate_out,
        msg_throughput_out=stats.byte_rate_out,
        bytes_out_counter=counters.payload_bytes,
        msg_out_counter=counters.messages,
        msg_rate_redeliver=stats.redelivery_rate,
        message_ack_rate=stats.ack_rate,
        available_permits=stats.available_permits,
        unacked_messages=stats.unacked_messages,
        avg_messages_per_entry=counters.messages // max(counters.entries, 1),
        blocked_consumer_on_unacked_msgs=stats.is_blocked_on_unacked,
        address=request.address,
        connected_since_ms=consumer.connected_since_ms,
        client_version=request.client_version,
        last_acked_timestamp=consumer.last_acknowledgement_ms,
        last_consumed_timestamp=consumer.last_delivery_ms,
        last_consumed_flow_timestamp=consumer.last_flow_ms,
        key_hash_ranges=() if state is None else state.hash_ranges,
        metadata=request.metadata,
    )


def _active_name(subscription: Subscription) -> str:
    if subscription.type not in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER) or subscription.dispatcher is None:
        return ""
    active = subscription.dispatcher.state().active_consumer
    return next((consumer.name for consumer in subscription.consumers if consumer.key == active), "")


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0
