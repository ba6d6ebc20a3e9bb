"""Loads topics. Owns no topic: the broker service does, which calls this once per topic."""

from broker.subscription.settings import DispatcherSettings
from managed_ledger.contract import ManagedLedgerError, ManagedLedgers
from ports.clock import Clock

from .broker_limits import BrokerLimits
from .errors import broker_error
from .settings import TopicSettings
from .topic import PersistentTopic


class PersistentTopics:
    """A `broker.topic.contract.OpenTopic` over managed ledgers."""

    def __init__(
        self, ledgers: ManagedLedgers, settings: TopicSettings, dispatcher_settings: DispatcherSettings, clock: Clock
    ) -> None:
        self._ledgers = ledgers
        self._settings = settings
        self._dispatcher_settings = dispatcher_settings
        self._clock = clock
        self._limits = BrokerLimits(settings)

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> PersistentTopic:
        try:
            ledger = await self._ledgers.open(managed_ledger_name, create=create)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        topic = PersistentTopic(
            name, ledger, partition_index, self._settings, self._dispatcher_settings, self._clock, self._limits, self._ledgers
        )
        try:
            await topic.transactions.recover()
        except ManagedLedgerError as error:
            await topic.close()
            raise broker_error(error) from error
        return topic
