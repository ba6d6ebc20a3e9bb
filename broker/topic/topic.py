"""A loaded topic: its producers, its subscriptions and its life from loading to unloading or deletion.

Relies on the managed ledger for everything durable. A topic that cannot trust its log any more closes itself and its clients,
so that they look it up again and it is loaded anew.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from broker.compaction.compacted_topic import COMPACTION_CURSOR, CompactedTopic
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedLedger, ManagedLedgerError, ManagedLedgerFenced
from ports.loop.owner import ask, weakly
from ports.loop.slices import do_in_slices, in_slices
from wire.position import Position
from wire.transactions import TxnAction, TxnId

from .contract import ConsumerSink, ProducerRequest, ProducerSink, SubscribeRequest, SubscriptionType, TopicActivity
from .dispatch.scanned_runs import ScannedRuns
from .errors import broker_error, topic_unavailable
from .kinds import STORED
from .limits.subscribe_limiter import SubscribeLimiter
from .publish.producer import TopicProducer
from .reporting import StatsParts, samples, topic_stats, topic_traffic
from .statistics.topic_stats import TopicStats, TopicTraffic
from .statistics.transaction_facts import AckPlace, BufferFacts, InBufferFacts, InPendingAckFacts, PendingAckFacts
from .subscription.consumer import TopicConsumer
from .subscription.consumer_totals import ConsumerTotals
from .subscription.subscription import Subscription
from .subscription.subscription_types import SUBSCRIPTION_TYPE_NAMES
from .subscription.subscriptions import Subscriptions
from .surroundings import TopicSurroundings
from .transactions.logs import LogsOfItsOwn
from .transactions.snapshot_store import SnapshotStore
from .transactions.topic_transactions import TopicTransactions
from .upkeep.topic_compaction import TopicCompaction
from .upkeep.topic_operations import StoredTopicOperations
from .upkeep.upkeep import Upkeep

_log = logging.getLogger(__name__)
_DRAIN_SECONDS_MAX = 5.0
"""Longest wait of unloading for messages on their way to the log; clients send later ones again."""


class PersistentTopic:
    """A `broker.topic.contract.Topic` on a managed ledger."""

    kind = STORED
    stats_parts = StatsParts

    def __init__(
        self,
        name: str,
        ledger: ManagedLedger,
        partition_index: int,
        around: TopicSurroundings,
        snapshots: SnapshotStore | None = None,
    ) -> None:
        settings, clock, logs = around.settings, around.clock, around.logs
        self.name = name
        self.ledger = ledger
        self.partition_index = partition_index
        self.created_ms = clock.now_ms()
        self.takes_transactions = around.takes_transactions
        self.ledger_store = None if logs is None else logs.ledger_store
        self.logs_of_its_own = None if logs is None else LogsOfItsOwn(logs, ledger.name)
        self.transactions = TopicTransactions(weakly(self), snapshots, settings, clock)
        self.scanned = ScannedRuns(ask(self.transactions.decided))
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._last_active_ms = self._now_ms()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closing: asyncio.Task[None] | None = None
        self._policies = self.kind.policies(settings, around.dispatching, around.limits.policies)
        self.publishers = self.kind.publishers(weakly(self), self._policies, around.limits, settings, clock)
        self._subscribe_limiter = SubscribeLimiter()
        self.subscriptions = Subscriptions(weakly(self), self._policies, self.publishers.rates, around, self.kind.subscription)
        self.compaction = TopicCompaction(weakly(self), self.ledger_store, settings, clock)
        self.upkeep = Upkeep(weakly(self), self._policies, settings, clock)
        self.operations = StoredTopicOperations(weakly(self), settings, clock)
        if self.subscriptions.get(COMPACTION_CURSOR) is not None:
            self.run_task(self.compaction.tidy())
        self._stop_listening = self._listen()
        self._stop_hearing_of_others = ledger.on_fenced(self._fenced)
        ledger.on_refused(self.publishers.appends_refused)
        self._sampled_at = self._loop.time()
        self._sampling = self._loop.call_later(settings.stats_update_frequency_in_secs, self._sample)

    def _listen(self) -> Callable[[], None]:
        """Asks for new entries until the call that it returns is made."""
        return self.ledger.on_confirmed(self.subscriptions.entries_available, self.subscriptions.take_newest)

    @property
    def header_bytes(self) -> int:
        return self.ledger.header_bytes

    @property
    def compacted(self) -> CompactedTopic:
        return self.compaction.topic

    @property
    def consumers(self) -> ConsumerTotals:
        return self.subscriptions.consumers

    @property
    def is_closed(self) -> bool:
        return self._closing is not None

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> TopicProducer:
        self._check_open()
        if self._policies.current.encryption_required and not request.is_encrypted:
            raise BrokerError(ServerError.METADATA, f"Encryption is required in {self.name}")
        if self.ledger.is_terminated:
            raise BrokerError(ServerError.TOPIC_TERMINATED, "Topic was already terminated")
        refusal = await self.upkeep.producer_refusal()
        if refusal is not None:
            raise refusal
        self._check_open()
        if request.initial_subscription_name:
            await self._create_initial_subscription(request.initial_subscription_name)
            self._check_open()
        return await self.publishers.add(request, sink)

    async def _create_initial_subscription(self, name: str) -> None:
        if self.subscriptions.get(name) is not None:
            return
        if not self._policies.current.auto_subscription_creation:
            message = "Could not create the initial subscription due to the auto subscription creation is not allowed."
            raise BrokerError(ServerError.NOT_ALLOWED, message)
        await self.subscriptions.create(name, from_earliest=True)

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> TopicConsumer:
        self._check_open()
        if SUBSCRIPTION_TYPE_NAMES[request.type] not in self._policies.current.subscription_types:
            message = f"Topic[{self.name}] doesn't support {SUBSCRIPTION_TYPE_NAMES[request.type]} sub type!"
            raise BrokerError(ServerError.NOT_ALLOWED, message)
        if request.read_compacted and request.type not in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER):
            raise BrokerError(ServerError.NOT_ALLOWED, "readCompacted only allowed on failover or exclusive subscriptions")
        self._check_subscribe_rate(request)
        subscription = await self.subscriptions.open_for(request)
        await subscription.transactions.recover()
        if request.start_rollback_seconds > 0:
            await subscription.reset_to_time(self._clock.now_ms() - request.start_rollback_seconds * 1000)
        try:
            self._check_open()
            self.subscriptions.check_consumer_limits(request)
            return subscription.add_consumer(request, sink)
        except BrokerError:
            self.subscriptions.abandon_if_useless(subscription)
            raise

    def _check_subscribe_rate(self, request: SubscribeRequest) -> None:
        host = request.address.rpartition(":")[0]
        rate, now = self._policies.current.subscribe_rate, self._loop.time()
        if not self._subscribe_limiter.takes(rate, host, request.consumer_name, request.consumer_id, now):
            raise BrokerError(ServerError.NOT_ALLOWED, "Subscribe limited by subscribe rate limit per consumer.")

    def _check_open(self) -> None:
        if self._closing is not None:
            raise topic_unavailable()

    def activity(self) -> TopicActivity:
        return TopicActivity(
            producers=self.publishers.count,
            consumers=self.consumers.count,
            durable_subscriptions=self.subscriptions.durable.count,
            backlog_entries=self.subscriptions.durable.backlog_entries(),
            last_active_ms=self._last_active_ms,
            entries=self.ledger.entry_count,
            is_schema_open=self.is_schema_open,
        )

    @property
    def is_schema_open(self) -> bool:
        """Apache: PersistentTopic.addSchemaIfIdleOrCheckCompatible."""
        return not (self.publishers.count or self.ledger.size_bytes or self.consumers.has_schema)

    def traffic(self) -> TopicTraffic:
        return topic_traffic(self.publishers, self.consumers)

    def stats(self) -> TopicStats:
        parts = self.stats_parts(self.ledger.ledgers())
        for work in parts.works(self.subscriptions.all, self.publishers.all):
            work()
        return self._stats(parts)

    async def stats_in_slices(self) -> TopicStats:
        parts = self.stats_parts(self.ledger.ledgers())
        async for work in in_slices(parts.works(self.subscriptions.all, self.publishers.all)):
            work()
        await self.subscriptions.durable.settle()
        return self._stats(parts)

    def _stats(self, parts: StatsParts) -> TopicStats:
        found, buffer, compaction = self.subscriptions, self.transactions.buffer, self.compaction.stats
        return topic_stats(self.ledger, self.publishers, parts, found.gone, buffer, compaction, self.created_ms, self.upkeep)

    def _samples(self, seconds: float) -> Iterator[Callable[[], None]]:
        return samples(self.publishers, self.subscriptions.all, self.consumers, seconds)

    def _sample(self) -> None:
        now = self._loop.time()
        do_in_slices(self._samples(now - self._sampled_at), lambda: None)
        self.subscriptions.publish_rates_sampled()
        self.compaction.sample(now - self._sampled_at)
        self._sampled_at = now
        self._sampling = self._loop.call_later(self._settings.stats_update_frequency_in_secs, self._sample)

    async def create_subscription(self, name: str, *, from_earliest: bool, properties: Mapping[str, str]) -> None:
        self._check_open()
        await self.subscriptions.create(name, from_earliest=from_earliest, properties=properties)

    async def delete_subscription(self, name: str, *, force: bool) -> None:
        self._check_open()
        subscription = self.subscriptions.get(name)
        if subscription is None:
            raise BrokerError(ServerError.SUBSCRIPTION_NOT_FOUND, "Subscription not found")
        if name == COMPACTION_CURSOR:
            await self.compaction.stop()
            await self.compaction.delete()
        await subscription.delete(force=force)

    async def trim(self) -> None:
        try:
            await self.ledger.trim()
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def terminate(self) -> None:
        """Ends the topic for ever. Producers are closed, as by Apache: some clients (Go's) give up only when refused at their
        return. Consumers that have read all are notified. BrokerError(TRANSACTION_CONFLICT) while transactions are open."""
        self.transactions.require_none_open()
        try:
            await self.ledger.terminate()
        except ManagedLedgerError as error:
            self.storage_failed(error)  # the log takes nothing more, and may not have ended
            raise broker_error(error) from error
        await self.publishers.send_away("the topic is terminated")
        await self.subscriptions.tell_end_of_topic()

    # transactions

    async def end_transaction(self, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        self._check_open()
        await self.transactions.end(txn_id, action, low_water_mark)

    async def end_acknowledgements(self, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        self._check_open()
        found = self.subscriptions.get(subscription)
        if found is not None:
            found.check_not_fenced()
            await found.transactions.end(txn_id, action, low_water_mark)

    def transaction_buffer(self) -> BufferFacts:
        return self.transactions.facts()

    def transaction_in_buffer(self, txn_id: TxnId) -> InBufferFacts:
        return self.transactions.facts_of(txn_id)

    async def pending_acks(self, subscription: str) -> PendingAckFacts | None:
        found = self.subscriptions.get(subscription)
        return None if found is None else await found.transactions.facts()

    async def in_pending_acks(self, subscription: str, txn_id: TxnId) -> InPendingAckFacts | None:
        found = self.subscriptions.get(subscription)
        return None if found is None else await found.transactions.facts_of(txn_id)

    async def place_in_pending_acks(self, subscription: str, position: Position, batch_index: int | None) -> AckPlace | None:
        found = self.subscriptions.get(subscription)
        return None if found is None else await found.transactions.place_of(position, batch_index)

    def more_is_readable(self) -> None:
        self.subscriptions.entries_available()

    # the end

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._unload())
        await asyncio.wait([self._closing])

    async def delete(self, *, force: bool) -> None:
        self._check_open()
        if not force:
            self._check_unused()
        self._closing = self._loop.create_task(self._delete())
        await asyncio.shield(self._closing)

    def _check_unused(self) -> None:
        producers = self.publishers.count
        count = producers + self.consumers.count
        if count:
            code = ServerError.PRODUCER_BUSY if producers else ServerError.CONSUMER_BUSY
            raise BrokerError(code, f"Topic has {count} connected producers/consumers")

    async def _unload(self) -> None:
        await self.publishers.drain(_DRAIN_SECONDS_MAX)
        await self.subscriptions.store_delays()
        await self._end("the topic is being unloaded")

    async def _end(self, reason: str) -> None:
        await self._end_all(reason)
        await self._close_ledger()
        await self.subscriptions.let_go()

    async def _delete(self) -> None:
        await self._end_all("the topic is being deleted")
        try:
            await self.ledger.delete(self._delete_beside)
            await self.transactions.delete()
            await self.subscriptions.let_go()
        except BrokerError:
            await self._close_ledger()
            raise
        except ManagedLedgerError as error:
            await self._close_ledger()
            raise broker_error(error) from error

    async def _delete_beside(self) -> None:
        """Deletes the ledgers that cursors name. No other broker can have the log any more: no ledger is needed or lost."""
        await self.compaction.delete()
        async for subscription in in_slices(self.subscriptions.all):
            await subscription.transactions.delete()

    async def _end_all(self, reason: str) -> None:
        self._stop_listening()
        self._stop_hearing_of_others()
        self._sampling.cancel()
        self.upkeep.close()
        self.transactions.stop()
        await self.publishers.end_all(reason)
        await self.compaction.stop()
        for task in list(self._tasks):
            task.cancel()
        await self.subscriptions.end_all(reason)

    async def _close_ledger(self) -> None:
        """Flushes the cursors. A failure leaves nothing to do here: the next to open it recovers it."""
        async for subscription in in_slices(self.subscriptions.all):
            await subscription.transactions.close()
        try:
            await self.ledger.close()
        except ManagedLedgerError as error:
            _log.warning("%s: closing its managed ledger failed: %s: %s", self.name, type(error).__name__, error)

    # calls of producers and subscriptions

    def storage_failed(self, error: BaseException) -> None:
        """Releases everything; returning clients find the topic loaded anew (the service does that)."""
        if self._closing is None:
            _log.warning("%s: closed after a failure of its log: %s: %s", self.name, type(error).__name__, error)
            self._closing = self._loop.create_task(self._end("the topic is not available"))

    def _fenced(self) -> None:
        """Needed also without producers: consumers would wait here for messages that another broker gets."""
        self.storage_failed(ManagedLedgerFenced(f"{self.name}: another broker has its log"))

    def somebody_left(self) -> None:
        self._last_active_ms = self._now_ms()

    def _now_ms(self) -> int:
        """Loop time: no step of the wall clock makes a topic look unused for longer than it was (Apache: System.nanoTime)."""
        return int(self._loop.time() * 1000)

    async def drop_subscription(self, subscription: Subscription) -> None:
        await self.subscriptions.drop(subscription)

    def abandoned(self, subscription: Subscription) -> None:
        self.subscriptions.abandon_if_useless(subscription)

    def run_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work while the topic lives. A failure in it is a bug of ours: the topic closes."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("%s: a task failed", self.name, exc_info=error)
            self.storage_failed(RuntimeError(repr(error)))
