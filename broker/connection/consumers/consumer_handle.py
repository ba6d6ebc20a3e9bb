"""ConsumerHandle: one consumer as its connection knows it, and the sink that its subscription delivers to."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wire.kernels.delivery_rows import ConsumerHandleRow
from wire.kernels.messages import message_frames
from wire.run import EntryRun

from ...service.topic_name import TopicName
from ...topic.contract import Consumer
from .. import replies
from ..link import Link
from .unchecked_frames import unchecked_message_frames

CHECKSUMS_VERSION = 11
"""Peers below get messages without checksums."""


def _frames_for(link: Link) -> Callable[..., bytes]:
    """The way of making MESSAGE frames for that peer."""
    if link.gets_broker_entry_metadata:
        return partial(message_frames, keep_broker_entry_metadata=True)
    return message_frames if link.protocol_version >= CHECKSUMS_VERSION else unchecked_message_frames


class ConsumerHandle(ConsumerHandleRow):
    """`consumer` is None until the subscription has taken it on."""

    __slots__ = (
        "_frames",
        "_on_closed",
        "request_id",
        "subscription",
        "topic",
        "unsubscribes",
    )

    consumer: Consumer | None
    _link: Link

    def __init__(
        self,
        link: Link,
        consumer_id: int,
        request_id: int,
        on_closed: Callable[["ConsumerHandle", str], None],
    ) -> None:
        self._link = link
        self._frames = _frames_for(link)
        self._is_plain = self._frames is message_frames
        self._on_closed = on_closed
        self._partition = -1
        self.consumer_id = consumer_id
        self.request_id = request_id
        self.topic: TopicName | None = None
        """Once it is known, as is `subscription`."""
        self.subscription = ""
        self.consumer = None
        self.unsubscribes = False
        """The client has asked for the end of the subscription: it needs no CLOSE_CONSUMER."""

    @property
    def partition(self) -> int:
        """Index of the partition that it consumes, -1 for a topic that is none."""
        return self._partition

    def attach(self, consumer: Consumer, partition: int) -> None:
        self.consumer, self._partition = consumer, partition

    # ---- ConsumerSink

    @property
    def is_writable(self) -> bool:
        return self._link.is_writable

    async def is_alive(self) -> bool:
        return await self._link.is_alive()

    def deliver(
        self,
        run: EntryRun,
        indexes: range | Sequence[int],
        redelivery_counts: Sequence[int] | None,
        ack_sets: Mapping[int, Sequence[int]] | None,
        consumer_epoch: int | None,
    ) -> None:
        self._link.deliver(
            self._frames(run, indexes, self.consumer_id, self._partition, redelivery_counts, ack_sets, consumer_epoch)
        )

    def active_changed(self, is_active: bool) -> None:
        if self._link.protocol_version >= 12:
            self._link.answer(replies.active_consumer_change(self.consumer_id, is_active))

    def reached_end_of_topic(self) -> None:
        if self._link.protocol_version >= 9:
            self._link.answer(replies.reached_end_of_topic(self.consumer_id))

    def closed(self, reason: str) -> None:
        self._on_closed(self, reason)
