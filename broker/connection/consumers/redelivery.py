"""Ids of a REDELIVER_UNACKNOWLEDGED_MESSAGES, handed to the consumer in slices and in their order in the log.

Clients send them in any order (Java: that of a HashSet). Entries of a slice are delivered before the next slice is handed on.
Unsorted, later entries would overtake earlier ones, and a client cannot put together chunks that come in another order.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import islice

from wire.generated import pulsar_api_pb2 as api

from ...topic.contract import Consumer, SubscriptionType
from .. import replies


def redelivered(consumer: Consumer, asked: api.CommandRedeliverUnacknowledgedMessages, at_once: int) -> Iterator[None]:
    """Yields where others get their turn. A consumer that receives alone goes back to all unacknowledged entries once."""
    epoch = asked.consumer_epoch if asked.HasField("consumer_epoch") else None
    if consumer.type not in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED):
        consumer.redeliver([replies.position_of(each) for each in asked.message_ids[:at_once]], epoch)
        return
    count, slices = len(asked.message_ids), []
    for at in range(0, count, at_once):
        slices.append(sorted(replies.position_of(each) for each in asked.message_ids[at : at + at_once]))
        if count > at_once:
            yield
    in_order = merge(*slices)
    for at in range(0, max(1, count), at_once):
        if at:
            yield
        consumer.redeliver(list(islice(in_order, at_once)), epoch)
