"""Surroundings: parts that all topics of one kind in a broker share. Owns nothing itself."""

from dataclasses import dataclass

from broker.dispatchers.settings import DispatcherSettings
from managed_ledger.contract import ManagedLedgers
from ports.clock import Clock

from ..policies.topic_settings import TopicSettings
from .limits.broker_limits import BrokerLimits


@dataclass(frozen=True, slots=True)
class TopicSurroundings:
    """Handed to each topic. `logs` None: the topic's log is the only one that it has."""

    settings: TopicSettings
    dispatching: DispatcherSettings
    clock: Clock
    limits: BrokerLimits
    logs: ManagedLedgers | None = None
    takes_transactions: bool = True
