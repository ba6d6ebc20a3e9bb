"""One producer on a topic: the publish path. Runs go to the log, receipts come back in the order of publish.

Owns the runs that are not answered yet. Each is answered once, in order; by a receipt only if it and all before it are durable.
The connection bounds the runs under way (it stops reading).
"""

import asyncio
from array import array
from collections import deque
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import AppendRefused, ManagedLedgerError, ManagedLedgerFenced, ManagedLedgerTerminated
from ports.loop.promise import ignore, listen
from ports.loop.queue_on_demand import queued
from wire.kernels.rows import ProducerRow
from wire.run import FLAG_CHUNK, EntryBatch, EntryRun, SendMix, SendRun
from wire.transactions import TxnId

from ..contract import ProducerRequest, ProducerSink
from ..sent_part import SentPart
from ..statistics.rates import PublishCounters, PublishRates
from .admission_events import ProducerKey
from .deduplication import Verdict
from .deduplication_driver import TopicDeduplication
from .deduplication_runs import Piece


class ProducerHost(Protocol):
    """Part of a topic that a producer needs."""

    @property
    def deduplication(self) -> TopicDeduplication: ...
    def append(self, entries: EntryBatch, txn_id: TxnId | None = None) -> "asyncio.Future[EntryRun]": ...
    def take_part(self, producer: "TopicProducer", part: SentPart) -> bool:
        """`append`, where nothing but the log is concerned; False: nothing has changed."""

    def count_published(self, producer: "TopicProducer", run: SendRun, chunks: int) -> None: ...
    def storage_failed(self, error: BaseException) -> None:
        """The log cannot be trusted with more: the topic closes, and with it this producer."""

    def log_ended(self, producer: "TopicProducer") -> None:
        """One of its messages came after the last one of the topic."""

    def producer_left(self, producer: "TopicProducer") -> None: ...
    def check_storage(self) -> None:
        """Holds all producers and then sends them away, where no message can be stored."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """A run that was not handed to the log; it waits for its place in the order of answers."""

    code: ServerError
    message: str


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A run that is stored already; it waits likewise."""


_CLOSED = _Refused(ServerError.SERVICE_NOT_READY, "The producer is closed")


_Unanswered: TypeAlias = "deque[tuple[SendRun, asyncio.Future[EntryRun] | _Refused | _Repeated]]"


class TopicProducer(ProducerRow):
    """A `broker.topic.contract.Producer`."""

    __slots__ = (
        "__weakref__",
        "_holds",
        "connected_since_ms",
        "is_introduced",
        "key",
        "rates",
        "request",
        "topic_epoch",
    )

    counters: PublishCounters
    _host: ProducerHost
    _sink: ProducerSink
    _unanswered: "_Unanswered | None"
    _parts_answered: "asyncio.Future[EntryRun] | None"

    def __init__(self, host: ProducerHost, key: ProducerKey, request: ProducerRequest, sink: ProducerSink, now_ms: int) -> None:
        self.key = key
        self.request = request
        self.connected_since_ms = now_ms
        self.counters = PublishCounters()
        self.rates = PublishRates()
        self.is_ready = False
        self.is_closed = False
        self.is_introduced = False
        """Whether the connection has it; until then the end of the producer is a refusal of its request."""
        self.message_size_max = self.delay_ms_max = 0
        self.is_encryption_required = False
        self.topic_epoch: int | None = None
        self._host = host
        self._sink = sink
        self.is_held = False
        """Whether the broker ends the producer soon, so that it publishes no more."""
        self._holds = 0
        """Rates that keep its connection from being read."""
        self._is_broken = False
        """Nothing more is answered but by `send_failed`."""
        self._unanswered = None
        self._parts = 0
        """Parts under way. Nothing in `_unanswered` is answered before them, and none begins while something is there."""
        self._parts_answered = None
        """Somebody waits for the last of them."""

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def last_sequence_id(self) -> int:
        return self._host.deduplication.last_sequence_id(self.name)

    def publish(self, run: SendRun) -> None:
        self._host.check_storage()
        refusal = self._refusal(run)
        if refusal is not None:
            self._answer_in_turn(run, refusal)
        elif self._host.deduplication.concerns(self.name):
            self._publish_once(run)
        else:
            self._store(run)

    def take_part(self, sends: SendMix, place: int, now: float) -> SentPart | None:
        """Publishes a part of one read, together with others: the caller sends it (`bookkeeper.write.together`).
        `turns.take_parts` does the same where the log's open ledger counts its parts.

        None: nothing has changed, `publish` is to be called. This is the answer if more than the log is concerned.
        """
        if self._unanswered or self.is_held or self._is_broken or self.is_closed or not self.is_ready:
            return None
        if self.is_encryption_required or self.message_size_max or self.delay_ms_max:
            return None
        part = SentPart(sends, place, self, now)
        if not self._host.take_part(self, part):
            return None
        self._parts += 1
        return part

    def part_stored(self, part: SentPart) -> None:
        """A `PartSource`: all parts of the producer before this one are answered."""
        self._parts -= 1
        if self._is_broken:
            self._drop(part.send_run())
        else:
            self._sink.part_stored(part)
        if not self._parts:
            self._parts_ended()

    def part_failed(self, part: SentPart, error: BaseException) -> None:
        self._parts -= 1
        run = part.send_run()
        if self._is_broken:
            self._drop(run)
        else:
            if not self._has_known_fate(error):
                self._unanswered = queued(self._unanswered, (run, _CLOSED))
            self._run_failed(run, error)
        if not self._parts:
            self._parts_ended()

    def _drop(self, run: SendRun) -> None:
        """The client gets the end of the producer alone."""
        self._unanswered = queued(self._unanswered, (run, _CLOSED))
        if self.is_closed:
            self._fail_rest()

    def _parts_ended(self) -> None:
        if self._parts_answered is not None:
            self._parts_answered.set_result(_nowhere(0))
            self._parts_answered = None
        if self._unanswered:
            self._answer()

    def _answer_in_turn(self, run: SendRun, outcome: _Refused | _Repeated) -> None:
        self._unanswered = queued(self._unanswered, (run, outcome))
        if self._is_broken and self.is_closed:
            self._fail_rest()
        else:
            self._answer()

    def _publish_once(self, run: SendRun) -> None:
        """Publishes the messages of the run that are not stored yet."""
        deduplication = self._host.deduplication
        for piece in deduplication.pieces(self.name, run):
            match piece.verdict:
                case Verdict.STORE:
                    self._store(piece.run, piece)
                case Verdict.REPEATED:
                    self._answer_in_turn(piece.run, _Repeated())
                case _:
                    self._answer_in_turn(piece.run, _Refused(*deduplication.refusal(piece)))

    def _store(self, run: SendRun, piece: Piece | None = None) -> None:
        entries = run.entries
        chunks = entries.count if run.flags & FLAG_CHUNK else 0
        self.counters.add(entries.message_count, entries.payload_bytes, chunks)
        self._host.count_published(self, run, chunks)
        future = self._host.append(entries, run.txn_id)
        if piece is not None:
            self._host.deduplication.appended(self.name, piece, future)
        self._unanswered = queued(self._unanswered, (run, future))
        listen(future, self._answer)

    def _refusal(self, run: SendRun) -> _Refused | None:
        if run.bad_checksum_index >= 0:
            if self._host.deduplication.concerns(self.name):
                self._host.deduplication.refused(self.name, run)
            return _Refused(ServerError.CHECKSUM, "Checksum failed on the broker")
        if self.is_held or self._is_broken or self.is_closed:
            return _CLOSED
        if not self.is_ready:
            return _Refused(ServerError.NOT_ALLOWED, "The producer waits for its turn")
        return None

    def _answer(self, _done: object = None) -> None:
        """Answer from the oldest run on, up to the first whose fate is not known yet."""
        while (unanswered := self._unanswered) and not (self._is_broken or self._parts):
            run, outcome = unanswered[0]
            if isinstance(outcome, _Refused):
                if self.is_held and not self.is_closed:
                    return  # the client gets the end first
                unanswered.popleft()
                self._sink.send_failed(run, outcome.code, outcome.message)
            elif isinstance(outcome, _Repeated):
                unanswered.popleft()
                self._sink.receipts(run, _nowhere(run.entries.count))
            elif not outcome.done():
                return
            else:
                self._answer_stored(unanswered, run, outcome)
        if not self._unanswered:
            self._unanswered = None

    def _answer_stored(self, unanswered: "_Unanswered", run: SendRun, future: "asyncio.Future[EntryRun]") -> None:
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is None:
            unanswered.popleft()
            self._sink.receipts(run, future.result())
            return
        if self._has_known_fate(error):
            unanswered.popleft()
        self._run_failed(run, error)

    def _has_known_fate(self, error: BaseException) -> bool:
        """Whether the client gets an answer to this run; the others wait for the end of the producer."""
        match error:
            case ManagedLedgerTerminated():
                return self.is_closed
            case ManagedLedgerError():
                return not isinstance(error, ManagedLedgerFenced | AppendRefused)
        return isinstance(error, BrokerError)

    def _run_failed(self, run: SendRun, error: BaseException) -> None:
        match error:
            case BrokerError():  # certainly not stored
                self._sink.send_failed(run, error.code, error.message)
            case ManagedLedgerTerminated() if not self.is_closed:
                self._host.log_ended(self)
            case ManagedLedgerTerminated():
                self._sink.send_failed(run, ServerError.TOPIC_TERMINATED, "Topic was already terminated")
            case AppendRefused():
                self._break(error)  # a SEND_ERROR would end the connection, and the work of its consumers with it
            case ManagedLedgerError() if not isinstance(error, ManagedLedgerFenced):
                self._sink.send_failed(run, ServerError.PERSISTENCE, f"{type(error).__name__}: {error}")
                self._break(error)
            case _:
                self._break(error)

    def _break(self, error: BaseException) -> None:
        """A run's fate is open, or the client gets no answer to it. A receipt for a later run would confirm this one, so
        that there is none.
        """
        self._is_broken = True
        self._host.storage_failed(error)
        if self.is_closed:
            self._fail_rest()  # no other code will: it has left the topic

    def _fail_rest(self) -> None:
        self._is_broken = True
        while self._unanswered:
            run, outcome = self._unanswered.popleft()
            if isinstance(outcome, asyncio.Future):
                ignore(outcome, self._answer)
                outcome.add_done_callback(_ignore)
            self._sink.send_failed(run, ServerError.SERVICE_NOT_READY, "The producer is closed")

    def last_append(self) -> "asyncio.Future[EntryRun] | None":
        """Future that is done when the youngest run on its way to the log is answered; None without one."""
        last = next((outcome for _, outcome in reversed(self._unanswered or ()) if isinstance(outcome, asyncio.Future)), None)
        if last is None and self._parts:
            if self._parts_answered is None:
                self._parts_answered = asyncio.get_running_loop().create_future()
            return self._parts_answered
        return last

    def hold(self) -> None:
        """The broker ends the producer soon: refuses new messages, so that those under way can be answered before."""
        self.is_held = True

    def hold_reading(self) -> None:
        """A rate was exceeded."""
        self._holds += 1
        if self._holds == 1 and not self.is_closed:
            self._sink.hold_reading()

    def resume_reading(self) -> None:
        """There is room again."""
        self._holds -= 1
        if self._holds == 0 and not self.is_closed:
            self._sink.resume_reading()

    def _let_go(self) -> None:
        """Releases the sink of an ended producer; its connection has other producers."""
        self.is_closed = True
        if self._holds:
            self._sink.resume_reading()

    def admitted(self, topic_epoch: int | None) -> None:
        """Admits the producer; notifies the client if it has waited for this."""
        self.topic_epoch = topic_epoch
        self.is_ready = True

    def became_ready(self) -> None:
        """Tell the client that its turn has come."""
        assert self.topic_epoch is not None
        self._sink.ready(self.topic_epoch)

    def refused(self, code: ServerError, message: str) -> None:
        """Refuses the producer after it has waited: its turn will not come."""
        self.is_closed = True
        self._sink.refused(code, message)

    async def is_alive(self) -> bool:
        """Whether its client is there; when not, it has left."""
        return await self._sink.is_alive()

    def close(self) -> None:
        if not self.is_closed:
            self._let_go()
            self._host.producer_left(self)

    def replaced(self) -> None:
        """Ends a producer whose client is on another connection already. Its old sink still gets answers to earlier runs."""
        self._let_go()

    def end(self, reason: str) -> None:
        """The broker ends it."""
        if self.is_closed:
            return
        self._let_go()
        if self.is_introduced:
            self._sink.closed(reason)
        self._fail_rest()


def _nowhere(count: int) -> EntryRun:
    """Position of messages that were stored before: the id (-1, -1)."""
    return EntryRun(-1, -1, b"", array("I", bytes(4 * (count + 1))))


def _ignore(future: "asyncio.Future[EntryRun]") -> None:
    """Ignores the result of a future that no caller awaits any more; its failure is reported elsewhere."""
    if not future.cancelled():
        future.exception()
