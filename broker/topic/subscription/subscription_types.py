"""Differences between subscription types outside their dispatchers: the dispatcher itself, and its ConsumerAdded event."""

from typing import assert_never

from broker.dispatchers.contract import ConsumerAdded, ConsumerId, Dispatcher, KeySharedPolicy
from broker.dispatchers.contract import KeySharedMode as DispatcherKeySharedMode
from broker.dispatchers.dispatchers import (
    exclusive_dispatcher,
    failover_dispatcher,
    key_shared_dispatcher,
    shared_dispatcher,
)
from broker.dispatchers.settings import DispatcherSettings

from ...policies.policies import SUBSCRIPTION_TYPES
from ..contract import SubscribeRequest, SubscriptionType

SUBSCRIPTION_TYPE_NAMES = dict(zip(SubscriptionType, SUBSCRIPTION_TYPES, strict=True))


def make_dispatcher(subscription_type: SubscriptionType, settings: DispatcherSettings, partition_index: int) -> Dispatcher:
    match subscription_type:
        case SubscriptionType.EXCLUSIVE:
            return exclusive_dispatcher(settings)
        case SubscriptionType.FAILOVER:
            return failover_dispatcher(settings, partition_index)
        case SubscriptionType.SHARED:
            return shared_dispatcher(settings)
        case SubscriptionType.KEY_SHARED:
            return key_shared_dispatcher(settings)
        case _:
            assert_never(subscription_type)


def consumer_added(key: ConsumerId, request: SubscribeRequest, is_writable: bool) -> ConsumerAdded:
    policy: KeySharedPolicy | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    meta = request.key_shared
    if request.type is SubscriptionType.KEY_SHARED:
        policy = KeySharedPolicy(DispatcherKeySharedMode(meta.mode), meta.allow_out_of_order)
        ranges = meta.hash_ranges
    elif request.type is SubscriptionType.EXCLUSIVE:  # a reader that names ranges (AbstractDispatcherSingleActiveConsumer)
        ranges = meta.hash_ranges
    return ConsumerAdded(
        key, request.consumer_name, request.priority_level, request.consumer_epoch, is_writable, policy, ranges
    )
