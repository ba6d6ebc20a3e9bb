"""A subscription of a non-persistent topic: it counts dropped messages, and has no cursor that could be moved."""

from collections.abc import Sequence
from typing import Any

from broker.dispatchers.contract import MarkDeleteMoved
from broker.errors import BrokerError, ServerError
from wire.position import Position

from ..contract import LastMessage
from ..statistics.rates import Rate
from ..subscription.subscription import Subscription

NO_LAST_MESSAGE = "getLastMessageId is not supported on non-persistent topic"


class PassingSubscription(Subscription):
    """Gone with its last consumer (NonPersistentSubscription.removeConsumer)."""

    counts_unacked = False

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.dropped_messages = 0
        """Messages that no consumer had permits for, or could be written to."""
        self.drop_rate = Rate()
        self._given_messages = 0

    def passed(self, through: Position, message_count: int) -> None:
        """Notes that many messages as offered to the consumers; messages that they did not take are lost."""
        given = self.gone.messages + sum([consumer.counters.messages for consumer in self.consumers])
        self.dropped_messages += max(0, message_count - (given - self._given_messages))
        self._given_messages = given
        self.handle(MarkDeleteMoved(through))

    async def reset(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        """Does nothing, and disconnects no consumer (NonPersistentSubscription.resetCursor)."""

    async def reset_to_time(self, publish_time_ms: int) -> None:
        """The same."""

    async def last_message(self) -> LastMessage:
        """A code that clients know, where Apache's broker says UnknownError."""
        raise BrokerError(ServerError.NOT_ALLOWED, NO_LAST_MESSAGE)
