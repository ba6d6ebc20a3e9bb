"""ProducerHandle: one producer as its connection knows it, and the sink that its topic answers to.

Keeps the answers of a producer in the order of its SENDs, also where one is refused before the topic sees it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from ports.loop.queue_on_demand import queued
from wire.kernels.rows import HandleRow
from wire.kernels.sends import send_receipts
from wire.run import EntryRun, SendMix, SendRun

from ...errors import ServerError
from ...service.topic_name import TopicName
from ...topic.contract import Producer
from ...topic.sent_part import SentPart
from .. import replies
from ..link import Link
from .publish_gate import PublishGate
from .receipts import Receipts


class ProducerHandle(HandleRow):
    """`producer` is None until the topic has taken it on."""

    __slots__ = (
        "_gate",
        "_link",
        "_on_closed",
        "is_closed",
        "producer_id",
        "request_id",
        "schema_version",
        "topic",
    )

    producer: Producer | None
    _receipts: Receipts
    _refused: "deque[tuple[int, bytes]] | None"
    _on_drained: Callable[[], None] | None

    def __init__(
        self,
        link: Link,
        gate: PublishGate,
        receipts: Receipts,
        producer_id: int,
        request_id: int,
        on_closed: Callable[["ProducerHandle", ServerError, str], None],
    ) -> None:
        self._link = link
        self._gate = gate
        self._receipts = receipts
        self._on_closed = on_closed
        self.producer_id = producer_id
        self.request_id = request_id
        self.topic: TopicName | None = None
        """Once it is known."""
        self.producer = None
        self.header_bytes = 0
        self.schema_version = b""
        """Schema version that its messages carry; empty without a schema."""
        self.is_closed = False
        """Closed by the broker. The client sends unanswered messages again, and therefore gets no more failures."""
        self._published = 0
        """Messages handed to the topic; `_done` of them are answered, not always in the runs in which they came."""
        self._done = 0
        self._refused = None
        """Errors that wait until that many messages are answered."""
        self._on_drained = None

    def attach(self, producer: Producer, header_bytes: int) -> None:
        self.producer, self.header_bytes = producer, header_bytes

    def close(self) -> None:
        """Closes the producer whose connection is gone."""
        if self.producer is not None:
            self.producer.close()
            self.detach()

    def detach(self) -> None:
        """Releases the closed producer. The producer keeps its sink for outstanding answers, and the sink must not keep the
        producer.
        """
        self.producer = None

    def succeed(self, request_id: int) -> None:
        """PRODUCER_SUCCESS; the first of two for a producer that has to wait (WaitForExclusive)."""
        producer = self.producer
        assert producer is not None
        self._link.answer(
            replies.producer_success(
                request_id,
                producer.name,
                producer.last_sequence_id,
                producer.topic_epoch,
                ready=producer.is_ready,
                schema_version=self.schema_version,
            )
        )

    def publish(self, producer: Producer, run: SendRun, size: int) -> None:
        self._published += len(run.sequence_ids)
        self._gate.began(len(run.sequence_ids), size)
        producer.publish(run)

    def take_part(self, sends: SendMix, place: int, now: float) -> SentPart | None:
        """Publishes a part of one read, to be sent with the others; None: nothing has changed."""
        producer = self.producer
        if producer is None or self.header_bytes != sends.header_bytes or self._refused:
            return None
        part = producer.take_part(sends, place, now)
        if part is not None:
            self._published += part.count
        return part

    def refuse(self, sequence_ids: Iterable[int], code: ServerError, message: str) -> None:
        """Messages that the topic does not see."""
        if self.is_closed:
            return
        frames = self._errors(sequence_ids, code, message)
        if self._done == self._published:
            self._link.answer(frames)
        else:
            self._refused = queued(self._refused, (self._published, frames))

    def drain(self, on_drained: Callable[[], None]) -> None:
        """Call it when everything published is answered."""
        self._receipts.flush()
        self._on_drained = on_drained
        self._answered()

    # ---- ProducerSink

    async def is_alive(self) -> bool:
        return await self._link.is_alive()

    def receipts(self, run: SendRun, stored: EntryRun) -> None:
        self._link.answer(
            _passed(run, stored) if stored.is_passing else send_receipts(run, stored.ledger_id, stored.first_entry_id)
        )
        self._finish(run)

    def part_stored(self, part: SentPart) -> None:
        self._receipts.add(part, self)

    def receipt_written(self, count: int) -> None:
        self._done += count
        if self._refused or self._on_drained is not None:
            self._answered()

    def send_failed(self, run: SendRun, code: ServerError, message: str) -> None:
        if not self.is_closed:
            self._link.answer(self._errors(run.sequence_ids, code, message))
        self._finish(run)

    def hold_reading(self) -> None:
        self._gate.hold()

    def resume_reading(self) -> None:
        self._gate.resume()

    def ready(self, topic_epoch: int) -> None:
        if self.producer is not None:
            name, last = self.producer.name, self.producer.last_sequence_id
            self._link.answer(replies.producer_success(self.request_id, name, last, topic_epoch, ready=True))

    def refused(self, code: ServerError, message: str) -> None:
        self._on_closed(self, code, message)

    def closed(self, reason: str) -> None:
        self.is_closed = True
        self._on_closed(self, ServerError.SERVICE_NOT_READY, reason)

    # ---- Within

    def _errors(self, sequence_ids: Iterable[int], code: ServerError, message: str) -> bytes:
        return b"".join(replies.send_error(self.producer_id, each, code, message) for each in sequence_ids)

    def _finish(self, run: SendRun) -> None:
        self._done += len(run.sequence_ids)
        self._gate.ended(len(run.sequence_ids), run.entries.payload_bytes)
        if self._refused or self._on_drained is not None:
            self._answered()

    def _answered(self) -> None:
        while self._refused and self._refused[0][0] <= self._done:
            frames = self._refused.popleft()[1]
            if not self.is_closed:
                self._link.answer(frames)
        if self._done == self._published and self._on_drained is not None:
            on_drained, self._on_drained = self._on_drained, None
            on_drained()


def _passed(run: SendRun, stored: EntryRun) -> bytes:
    """On a non-persistent topic: 0:0 for delivered messages, -1:-1 for dropped ones (ServerCnx.handleSend)."""
    if stored.count == len(run.sequence_ids):
        return send_receipts(run, 0, 0, True)
    kept = _part(run, slice(None, stored.count))
    return send_receipts(kept, 0, 0, True) + send_receipts(_part(run, slice(stored.count, None)), -1, -1, True)


def _part(run: SendRun, part: slice) -> SendRun:
    """Returns a part of a run for its receipts."""
    return replace(run, sequence_ids=run.sequence_ids[part], highest_sequence_ids=run.highest_sequence_ids[part])
