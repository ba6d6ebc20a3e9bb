"""Dispatcher factories for drivers: one function for each subscription type. Holds nothing."""

from .contract import Dispatcher
from .key_shared import KeySharedDispatcher
from .settings import DispatcherSettings
from .shared import SharedDispatcher
from .single_active import SingleActiveDispatcher


def exclusive_dispatcher(settings: DispatcherSettings) -> Dispatcher:
    """One consumer; the second is refused with CONSUMER_BUSY."""
    return SingleActiveDispatcher(settings, is_failover=False)


def failover_dispatcher(settings: DispatcherSettings, partition_index: int) -> Dispatcher:
    """One active consumer, the others stand by. `partition_index` is -1 for a topic that is no partition."""
    return SingleActiveDispatcher(settings, is_failover=True, partition_index=partition_index)


def shared_dispatcher(settings: DispatcherSettings) -> Dispatcher:
    """All consumers take turns, in order of priority."""
    return SharedDispatcher(settings)


def key_shared_dispatcher(settings: DispatcherSettings) -> Dispatcher:
    """Each key has one consumer at a time. The first consumer's KeySharedPolicy is the subscription's while any is there."""
    return KeySharedDispatcher(settings)
