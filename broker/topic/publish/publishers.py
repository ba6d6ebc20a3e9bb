"""The producers of one topic: performs the decisions of `producers.ProducerAdmission`, and stores the topic epoch.

Relies on the managed ledger's properties for the epoch (Apache's key, so that either software goes on from the other's). Writes
of epochs are one after the other, in the order in which they were decided.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, assert_never

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import AppendRefused, ManagedLedger, ManagedLedgerError
from ports.clock import Clock
from ports.ends import ENDS
from ports.loop.owner import weakly
from ports.loop.slices import do_in_slices, in_slices
from ports.loop.taking_apart import taken_apart
from wire.kernels.rows import PublishersRow
from wire.run import FLAG_CHUNK, EntryBatch, EntryRun, SendRun
from wire.transactions import TxnId

from ...policies.in_force import PoliciesInForce
from ...policies.policies import PublishRate
from ...policies.topic_settings import TopicSettings
from ..contract import ProducerRequest, ProducerSink
from ..errors import broker_error, no_room, topic_unavailable
from ..limits.broker_limits import BrokerLimits
from ..limits.publish_throttle import PublishThrottle
from ..sent_part import SentPart
from ..statistics.rates import PublishCounters, PublishRates
from ..transactions.topic_transactions import TopicTransactions
from .admission import ProducerAdmission
from .admission_events import (
    Admit,
    CheckPredecessor,
    CloseProducer,
    Effect,
    Enqueue,
    EpochNotStored,
    EpochStored,
    PredecessorChecked,
    ProducerArrived,
    ProducerKey,
    ProducerLeft,
    Refuse,
    ReplaceProducer,
    StoreEpoch,
)
from .deduplication_driver import TopicDeduplication
from .producer import TopicProducer

TOPIC_EPOCH_PROPERTY = "pulsar.topic.epoch"

_log = logging.getLogger(__name__)

_DRAIN_SECONDS_MAX = 5.0


class PublishersHost(Protocol):
    """Part of a topic that its producers need."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def transactions(self) -> TopicTransactions: ...
    def run_task(self, work: Coroutine[Any, Any, None]) -> None: ...
    def storage_failed(self, error: BaseException) -> None: ...
    def somebody_left(self) -> None: ...


class Publishers(PublishersRow):
    """All producers of a topic, also those that wait."""

    __slots__ = (
        "__weakref__",
        "_admission",
        "_arrivals",
        "_clock",
        "_epoch_turn",
        "_has_ended",
        "_host",
        "_is_sending_away",
        "_keys_given",
        "_limits",
        "_policies",
        "_producers",
        "_rate",
        "_throttle",
        "rate_limited_times",
        "rates",
    )

    counters: PublishCounters
    deduplication: TopicDeduplication

    def __init__(
        self, host: PublishersHost, policies: PoliciesInForce, limits: BrokerLimits, settings: TopicSettings, clock: Clock
    ) -> None:
        self.counters = PublishCounters()
        self.rates = PublishRates()
        self.last_publish_ms = 0
        self.rate_limited_times = 0
        """Publishes that were too much for a rate (publishRateLimitedTimes)."""
        self._host = host
        self._transactions, self._appends = host.transactions, host.ledger.appends
        self._policies = policies
        self._limits = limits
        self._clock = clock
        self._admission = ProducerAdmission(
            host.name, _stored_epoch(host.ledger), same_address_max=settings.max_same_address_producers_per_topic
        )
        self._producers: dict[ProducerKey, TopicProducer] = {}
        self._arrivals: dict[ProducerKey, asyncio.Future[None]] = {}
        self._keys_given = 0
        self._epoch_turn = asyncio.Lock()
        self._has_ended = False
        self._is_sending_away = False
        self._rate = PublishRate()
        self._throttle: PublishThrottle | None = None
        self._throttles = ()
        """This topic's and the broker's, where there are rates."""
        self.deduplication = TopicDeduplication(weakly(self), policies, settings, clock)
        self.policies_changed()

    @property
    def name(self) -> str:
        return self._host.name

    @property
    def ledger(self) -> ManagedLedger:
        return self._host.ledger

    @property
    def all(self) -> list[TopicProducer]:
        return list(self._producers.values())

    @property
    def count(self) -> int:
        return len(self._producers)

    @property
    def waiting_count(self) -> int:
        return self._admission.waiting_count

    @property
    def topic_epoch(self) -> int | None:
        return self._admission.topic_epoch

    async def add(self, request: ProducerRequest, sink: ProducerSink) -> TopicProducer:
        """The producer, admitted or waiting; BrokerError when it is refused."""
        await self.deduplication.ready()
        if self._has_ended:
            raise topic_unavailable()
        refusal = self._limits.storage_refusal()
        if refusal:
            raise no_room(self.name, refusal)
        self._keys_given += 1
        key = ProducerKey(self._keys_given)
        producer = TopicProducer(self, key, request, sink, self._clock.now_ms())
        self._limit(producer)
        arrival = asyncio.get_running_loop().create_future()
        self._producers[key], self._arrivals[key] = producer, arrival
        self._admission.producers_max = self._policies.current.max_producers
        self._perform(self._admission.handle(ProducerArrived(key, request)))
        try:
            await arrival
            await self.deduplication.settled(producer.name)
        except asyncio.CancelledError:
            producer.close()
            raise
        if producer.is_closed:  # between the decision and this line
            raise topic_unavailable() if self._has_ended else BrokerError(ServerError.PRODUCER_FENCED, "Fenced out")
        producer.is_introduced = True
        return producer

    def check_storage(self) -> None:
        """A client whose producer is closed and that comes back is refused by name, and fails its waiting messages; its
        consumers go on. A SEND_ERROR would end its connection, and their work with it.
        """
        refusal = self._limits.storage_refusal()
        if refusal and not (self._is_sending_away or self._has_ended):
            self._is_sending_away = True
            _log.warning("%s: publishing ends until there is room: %s", self.name, refusal)
            self._hold_introduced()
            self._host.run_task(self._send_away_for_room(refusal))

    def appends_refused(self) -> None:
        """Ends all producers after a refused append: no message on its way is stored. No producer may publish until all are
        notified: a later message would be stored before an earlier one. Consumers stay (PersistentTopic.addFailed)."""
        if self._hold_introduced():
            _log.warning("%s: producers are closed: no bookies took their messages under way", self.name)
            self._host.run_task(self.send_away("bookies take nothing now"))

    def _hold_introduced(self) -> list[TopicProducer]:
        """Holds and returns the introduced producers not held yet. Another one, unknown to its connection, would stay held."""
        found = [producer for producer in self.all if producer.is_introduced and not producer.is_held]
        for producer in found:
            producer.hold()
        return found

    async def _send_away_for_room(self, reason: str) -> None:
        try:
            await self.send_away(reason)
        finally:
            self._is_sending_away = False

    def append(self, entries: EntryBatch, txn_id: TxnId | None = None) -> "asyncio.Future[EntryRun]":
        return self._host.transactions.append(txn_id, entries)

    def take_part(self, producer: TopicProducer, part: SentPart) -> bool:
        """Same as `append` and `count_published`, where only the log is concerned; False: nothing has changed."""
        if self._throttles or self._limits.storage_refusal() or self._host.transactions.is_appending_later:
            return False
        if self.deduplication.concerns(producer.name) or not self._host.ledger.take_part(part):
            return False
        messages, size = part.sends.message_counts[part.place], part.payload_bytes
        chunks = part.count if part.sends.flags[part.place] & FLAG_CHUNK else 0
        producer.counters.add(messages, size, chunks)
        self.counters.add(messages, size, chunks)
        self.last_publish_ms = self._clock.now_ms()
        return True

    def policies_changed(self) -> None:
        """Applies the rates of the policies from now on; an unchanged rate keeps its state."""
        rate = self._policies.current.publish_rate
        if rate != self._rate:
            self._rate = rate
            if self._throttle is not None:
                self._throttle.close()
            self._throttle = PublishThrottle(rate.messages, rate.bytes) if rate.is_limited else None
        do_in_slices((partial(self._limit, producer) for producer in self.all), lambda: None)
        self._limits.refresh()
        self._throttles = tuple(each for each in (self._throttle, self._limits.publish) if each is not None)

    def _limit(self, producer: TopicProducer) -> None:
        policies = self._policies.current
        producer.message_size_max = max(0, policies.max_message_size)
        producer.delay_ms_max = max(0, policies.delayed_delivery_max_delay_ms) if policies.delayed_delivery_enabled else 0
        producer.is_encryption_required = policies.encryption_required

    def count_published(self, producer: TopicProducer, run: SendRun, chunks: int) -> None:
        self.counters.add(run.entries.message_count, run.entries.payload_bytes, chunks)
        self.last_publish_ms = self._clock.now_ms()
        if self._throttles:
            self._count_against_rates(producer, run)

    def _count_against_rates(self, producer: TopicProducer, run: SendRun) -> None:
        messages, size = run.entries.message_count, run.entries.payload_bytes
        exceeded = [each for each in self._throttles if each.published(producer, messages, size)]
        if exceeded:
            self.rate_limited_times += 1

    def storage_failed(self, error: BaseException) -> None:
        if not isinstance(error, AppendRefused):  # of that `appends_refused` has heard
            self._host.storage_failed(error)

    def log_ended(self, producer: TopicProducer) -> None:
        """Closed first, as by Apache (PersistentTopic.addFailed): its client gets the reason when it comes back."""
        producer.end("the topic is terminated")
        self.producer_left(producer)

    def producer_left(self, producer: TopicProducer) -> None:
        if self._producers.pop(producer.key, None) is None:
            return
        ENDS.ended(producer)
        self._arrivals.pop(producer.key, None)
        self._perform(self._admission.handle(ProducerLeft(producer.key, producer.name)))
        self._host.somebody_left()

    async def drain(self, seconds_max: float) -> None:
        """Refuses new messages and waits for those under way, so that no client has to send them again elsewhere."""
        await _drained(self.all, seconds_max)

    def last_appends(self) -> "list[asyncio.Future[EntryRun]]":
        """Youngest append under way of each producer."""
        return [append for producer in self._producers.values() if (append := producer.last_append()) is not None]

    def producer_names(self) -> Iterable[str]:
        """Names of the producers that publish or wait."""
        return (producer.name for producer in self._producers.values())

    async def send_away(self, reason: str) -> None:
        """Closes the present producers; the topic takes new ones. Runs on their way are answered first."""
        producers = [producer for producer in self.all if producer.is_introduced]
        await _drained(producers, _DRAIN_SECONDS_MAX)
        async for producer in in_slices(producers):
            producer.end(reason)
            self.producer_left(producer)

    async def end_all(self, reason: str) -> None:
        """The topic closes: its producers are closed in slices, waiting ones are refused, and no new one is admitted. No
        producer takes a message any more when the first one is closed."""
        self._has_ended = True
        self.deduplication.close()
        if self._throttle is not None:
            self._throttle.close()
        for producer in self._producers.values():
            producer.hold()
        ending, self._producers = taken_apart(self._producers.values()), {}
        arrivals, self._arrivals = self._arrivals, {}
        async for arrival in in_slices(arrivals.values()):
            if not arrival.done():
                arrival.set_exception(topic_unavailable())
        async for producer in in_slices(ending):
            producer.end(reason)
            ENDS.ended(producer)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in () if self._has_ended else effects:
            match effect:
                case Admit(key, epoch):
                    self._admit(self._producers[key], epoch)
                case Enqueue(key):
                    self._arrivals.pop(key).set_result(None)
                case Refuse(key, code, message):
                    self._refuse(self._producers.pop(key), code, message)
                case CheckPredecessor(key, predecessor):
                    self._host.run_task(self._check(key, self._producers[predecessor]))
                case StoreEpoch(key, epoch):
                    self._host.run_task(self._store_epoch(key, epoch))
                case CloseProducer(key, reason):
                    _log.info("%s: producer %s closed: %s", self._host.name, self._producers[key].name, reason)
                    self._producers.pop(key).end(reason)
                case ReplaceProducer(key):
                    self._producers.pop(key).replaced()
                case _:
                    assert_never(effect)

    def _admit(self, producer: TopicProducer, epoch: int | None) -> None:
        producer.admitted(epoch)
        self.deduplication.producer_came(producer.name)
        arrival = self._arrivals.pop(producer.key, None)
        if arrival is None:
            producer.became_ready()
        else:
            arrival.set_result(None)

    def _refuse(self, producer: TopicProducer, code: ServerError, message: str) -> None:
        _log.info("%s: producer %s from %s refused: %s", self._host.name, producer.name, producer.request.address, message)
        arrival = self._arrivals.pop(producer.key, None)
        if arrival is None:
            producer.refused(code, message)
        else:
            arrival.set_exception(BrokerError(code, message))

    async def _check(self, key: ProducerKey, predecessor: TopicProducer) -> None:
        if not await predecessor.is_alive():
            _log.warning("%s: producer %s was on a dead connection", self._host.name, predecessor.name)
        self._perform(self._admission.handle(PredecessorChecked(key)))

    async def _store_epoch(self, key: ProducerKey, epoch: int) -> None:
        ledger = self._host.ledger
        try:
            async with self._epoch_turn:
                await ledger.set_properties({**ledger.properties, TOPIC_EPOCH_PROPERTY: str(epoch)})
        except ManagedLedgerError as error:
            _log.warning("%s: topic epoch %d could not be stored: %s", self._host.name, epoch, error)
            refusal = broker_error(error)
            self._perform(self._admission.handle(EpochNotStored(key, refusal.code, refusal.message)))
        else:
            self._perform(self._admission.handle(EpochStored(key, epoch)))


async def _drained(producers: Sequence[TopicProducer], seconds_max: float) -> None:
    """Holds all producers at once, and waits until their appends under way are answered."""
    for producer in producers:
        producer.hold()
    found = [producer.last_append() async for producer in in_slices(producers)]
    appends = [append for append in found if append is not None]
    if appends:
        await asyncio.wait(appends, timeout=seconds_max)


def _stored_epoch(ledger: ManagedLedger) -> int | None:
    text = ledger.properties.get(TOPIC_EPOCH_PROPERTY)
    return None if text is None else int(text)
