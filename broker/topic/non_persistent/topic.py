"""NonPersistentTopic: a topic on a log that keeps nothing. Connected consumers with permits get the messages. All else is as
with stored topics, by the same machines: producers' access modes, the four types of subscription, active consumers and owners
of keys, policies that do not concern storage. Follows Apache's NonPersistentTopic.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from broker.errors import BrokerError, ServerError
from ports.loop.owner import tell
from wire.position import Position
from wire.run import EntryRun

from ..contract import ConsumerSink, ProducerRequest, ProducerSink, SubscribeRequest
from ..kinds import TopicKind
from ..publish.producer import TopicProducer
from ..reporting import StatsParts
from ..statistics.topic_stats import PublisherStats, SubscriptionStats, TopicStats
from ..subscription.consumer import TopicConsumer
from ..subscription.subscription import Subscription
from ..surroundings import TopicSurroundings
from ..topic import PersistentTopic
from .passing_log import PassingLog
from .policies import PassingPolicies
from .publishers import PassingPublishers
from .subscription import PassingSubscription

PASSING = TopicKind(PassingPolicies, PassingPublishers, PassingSubscription)


class PassingStatsParts(StatsParts):
    """Stats with dropped messages (NonPersistentTopicStats)."""

    def subscription_stats(self, subscription: Subscription) -> SubscriptionStats:
        rate = subscription.drop_rate.per_second if isinstance(subscription, PassingSubscription) else 0.0
        return replace(super().subscription_stats(subscription), msg_drop_rate=rate)

    def publisher_stats(self, producer: TopicProducer) -> PublisherStats:
        return replace(super().publisher_stats(producer), msg_drop_rate=producer.rates.dropped.per_second)


class NonPersistentTopic(PersistentTopic):
    """A `broker.topic.contract.Topic`. Its subscriptions are there while consumers are."""

    kind = PASSING
    stats_parts = PassingStatsParts

    def __init__(self, name: str, log_name: str, partition_index: int, around: TopicSurroundings) -> None:
        log = PassingLog(log_name, lambda: around.settings.non_persistent_entries_at_once_max, tell(self._passed))
        super().__init__(name, log, partition_index, around)

    def _listen(self) -> Callable[[], None]:
        return self.ledger.on_confirmed(self.subscriptions.entries_pass)

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> TopicProducer:
        """An initial subscription would keep nothing for anybody (ServerCnx.buildProducerAndAddTopic makes none)."""
        return await super().add_producer(replace(request, initial_subscription_name=""), sink)

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> TopicConsumer:
        if request.read_compacted:
            raise BrokerError(ServerError.NOT_ALLOWED, "readCompacted only valid on persistent topics")
        passing = replace(request, durable=False, start=None, from_earliest=False, start_rollback_seconds=0)
        return await super().subscribe(passing, sink)

    def _passed(self, run: EntryRun) -> None:
        """A run was offered to all subscriptions."""
        subscriptions = self._passing()
        if subscriptions:
            through, count = Position(run.ledger_id, run.last_entry_id), self.scanned.metadata(run).message_count
            for subscription in subscriptions:
                subscription.passed(through, count)

    def _passing(self) -> list[PassingSubscription]:
        return [each for each in self.subscriptions.all if isinstance(each, PassingSubscription)]

    async def create_subscription(self, name: str, *, from_earliest: bool, properties: Mapping[str, str]) -> None:
        raise BrokerError(
            ServerError.NOT_ALLOWED, "Create subscription on non-persistent topic can only be done through client"
        )

    async def terminate(self) -> None:
        raise BrokerError(ServerError.NOT_ALLOWED, "Need to provide a persistent topic name")

    def _stats(self, parts: StatsParts) -> TopicStats:
        stats = super()._stats(parts)
        return replace(stats, backlog_quota_limit_size=0, backlog_quota_limit_time=0, msg_drop_rate=parts.drop_rate)

    def _samples(self, seconds: float) -> Iterator[Callable[[], None]]:
        yield from super()._samples(seconds)
        for each in self._passing():
            yield partial(each.drop_rate.sample, each.dropped_messages, seconds)
