"""PRODUCER, SEND, CLOSE_PRODUCER: the producers of one connection.

A producer id is pending while its topic is loaded, then attached. A SEND for a pending or unknown one ends the connection, as
in Apache's ServerCnx; one that comes late, for a producer that the broker has closed, is ignored.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from bookkeeper.write.together import send
from ports.logs import line
from ports.loop.taking_apart import taken_apart
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import signed
from wire.kernels.delivery_times import longest_delay
from wire.kernels.sends import take_sends
from wire.kernels.turns import size_of_parts, take_parts
from wire.run import FLAG_CHUNK, SendMix, SendRun

from ...errors import BrokerError, ServerError
from ...security.authorization.needs import topic_need
from ...service.broker_service import BrokerService
from ...service.topic_name import TopicName
from ...topic.contract import AccessMode, Producer, ProducerRequest
from ...topic.errors import no_room
from ...topic.sent_part import SentPart, new_part
from .. import replies
from ..access.revocation import Attached
from ..errors import ProtocolViolation
from ..link import Link, Routes
from ..recently_closed import RecentlyClosed
from ..requests.checks import check_name, metadata_of
from ..requests.schemas import SchemasOfTopics, producer_schema
from ..settings import ConnectionSettings
from .producer_handle import ProducerHandle
from .publish_gate import PublishGate
from .receipts import Receipts
from .sends import is_any_larger, is_any_plain, message_bytes, one_by_one, single_send

log = logging.getLogger(__name__)

_TOPIC_EPOCH_MAX = 1 << 62


class Producers:
    """Producers of one connection."""

    def __init__(
        self, link: Link, service: BrokerService, settings: ConnectionSettings, gate: PublishGate, receipts: Receipts
    ) -> None:
        self._link = link
        self._service = service
        self._schemas = SchemasOfTopics(service.schemas, service.deletion)
        self._settings = settings
        self._gate = gate
        self._receipts = receipts
        self._loop = asyncio.get_running_loop()
        self._handles: dict[int, ProducerHandle] = {}
        self._recently_closed = RecentlyClosed(settings.keep_alive_interval_seconds)

    # ---- PRODUCER

    def on_producer(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.producer
        handle = self._handles.get(asked.producer_id)
        if handle is None:
            self._recently_closed.forget(asked.producer_id)
            handle = ProducerHandle(
                self._link, self._gate, self._receipts, asked.producer_id, asked.request_id, self._closed_by_broker
            )
            self._handles[asked.producer_id] = handle
            self._link.run(command, self._attach(handle, asked), lambda failure: self._refuse(handle, failure), is_making=True)
        elif handle.producer is not None:
            handle.succeed(asked.request_id)
        else:
            failure = BrokerError(ServerError.SERVICE_NOT_READY, "Producer is already present on the connection")
            self._link.answer(replies.error(asked.request_id, failure))

    async def _attach(self, handle: ProducerHandle, command: api.CommandProducer) -> None:
        name = handle.topic = TopicName.parse(command.topic)
        request = self._request(command)
        if name.is_written_by_brokers and request.access_mode is not AccessMode.SHARED:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Nobody has {name} alone: brokers write to it")
        refusal = self._service.meters.storage_refusal()
        if refusal and name.domain == "persistent":
            raise no_room(str(name), refusal)
        topic = await self._service.lifecycle.topic(name, may_create=True)
        handle.schema_version = await producer_schema(self._schemas, name, command)
        producer = await topic.add_producer(request, handle)
        if self._handles.get(handle.producer_id) is not handle:
            producer.close()  # closed meanwhile by its client, or the client is gone
            return
        handle.attach(producer, topic.header_bytes)
        log.info(line("producer attached", peer=self._link.address, topic=topic.name, producer=producer.name))
        handle.succeed(handle.request_id)

    def _request(self, command: api.CommandProducer) -> ProducerRequest:
        name = command.producer_name or self._service.producer_names.new()
        check_name("producer name", name)
        return ProducerRequest(
            producer_id=command.producer_id,
            name=name,
            name_is_generated=not command.producer_name or not command.user_provided_producer_name,
            epoch=signed(command.epoch),
            access_mode=AccessMode(command.producer_access_mode),
            topic_epoch=_topic_epoch(command) if command.HasField("topic_epoch") else None,
            is_encrypted=command.encrypted,
            metadata=metadata_of(command.metadata),
            address=self._link.address,
            client_version=self._link.client_version,
            initial_subscription_name=command.initial_subscription_name,
        )

    def _refuse(self, handle: ProducerHandle, failure: BrokerError) -> None:
        if self._handles.get(handle.producer_id) is handle:
            del self._handles[handle.producer_id]
            self._link.answer(replies.error(handle.request_id, failure))

    # ---- SEND

    def publish_mix(self, sends: SendMix, buffer: memoryview) -> None:
        """Publishes the messages of many producers in one read: plain ones are appended to the logs together, the rest as runs.
        `buffer` is where the frames are."""
        place, total, bytes_max = 0, len(sends.producer_ids), self._settings.max_message_size
        now, now_ms = self._loop.time(), self._service.clock.now_ms()
        is_refused = bool(self._service.meters.storage_refusal())
        parts = list[SentPart]()
        while place < total:
            if not is_refused:
                place = take_parts(self._handles, sends, place, now, now_ms, bytes_max, new_part, parts)
            if place < total:
                part = self._taken(sends, place, now, bytes_max)
                if part is not None:
                    parts.append(part)
                else:
                    self._send(parts)
                    parts = []
                    self._publish_apart(sends, place, buffer)
                place += 1
        self._send(parts)

    def _taken(self, sends: SendMix, place: int, now: float, bytes_max: int) -> SentPart | None:
        """A part that the kernel leaves, if it can be sent with the others."""
        handle = self._handles.get(sends.producer_ids[place])
        if handle is None or sends.part_bytes(place) > bytes_max:
            return None
        return handle.take_part(sends, place, now)

    def _send(self, parts: list[SentPart]) -> None:
        if parts:
            self._gate.began(*size_of_parts(parts))
            send(parts)

    def _publish_apart(self, sends: SendMix, place: int, buffer: memoryview) -> None:
        header_bytes = self.publish(sends.run(place))
        if header_bytes != sends.header_bytes:  # a topic with other room in front of its entries
            start, end = sends.frames[place], sends.frames[place + 1]
            run = take_sends(buffer, start, end, header_bytes, end - start, end - start)
            assert run is not None, "frames that were taken before"
            self.publish(run)

    def publish(self, run: SendRun) -> int:
        """A run as the kernel took it. Returns the room that its topic needs before each payload: if the run has another room,
        nothing was done, and the frames have to be taken again.
        """
        handle = self._handles.get(run.producer_id)
        producer = None if handle is None else handle.producer
        if handle is None or producer is None or not producer.is_ready:
            self._not_ready(run.producer_id)
            return run.entries.header_bytes
        if handle.header_bytes != run.entries.header_bytes:
            return handle.header_bytes
        size = run.entries.payload_bytes
        if run.bad_checksum_index >= 0:
            handle.refuse(run.sequence_ids, ServerError.CHECKSUM, "Checksum failed on the broker")
        elif self._has_refusable(run, producer):
            self._publish_singly(handle, producer, run)
        else:
            handle.publish(producer, run, size)
        return handle.header_bytes

    def _has_refusable(self, run: SendRun, producer: Producer) -> bool:
        """A message that is too large, to be delivered too late, or not encrypted where it has to be."""
        if producer.is_encryption_required and is_any_plain(run.entries):
            return True
        if producer.delay_ms_max and longest_delay(run.entries) > producer.delay_ms_max:
            return True
        bytes_max = self._settings.max_message_size
        if run.entries.payload_bytes > bytes_max and is_any_larger(run.entries, bytes_max):
            return True
        return producer.message_size_max > 0 and _is_beyond(run, producer.message_size_max)

    def _publish_singly(self, handle: ProducerHandle, producer: Producer, run: SendRun) -> None:
        for each in one_by_one(run):
            size = message_bytes(each.entries, 0)
            if producer.is_encryption_required and is_any_plain(each.entries):
                handle.refuse(each.sequence_ids, ServerError.METADATA, "Messages must be encrypted")
            elif producer.delay_ms_max and longest_delay(each.entries) > producer.delay_ms_max:
                message = f"Exceeds max allowed delivery delay of {producer.delay_ms_max} milliseconds"
                handle.refuse(each.sequence_ids, ServerError.NOT_ALLOWED, message)
            elif producer.message_size_max and _is_beyond(each, producer.message_size_max):
                message = f"Exceed maximum message size of the topic: {producer.message_size_max} bytes"
                handle.refuse(each.sequence_ids, ServerError.NOT_ALLOWED, message)
            elif size > self._settings.max_message_size:
                message = f"Exceed maximum message size: {size} bytes, allowed are {self._settings.max_message_size}"
                handle.refuse(each.sequence_ids, ServerError.NOT_ALLOWED, message)
            else:
                handle.publish(producer, each, each.entries.payload_bytes)

    def on_send(self, command: BaseCommand, payload: memoryview) -> None:
        """A SEND that the kernel left."""
        send = command.send
        handle = self._handles.get(send.producer_id)
        if handle is None or handle.producer is None or not handle.producer.is_ready:
            self._not_ready(send.producer_id)
            return
        try:
            run = single_send(send, payload, handle.header_bytes)
        except BrokerError as failure:
            reason = f"SEND {send.sequence_id} of producer {send.producer_id} refused: {failure.message}"
            log.warning(line("message refused", peer=self._link.address, reason=reason))
            handle.refuse((send.sequence_id,), failure.code, failure.message)
        else:
            self.publish(run)

    def _not_ready(self, producer_id: int) -> None:
        if not self._recently_closed.has(producer_id, asyncio.get_running_loop().time()):
            raise ProtocolViolation(f"SEND for producer {producer_id}, which is not ready on this connection")

    # ---- The end of producers

    def on_close(self, command: BaseCommand, _: memoryview) -> None:
        """SUCCESS after the last receipt; also for a producer that is not there."""
        request_id = command.close_producer.request_id
        handle = self._handles.pop(command.close_producer.producer_id, None)
        producer = None if handle is None else handle.producer
        if handle is None or producer is None:
            self._link.answer(replies.success(request_id))
            return

        def drained() -> None:
            producer.close()
            handle.detach()
            self._link.answer(replies.success(request_id))

        handle.drain(drained)

    def _closed_by_broker(self, handle: ProducerHandle, code: ServerError, reason: str) -> None:
        """A producer that is not attached yet, or waits in vain for its turn, gets a refusal of its request."""
        if self._handles.get(handle.producer_id) is not handle:
            return
        producer = handle.producer
        handle.detach()
        if producer is None or not producer.is_ready:
            self._refuse(handle, BrokerError(code, reason))
            return
        del self._handles[handle.producer_id]
        self._recently_closed.add(handle.producer_id, asyncio.get_running_loop().time())
        log.info(line("producer closed", peer=self._link.address, producer=producer.name, reason=reason))
        if self._link.protocol_version >= 5:
            heir = None if handle.topic is None else self._service.lookup.heir(handle.topic)
            self._link.answer(replies.close_producer(handle.producer_id, heir))
        else:
            self._link.end(f"producer closed: {reason}")

    def attached_all(self) -> Iterator[Attached]:
        """All producers, also those that wait for their topic."""
        for handle in tuple(self._handles.values()):
            if handle.topic is not None:
                yield Attached(topic_need("PRODUCE", str(handle.topic)), partial(_revoke, handle))

    def ends(self) -> Iterator[Callable[[], None]]:
        """The connection is gone: returns the calls that close each, and keeps none of the producers."""
        handles, self._handles = self._handles, {}
        return (handle.close for handle in taken_apart(handles.values()))


def _revoke(handle: ProducerHandle, reason: str) -> None:
    producer = handle.producer
    handle.closed(reason)
    if producer is not None:
        producer.close()


def _topic_epoch(command: api.CommandProducer) -> int:
    """Given by a broker before. The greatest number of all would leave no next one (in Apache it is negative)."""
    epoch = signed(command.topic_epoch)
    if epoch > _TOPIC_EPOCH_MAX:
        raise BrokerError(ServerError.NOT_ALLOWED, f"Topic epoch {epoch} was not given to anybody")
    return epoch


def _is_beyond(run: SendRun, bytes_max: int) -> bool:
    """Whether a message is larger, with its metadata, than its topic takes; chunks are not looked at (AbstractTopic)."""
    entries = run.entries
    if run.flags & FLAG_CHUNK or entries.payload_bytes <= bytes_max:
        return False
    sizes = map(int.__sub__, entries.offsets[1:], entries.offsets)
    return max(sizes) - entries.header_bytes > bytes_max


ROUTES: Routes[Producers] = {
    BaseCommand.PRODUCER: Producers.on_producer,
    BaseCommand.SEND: Producers.on_send,
    BaseCommand.CLOSE_PRODUCER: Producers.on_close,
}
