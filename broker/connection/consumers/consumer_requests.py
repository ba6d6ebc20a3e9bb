"""UNSUBSCRIBE, SEEK, GET_LAST_MESSAGE_ID, CONSUMER_STATS: requests about a consumer that are answered later."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import signed

from ...errors import BrokerError, ServerError
from ...topic.acknowledging import ACK_SET_WORDS_MAX
from ...topic.contract import Consumer, SubscriptionType
from .. import replies
from ..link import Link, Routes
from .consumer_handle import ConsumerHandle
from .consumers import Consumers

_TYPE_NAMES = {
    SubscriptionType.EXCLUSIVE: "Exclusive",
    SubscriptionType.SHARED: "Shared",
    SubscriptionType.FAILOVER: "Failover",
    SubscriptionType.KEY_SHARED: "Key_Shared",
}


class ConsumerRequests:
    """Requests about the consumers of one connection."""

    def __init__(self, link: Link, consumers: Consumers) -> None:
        self._link = link
        self._consumers = consumers

    def _run(
        self,
        consumer_id: int,
        request_id: int,
        work: Callable[[ConsumerHandle, Consumer], Coroutine[Any, Any, None]],
        *,
        is_making: bool = False,
    ) -> None:
        """METADATA "Consumer not found" for an absent one, as from Apache."""
        handle = self._consumers.attached(consumer_id)
        if handle is None or handle.consumer is None:
            failure = BrokerError(ServerError.METADATA, "Consumer not found")
            self._link.answer(replies.error(request_id, failure))
            return

        def refuse(failure: BrokerError) -> None:
            self._link.answer(replies.error(request_id, failure))

        self._link.run(None, work(handle, handle.consumer), refuse, is_making=is_making)

    def on_unsubscribe(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.unsubscribe

        async def unsubscribe(handle: ConsumerHandle, consumer: Consumer) -> None:
            handle.unsubscribes = True
            try:
                await consumer.unsubscribe(asked.force)
            except BaseException:
                handle.unsubscribes = False
                raise
            self._consumers.forget(handle)
            self._link.answer(replies.success(asked.request_id))

        self._run(asked.consumer_id, asked.request_id, unsubscribe, is_making=True)

    def on_seek(self, command: BaseCommand, _: memoryview) -> None:
        """The subscription closes all its consumers first (CLOSE_CONSUMER), then the answer; without waiting for their
        return.
        """
        asked = command.seek
        if not asked.HasField("message_id") and not asked.HasField("message_publish_time"):
            failure = BrokerError(ServerError.METADATA, "Message id and message publish time were not present")
            self._link.answer(replies.error(asked.request_id, failure))
            return

        async def seek(_: ConsumerHandle, consumer: Consumer) -> None:
            if asked.HasField("message_id"):
                if len(asked.message_id.ack_set) > ACK_SET_WORDS_MAX:
                    raise BrokerError(ServerError.NOT_ALLOWED, f"An ack set has at most {ACK_SET_WORDS_MAX} words")
                await consumer.seek(replies.position_of(asked.message_id), tuple(asked.message_id.ack_set))
            else:
                await consumer.seek_by_time(signed(asked.message_publish_time))
            self._link.answer(replies.success(asked.request_id))

        self._run(asked.consumer_id, asked.request_id, seek)

    def on_get_last_message_id(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.get_last_message_id

        async def answer(handle: ConsumerHandle, consumer: Consumer) -> None:
            last = await consumer.last_message()
            self._link.answer(replies.last_message_id(asked.request_id, last, handle.partition))

        self._run(asked.consumer_id, asked.request_id, answer)

    def on_consumer_stats(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.consumer_stats
        handle = self._consumers.attached(asked.consumer_id)
        told = api.CommandConsumerStatsResponse(request_id=asked.request_id)
        if handle is None or handle.consumer is None:
            told.error_code = replies.wire_error(ServerError.CONSUMER_NOT_FOUND)
            told.error_message = f"Consumer {asked.consumer_id} not found"
        else:
            self._fill(told, handle.consumer)
        self._link.answer(encode(BaseCommand(type=BaseCommand.CONSUMER_STATS_RESPONSE, consumer_stats_response=told)))

    def _fill(self, told: api.CommandConsumerStatsResponse, consumer: Consumer) -> None:
        stats = consumer.stats()
        told.msg_rate_out = stats.message_rate_out
        told.msg_throughput_out = stats.byte_rate_out
        told.msg_rate_redeliver = stats.redelivery_rate
        told.message_ack_rate = stats.ack_rate
        told.msg_rate_expired = stats.expired_rate
        told.consumer_name = consumer.name
        told.available_permits = max(0, stats.available_permits)
        told.unacked_messages = stats.unacked_messages
        told.blocked_consumer_on_unacked_msgs = stats.is_blocked_on_unacked
        told.msg_backlog = stats.backlog_messages
        told.address = self._link.address
        told.connected_since = datetime.fromtimestamp(stats.connected_since_ms / 1000, UTC).isoformat(timespec="milliseconds")
        told.type = _TYPE_NAMES[consumer.type]


ROUTES: Routes[ConsumerRequests] = {
    BaseCommand.UNSUBSCRIBE: ConsumerRequests.on_unsubscribe,
    BaseCommand.SEEK: ConsumerRequests.on_seek,
    BaseCommand.GET_LAST_MESSAGE_ID: ConsumerRequests.on_get_last_message_id,
    BaseCommand.CONSUMER_STATS: ConsumerRequests.on_consumer_stats,
}
