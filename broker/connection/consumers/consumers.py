"""SUBSCRIBE, FLOW, ACK, REDELIVER, CLOSE_CONSUMER: the consumers of one connection. `consumer_requests` has the rest.

A consumer id is pending while its topic is loaded, then attached. FLOWs that come while it is pending are ignored, and commands
for an unknown id, as in Apache's ServerCnx: the broker may have closed it a moment ago, and its client subscribes again. That
client asks for permits once it has the answer; Go's knows its consumer only then, and drops messages that come earlier.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from ports.logs import line
from ports.loop.taking_apart import taken_apart
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import signed
from wire.kernels.acks import take_ack_mix, take_acks
from wire.kernels.plain_acks import acknowledge_each, acknowledge_run
from wire.run import AckMix, AckRun, Buffer
from wire.transactions import TxnId

from ...errors import BrokerError, ServerError
from ...security.authorization.needs import topic_need
from ...service.broker_service import BrokerService
from ...service.topic_name import TopicName
from ...topic.contract import Acknowledgement, Consumer
from .. import replies
from ..access.revocation import Attached
from ..errors import ProtocolViolation, to_broker_error
from ..link import Link, Routes
from ..requests.schemas import SchemasOfTopics, check_consumer_schema
from ..settings import ConnectionSettings
from .consumer_handle import ConsumerHandle
from .redelivery import redelivered
from .subscribe_requests import subscribe_request

log = logging.getLogger(__name__)

PROPERTIES_BYTES_MAX = 16 * 1024
_PERMITS_MAX = (1 << 31) - 1
_DAMAGED_NAMED_MAX = 10
IDS_PER_SLICE = 256
"""Message ids that are handled in one turn of the loop. Each costs some 2 microseconds, and 15 where it is the only one of a
ledger that there is."""
ACKS_IN_MIX_MAX = 16
"""ACKs of one entry each, of several consumers, that count as one frame of those that are handled in a turn."""
FEW_IDS = 8
"""Ids that are acknowledged one by one; a bitmap is cheaper for more."""
LEDGERS_AT_ONCE_MAX, RUN_IDS_PER_SLICE = 8, 16_384
"""Ledgers of a run of ids that costs 0.1 microseconds an id, and ids of such a run that are handled in one turn."""


class Consumers:
    """Consumers of one connection."""

    def __init__(self, link: Link, service: BrokerService, settings: ConnectionSettings) -> None:
        self._link = link
        self._service = service
        self._schemas = SchemasOfTopics(service.schemas, service.deletion)
        self._settings = settings
        self._handles: dict[int, ConsumerHandle] = {}
        self._loop = asyncio.get_running_loop()

    def attached(self, consumer_id: int) -> ConsumerHandle | None:
        handle = self._handles.get(consumer_id)
        return handle if handle is not None and handle.consumer is not None else None

    # ---- SUBSCRIBE

    def on_subscribe(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.subscribe
        handle = self._handles.get(asked.consumer_id)
        if handle is None:
            handle = ConsumerHandle(self._link, asked.consumer_id, asked.request_id, self._closed_by_broker)
            self._handles[asked.consumer_id] = handle
            self._link.run(command, self._attach(handle, asked), lambda failure: self._refuse(handle, failure), is_making=True)
        elif handle.consumer is not None:
            self._link.answer(replies.success(asked.request_id))
        else:
            failure = BrokerError(ServerError.SERVICE_NOT_READY, "Consumer is already present on the connection")
            self._link.answer(replies.error(asked.request_id, failure))

    async def _attach(self, handle: ConsumerHandle, command: api.CommandSubscribe) -> None:
        name = handle.topic = TopicName.parse(command.topic)
        handle.subscription = command.subscription
        request = subscribe_request(
            command,
            self._link,
            self._settings.max_consumer_metadata_size,
            may_create_subscription=True,  # as far as the topic's policies go
        )
        topic = await self._service.lifecycle.topic(name, may_create=command.force_topic_creation)
        await check_consumer_schema(self._schemas, name, topic, command)
        consumer = await topic.subscribe(request, handle)
        if self._handles.get(handle.consumer_id) is not handle:
            consumer.close()  # closed meanwhile by its client, or the client is gone
            return
        handle.attach(consumer, name.partition_index)
        peer = self._link.address
        log.info(line("consumer attached", peer=peer, topic=topic.name, subscription=consumer.subscription, name=consumer.name))
        self._link.answer(replies.success(handle.request_id))

    def _refuse(self, handle: ConsumerHandle, failure: BrokerError) -> None:
        if self._handles.get(handle.consumer_id) is handle:
            del self._handles[handle.consumer_id]
            self._link.answer(replies.error(handle.request_id, failure))

    # ---- While it consumes

    def on_flow(self, command: BaseCommand, _: memoryview) -> None:
        permits = command.flow.message_permits
        if not 0 < permits <= _PERMITS_MAX:
            raise ProtocolViolation(f"FLOW with {permits} permits for consumer {command.flow.consumer_id}")
        handle = self.attached(command.flow.consumer_id)
        if handle is not None and handle.consumer is not None:
            handle.consumer.flow(permits)

    def acknowledge_plain(self, buffer: Buffer, at: int, end: int) -> int:
        """The plain ACK commands that begin at `at`, or some of them; where the first one that is left begins."""
        mix = take_ack_mix(buffer, at, end, ACKS_IN_MIX_MAX)
        if mix is not None:
            self._acknowledge_mix(mix)
            return mix.end
        run = take_acks(buffer, at, end)
        if run is None:
            return at
        self._acknowledge_run(run)
        return run.end

    def _acknowledge_run(self, run: AckRun) -> None:
        handle = self._handles.get(run.consumer_id)
        if handle is None or handle.consumer is None:
            return
        count, at_once = len(run.ledger_ids), IDS_PER_SLICE
        if count > at_once and len(set(run.ledger_ids)) <= LEDGERS_AT_ONCE_MAX:
            at_once = RUN_IDS_PER_SLICE
        if count <= FEW_IDS:
            self._acknowledge_few(handle.consumer, run)
        elif count <= at_once:
            handle.consumer.acknowledge_run(run)
        else:
            self._link.in_slices(_acknowledged_run(handle, run, at_once))

    def _acknowledge_few(self, consumer: Consumer, run: AckRun) -> None:
        """One after the other where they are plain: most likely each is the next one."""
        taken = acknowledge_run(consumer, run.ledger_ids, run.entry_ids, self._loop.time(), self._service.clock.now_ms())
        if taken < len(run.ledger_ids):
            rest = run if not taken else AckRun(run.consumer_id, run.ledger_ids[taken:], run.entry_ids[taken:], run.end)
            consumer.acknowledge_run(rest)

    def _acknowledge_mix(self, mix: AckMix) -> None:
        place, total = 0, len(mix.consumer_ids)
        now, now_ms = self._loop.time(), self._service.clock.now_ms()
        while place < total and self._link.is_open:
            place = acknowledge_each(self._handles, mix, place, now, now_ms)
            if place < total:
                handle = self._handles.get(mix.consumer_ids[place])
                if handle is not None and handle.consumer is not None:
                    handle.consumer.acknowledge_entry(mix.ledger_ids[place], mix.entry_ids[place])
                place += 1

    def on_ack(self, command: BaseCommand, _: memoryview) -> None:
        """An ACK that the kernel left: cumulative, of parts of batches, of a transaction, or one that wants an answer.

        The answer comes once the acknowledgement is stored (docs/adr/0013-an-answered-acknowledgement-is-stored.md).
        """
        ack = command.ack
        if ack.HasField("validation_error"):
            self._log_damaged(ack)
        handle = self.attached(ack.consumer_id)
        if handle is None:
            message = f"Consumer {ack.consumer_id} is not on this connection"
            self._acknowledged(ack, None, BrokerError(ServerError.CONSUMER_NOT_FOUND, message))
        elif _is_of_transaction(ack):
            self._link.in_slices(self._acknowledge_in_transaction(handle, ack))
        else:
            self._link.in_slices(self._acknowledge(handle, ack))

    def _acknowledge(self, handle: ConsumerHandle, ack: api.CommandAck) -> Iterator[None]:
        failure = None
        try:
            for part in _parts(ack):
                if part is None:
                    yield
                elif handle.consumer is not None:
                    _acknowledge(handle.consumer, part)
        except BrokerError as error:
            failure = error
        self._acknowledged(ack, handle, failure)

    def _acknowledged(self, ack: api.CommandAck, handle: ConsumerHandle | None, failure: BrokerError | None) -> None:
        if ack.HasField("request_id"):
            self._link.run(
                None,
                self._answer_ack(ack, handle, failure),
                lambda failed: self._link.answer(replies.ack_response(ack, failed)),
            )
        elif failure is not None and handle is not None:
            reason = f"ACK of consumer {ack.consumer_id} refused: {failure.message}"
            log.warning(line("acknowledgement refused", peer=self._link.address, reason=reason))

    def _acknowledge_in_transaction(self, handle: ConsumerHandle, ack: api.CommandAck) -> Iterator[None]:
        """Answered when it is stored, if it wants an answer, as clients' do. The command takes effect as a whole."""
        txn_id = TxnId(ack.txnid_most_bits, ack.txnid_least_bits)

        def answer(failure: BrokerError | None) -> None:
            if ack.HasField("request_id"):
                self._link.answer(replies.ack_response(ack, failure))
            elif failure is not None:
                reason = f"ACK of transaction {txn_id} refused: {failure.message}"
                log.warning(line("acknowledgement refused", peer=self._link.address, reason=reason))

        async def work(acknowledgement: Acknowledgement) -> None:
            assert handle.consumer is not None
            await handle.consumer.acknowledge_in(txn_id, acknowledgement)
            answer(None)

        parts: list[Acknowledgement] = []
        try:
            for part in _parts(ack):
                if part is None:
                    yield
                else:
                    parts.append(part)
        except BrokerError as failure:
            answer(failure)
            return
        self._link.run(None, work(_joined(parts)), answer)

    def _log_damaged(self, ack: api.CommandAck) -> None:
        """The client could not read them and goes on: acknowledged all the same (Apache: checkAckValidationError)."""
        reason = api.CommandAck.ValidationError.Name(ack.validation_error)
        positions = ", ".join(str(replies.position_of(each)) for each in ack.message_id[:_DAMAGED_NAMED_MAX])
        peer, count = self._link.address, len(ack.message_id)
        log.warning(line("a client could not read messages", peer=peer, count=count, first=positions, reason=reason))

    async def _answer_ack(self, ack: api.CommandAck, handle: ConsumerHandle | None, failure: BrokerError | None) -> None:
        if failure is None and handle is not None and handle.consumer is not None:
            await handle.consumer.acknowledgements_stored()
        self._link.answer(replies.ack_response(ack, failure))

    def on_redeliver(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.redeliver_unacknowledged_messages
        handle = self.attached(asked.consumer_id)
        if handle is not None and handle.consumer is not None:
            self._link.in_slices(redelivered(handle.consumer, asked, IDS_PER_SLICE))

    def writable(self) -> None:
        """The peer reads again."""
        for handle in tuple(self._handles.values()):
            if handle.consumer is not None:
                handle.consumer.writable()

    # ---- The end of consumers

    def on_close(self, command: BaseCommand, _: memoryview) -> None:
        """SUCCESS, also for a consumer that is not there."""
        handle = self._handles.pop(command.close_consumer.consumer_id, None)
        if handle is not None and handle.consumer is not None:
            handle.consumer.close()
        self._link.answer(replies.success(command.close_consumer.request_id))

    def forget(self, handle: ConsumerHandle) -> None:
        """Removes a consumer whose subscription has ended."""
        if self._handles.get(handle.consumer_id) is handle:
            del self._handles[handle.consumer_id]

    def _closed_by_broker(self, handle: ConsumerHandle, reason: str) -> None:
        if self._handles.get(handle.consumer_id) is not handle:
            return
        if handle.consumer is None:
            self._refuse(handle, BrokerError(ServerError.SERVICE_NOT_READY, reason))
            return
        del self._handles[handle.consumer_id]
        if handle.unsubscribes:
            return
        log.info(line("consumer closed", peer=self._link.address, name=handle.consumer.name, reason=reason))
        if self._link.protocol_version >= 5:
            heir = None if handle.topic is None else self._service.lookup.heir(handle.topic)
            self._link.answer(replies.close_consumer(handle.consumer_id, heir))
        else:
            self._link.end(f"consumer closed: {reason}")

    def attached_all(self) -> Iterator[Attached]:
        """All consumers, also those that wait for their topic."""
        for handle in tuple(self._handles.values()):
            if handle.topic is not None:
                yield Attached(topic_need("CONSUME", str(handle.topic), handle.subscription), partial(_revoke, handle))

    def ends(self) -> Iterator[Callable[[], None]]:
        """The connection is gone: returns the calls that close each, and keeps none of the consumers."""
        handles, self._handles = self._handles, {}
        return (handle.consumer.close for handle in taken_apart(handles.values()) if handle.consumer is not None)


def _revoke(handle: ConsumerHandle, reason: str) -> None:
    handle.closed(reason)
    if handle.consumer is not None:
        handle.consumer.close()


def _is_of_transaction(ack: api.CommandAck) -> bool:
    return ack.HasField("txnid_most_bits") and ack.HasField("txnid_least_bits")


def _acknowledge(consumer: Consumer, acknowledgement: Acknowledgement) -> None:
    try:
        consumer.acknowledge(acknowledgement)
    except Exception as failure:
        raise to_broker_error(failure) from failure


def _acknowledged_run(handle: ConsumerHandle, run: AckRun, at_once: int) -> Iterator[None]:
    """A run of very many ids, or one whose ids name many ledgers."""
    assert handle.consumer is not None
    for at in range(0, len(run.ledger_ids), at_once):
        if at:
            yield
        end = at + at_once
        handle.consumer.acknowledge_run(AckRun(run.consumer_id, run.ledger_ids[at:end], run.entry_ids[at:end], run.end))


def _parts(ack: api.CommandAck) -> Iterator[Acknowledgement | None]:
    """Yields the ids of an acknowledgement in parts, at least one; None where others get their turn."""
    is_cumulative, count = ack.ack_type == api.CommandAck.Cumulative, len(ack.message_id)
    if is_cumulative and count != 1:
        raise BrokerError(ServerError.NOT_ALLOWED, f"A cumulative ack of {count} messages")
    properties = _properties(ack)
    for at in range(0, max(1, count), IDS_PER_SLICE):
        if at:
            yield None
        message_ids = ack.message_id[at : at + IDS_PER_SLICE]
        yield Acknowledgement(
            is_cumulative=is_cumulative,
            positions=tuple([replies.position_of(each) for each in message_ids]),
            ack_sets=tuple([tuple(each.ack_set) for each in message_ids]),
            batch_sizes=tuple([max(0, each.batch_size) for each in message_ids]),
            properties=properties,
        )


def _joined(parts: Sequence[Acknowledgement]) -> Acknowledgement:
    if len(parts) == 1:
        return parts[0]
    return Acknowledgement(
        is_cumulative=parts[0].is_cumulative,
        positions=tuple(chain.from_iterable(part.positions for part in parts)),
        ack_sets=tuple(chain.from_iterable(part.ack_sets for part in parts)),
        batch_sizes=tuple(chain.from_iterable(part.batch_sizes for part in parts)),
        properties=parts[0].properties,
    )


def _properties(ack: api.CommandAck) -> dict[str, int]:
    """Stored with the cursor's place at each write of it. Apache has no bound. Java's long: a word with a sign."""
    size = sum(len(pair.key) + 8 for pair in ack.properties)
    if size > PROPERTIES_BYTES_MAX:
        raise BrokerError(ServerError.NOT_ALLOWED, f"Properties of {size} bytes; an ack may have {PROPERTIES_BYTES_MAX}")
    return {pair.key: signed(pair.value) for pair in ack.properties}


ROUTES: Routes[Consumers] = {
    BaseCommand.SUBSCRIBE: Consumers.on_subscribe,
    BaseCommand.FLOW: Consumers.on_flow,
    BaseCommand.ACK: Consumers.on_ack,
    BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES: Consumers.on_redeliver,
    BaseCommand.CLOSE_CONSUMER: Consumers.on_close,
}
