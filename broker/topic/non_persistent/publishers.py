"""The producers of a non-persistent topic: a limited number of messages under way on a connection is taken."""

from ports.clock import Clock
from wire.kernels.metadata import scan
from wire.run import EntryRun, SendRun

from ...policies.in_force import PoliciesInForce
from ...policies.topic_settings import TopicSettings
from ..limits.broker_limits import BrokerLimits
from ..publish.producer import TopicProducer
from ..publish.publishers import Publishers, PublishersHost


class PassingPublishers(Publishers):
    """Counts messages that maxConcurrentNonPersistentMessagePerConnection costs each producer."""

    __slots__ = ("_settings",)

    def __init__(
        self, host: PublishersHost, policies: PoliciesInForce, limits: BrokerLimits, settings: TopicSettings, clock: Clock
    ) -> None:
        super().__init__(host, policies, limits, settings, clock)
        self._settings = settings

    def count_published(self, producer: TopicProducer, run: SendRun, chunks: int) -> None:
        super().count_published(producer, run, chunks)
        entries, kept = run.entries, self._settings.non_persistent_entries_at_once_max
        if entries.count > kept:
            rest = EntryRun(0, 0, entries.buffer, entries.offsets[kept:], entries.header_bytes)
            producer.counters.dropped += scan(rest).message_count
