"""Makes non-persistent topics. There is nothing to load: one that is not loaded is not there."""

from dataclasses import replace

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from ports.clock import Clock

from ...policies.topic_settings import TopicSettings
from ..limits.broker_limits import BrokerLimits
from ..surroundings import TopicSurroundings
from .topic import NonPersistentTopic


class NonPersistentTopics:
    """A `broker.topic.contract.OpenTopic`. `limits` are those that all topics of the broker share."""

    def __init__(
        self, settings: TopicSettings, dispatcher_settings: DispatcherSettings, clock: Clock, limits: BrokerLimits
    ) -> None:
        dispatching = replace(dispatcher_settings, active_consumer_failover_delay_time_millis=0)
        self._around = TopicSurroundings(settings, dispatching, clock, _PublishLimits(settings, limits))

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> NonPersistentTopic:
        if not create:
            raise BrokerError(ServerError.TOPIC_NOT_FOUND, f"Topic {name} not found")
        return NonPersistentTopic(name, managed_ledger_name, partition_index, self._around)


class _PublishLimits(BrokerLimits):
    """Limits of the broker without the rate of deliveries: a message that waits for the rate is lost."""

    def __init__(self, settings: TopicSettings, shared: BrokerLimits) -> None:
        super().__init__(settings)
        self._shared = shared

    def refresh(self) -> None:
        self._shared.refresh()
        self.publish = self._shared.publish
