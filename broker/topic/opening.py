"""Loads topics of both kinds. Owns no topic: the broker service does, which calls this once per topic."""

from collections.abc import Callable

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError
from managed_ledger.contract import ManagedLedgerError, ManagedLedgers
from ports.clock import Clock

from ..policies.topic_settings import TopicSettings
from .contract import OpenTopic, Topic
from .errors import broker_error
from .limits.broker_limits import BrokerLimits, nothing_refused
from .non_persistent.opening import NonPersistentTopics
from .surroundings import TopicSurroundings
from .topic import PersistentTopic
from .transactions.snapshot_store import SnapshotStore

SnapshotsOf = Callable[[str], SnapshotStore | None]
"""Store of the snapshots of a topic's aborted transactions; None: the topic takes no transactions."""


def no_snapshots(topic: str) -> SnapshotStore | None:
    """No store of snapshots: the broker takes no transactions."""
    return None


class PersistentTopics:
    """A `broker.topic.contract.OpenTopic` over managed ledgers."""

    def __init__(
        self,
        ledgers: ManagedLedgers,
        settings: TopicSettings,
        dispatcher_settings: DispatcherSettings,
        clock: Clock,
        *,
        takes_transactions: bool = True,
        storage_refusal: Callable[[], str] = nothing_refused,
    ) -> None:
        """`storage_refusal`: see `BrokerLimits`."""
        self._snapshots_of: SnapshotsOf = no_snapshots
        self._ledgers = ledgers
        self.limits = limits = BrokerLimits(settings, storage_refusal)
        self._around = TopicSurroundings(settings, dispatcher_settings, clock, limits, ledgers, takes_transactions)

    def store_snapshots_in(self, snapshots_of: SnapshotsOf) -> None:
        """Store the snapshots of topics there; call it before the first topic is opened. No argument of the constructor, since
        snapshots are stored in system topics, which the service opens by means of this object."""
        self._snapshots_of = snapshots_of

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> PersistentTopic:
        try:
            ledger = await self._ledgers.open(managed_ledger_name, create=create)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        topic = PersistentTopic(name, ledger, partition_index, self._around, self._snapshots_of(name))
        try:
            await topic.subscriptions.load()
            await topic.transactions.recover()
        except ManagedLedgerError as error:
            await topic.close()
            raise broker_error(error) from error
        except BrokerError:
            await topic.close()
            raise
        return topic


class Topics:
    """A `broker.topic.contract.OpenTopic` of both kinds; a topic's name says which."""

    def __init__(
        self,
        ledgers: ManagedLedgers,
        settings: TopicSettings,
        dispatcher_settings: DispatcherSettings,
        clock: Clock,
        *,
        takes_transactions: bool = True,
        storage_refusal: Callable[[], str] = nothing_refused,
    ) -> None:
        """`storage_refusal`: see `BrokerLimits`."""
        self.persistent = persistent = PersistentTopics(
            ledgers,
            settings,
            dispatcher_settings,
            clock,
            takes_transactions=takes_transactions,
            storage_refusal=storage_refusal,
        )
        non_persistent = NonPersistentTopics(settings, dispatcher_settings, clock, persistent.limits)
        self._kinds: dict[str, OpenTopic] = {"persistent": persistent, "non-persistent": non_persistent}

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> Topic:
        open_topic = self._kinds[name.partition("://")[0]]
        return await open_topic(name, managed_ledger_name, partition_index, create=create)
