"""Appender: gives batches to the open ledger, begins a new one when there is none or it is full, and keeps the order.

Owns the writer of the open ledger and every append that is not answered. A ledger is made when an append needs one, so that an
idle topic costs nothing. While one is made, appends wait here in order (at most WAITING_BYTES_MAX).

After a failed append the fate of all that is not answered is unknown. The ledger is then recovered, as a new owner would: what
recovery found is stored and answered so, what it did not find is stored nowhere and goes to the next ledger, in order. Where
bookies take no next ledger, or several in a row take no entry, all that waits is refused, and later appends try again: a topic
is read while disks are full (ManagedLedgerImpl.clearPendingAddEntries). Only when recovery fails, or a batch is stored in part,
do the unanswered appends fail (then the managed ledger has to be opened again). Being fenced fails them at once. Nothing is
ever confirmed that no ledger confirmed, and nothing overtakes.
"""

import asyncio
import logging
from collections import deque

from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerStore, LedgerWriter
from bookkeeper.write.parts import Part
from managed_ledger.errors import AppendRefused, ManagedLedgerError, ManagedLedgerFenced
from ports.clock import Clock
from ports.logs import line
from ports.loop.promise import listen, promises
from ports.loop.queue_on_demand import queued, without_first
from wire.kernels.rows import AppenderRow
from wire.run import EntryBatch, EntryRun

from ..ledgers.metadata_driver import LogMetadata
from ..ledgers.sequence import LedgerSequence
from ..meters import LedgerMeters
from .answers import Append, again, answered_by, sent_again, tell_failure
from .creation_driver import LedgerCreation
from .listeners import AppendListeners, ConfirmedListeners, run_of
from .rollover import RolloverLimits
from .settling import settle

WAITING_BYTES_MAX = 64 << 20
"""Bytes that wait at most. At the bound the managed ledger fails: publishers are held back by their connections long before."""
FRUITLESS_LEDGERS_MAX = 3
"""Ledgers in a row that fail before they confirm anything; then appends are refused."""

NEVER = -1.0
"""An age that no ledger reaches, as a kernel compares it (`turns`)."""

_log = logging.getLogger(__name__)


class Appender(AppenderRow):
    """Appends of one managed ledger."""

    __slots__ = (
        "__weakref__", "_age_timer", "_clock", "_creation", "_entries_seen", "_idle_timer", "_last_error", "_ledgers",
        "_limits", "_loop", "_metadata", "_promise", "_refused", "_retiring", "_stamped", "_switched", "_switching",
        "_unheard", "_waiting_bytes",
    )  # fmt: skip

    _writer: LedgerWriter | None
    _listeners: ConfirmedListeners
    _meters: LedgerMeters
    _sequence: LedgerSequence
    _sent: "deque[Append | Part] | None"
    _waiting: "deque[Append] | None"

    def __init__(
        self,
        metadata: LogMetadata,
        ledgers: LedgerStore,
        creation: LedgerCreation,
        limits: RolloverLimits,
        clock: Clock,
        listeners: AppendListeners,
        meters: LedgerMeters,
    ) -> None:
        self._metadata = metadata
        self._sequence = metadata.sequence
        self._ledgers = ledgers
        self._creation = creation
        self._limits = limits
        self._clock = clock
        self._listeners, self._stamped = listeners.confirmed, listeners.stamped
        self._switched, self._refused = listeners.switched, listeners.refused
        self._meters = meters
        self._loop = asyncio.get_running_loop()
        self._promise = promises(self._loop)
        self._writer = None
        self._retiring: LedgerWriter | None = None
        self._is_broken = False
        """The last writer failed; its unanswered appends are in `_sent`."""
        self._unheard = 0
        """Answers of a broken writer that are still to come."""
        self._fruitless = 0
        self._last_error: BaseException | None = None
        self._opened_at = 0.0
        self._entries_max, self._size_bytes_max = limits.entries_max, limits.size_bytes_max
        self._age_s_min, self._age_s_max = limits.age_s_min, NEVER if limits.age_s_max is None else limits.age_s_max
        self._sent, self._waiting, self._waiting_bytes = None, None, 0
        self._heard: asyncio.Future[None] | None = None
        self._switching: asyncio.Task[None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._entries_seen = 0
        """Entries of the open ledger when the timer went off the last time."""
        self._is_idle = False
        self._is_ending = False
        self._refusal: ManagedLedgerError | None = None
        self._failure: ManagedLedgerError | None = None

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        future: asyncio.Future[EntryRun] = self._promise()
        writer = self._writer
        if self._refusal is not None:
            future.set_exception(again(self._refusal))
            return future
        append = Append(batch, future, self._loop.time())
        if writer is not None and not self._has_to_end(writer, append.began):
            self._send(writer, append)
        else:
            self._wait(append)
        return future

    def take_part(self, part: Part) -> bool:
        """Have the open ledger give it its ids. False: `append` has to decide."""
        writer = self._writer
        if writer is None or self._waiting or self._refusal is not None or self._has_to_end(writer, part.began):
            return False
        part.owner = self
        if not writer.take_part(part):
            return False
        self._sent = queued(self._sent, part)
        return True

    def writer_of(self, ledger_id: int) -> LedgerWriter | None:
        """Writer of a ledger that is not closed yet; reads of it go here, because opening would fence it."""
        for writer in (self._writer, self._retiring):
            if writer is not None and writer.ledger_id == ledger_id:
                return writer
        return None

    def refuse(self, refusal: ManagedLedgerError) -> None:
        """Refuse appends from now on. Earlier ones go on."""
        if self._refusal is None:
            self._refusal = refusal

    def fail(self, failure: ManagedLedgerError) -> None:
        """Fail all unanswered appends, in order, and all later ones."""
        if self._failure is not None:
            return
        self._failure = self._refusal = failure
        self._stop_timer()
        unanswered = [*(self._sent or ()), *(self._waiting or ())]
        self._sent, self._waiting, self._waiting_bytes = None, None, 0
        for append in unanswered:
            tell_failure(answered_by(append), failure)
        self._tell_heard()

    async def close(self) -> None:
        """Answer all appends, then close the open ledger. Call `refuse` first. Raises the failure."""
        self._is_ending = True
        while self._failure is None and (self._writer is not None or self._waiting or self._switching is not None):
            self._switch()
            assert self._switching is not None
            await asyncio.wait([self._switching])
        if self._failure is not None:
            raise again(self._failure)

    # answers

    def _send(self, writer: LedgerWriter, append: Append) -> None:
        self._sent = queued(self._sent, append)
        listen(writer.append(append.batch), self._answered)

    def _answered(self, answer: "asyncio.Future[EntryRun]") -> None:
        """Answers come in the order of the appends; after the first failure only failures come."""
        error = answer.exception()
        if error is not None or self._failure is not None:
            self._failed(error)
        else:
            self._stored(answer.result())

    def part_answered(self, part: Part, error: BaseException | None) -> None:
        """Handle an answer as `_answered` does."""
        if error is not None or self._failure is not None:
            self._failed(error)
        else:
            self._stored(part)

    def _failed(self, error: BaseException | None) -> None:
        """The first failure is the ledger's; those that follow are counted."""
        if self._failure is not None:
            return
        if self._unheard:
            self._unheard -= 1
            if not self._unheard:
                self._tell_heard()
        else:
            assert error is not None, "stored, after an append before it failed"
            self._broke(error)

    def _stored(self, run: EntryRun | Part) -> None:
        """`turns.store_parts` does the same for a part of which nothing else follows."""
        assert self._sent is not None
        append = self._sent[0]
        self._sent = without_first(self._sent)
        self._fruitless = 0
        now, count, payload_bytes = self._loop.time(), run.count, run.payload_bytes
        self._sequence.confirm(count, payload_bytes)
        self._meters.stored(now - append.began, count, payload_bytes)
        if self._stamped is not None:
            self._stamped(run_of(run))
        self._listeners.confirmed(run)
        answer = answered_by(append)
        if isinstance(answer, Part):
            answer.ledger_id, answer.first_entry_id = run.ledger_id, run.first_entry_id
            answer.source.part_stored(answer)
        elif not answer.done():
            answer.set_result(run_of(run))
        if not self._sent:
            if self._heard is not None:
                self._tell_heard()
            if self._writer is not None and self._has_to_end(self._writer, now):
                self._switch()

    def _broke(self, error: BaseException) -> None:
        _log.warning(line("append failed", managed_ledger=self._metadata.name, error=error))
        self._is_broken = True
        self._last_error = error
        self._unheard = len(self._sent or ()) - 1
        self._fruitless += 1
        if isinstance(error, LedgerFenced):
            self.fail(self._failure_of(error))
            return
        self._tell_heard()
        self._switch()

    def _tell_heard(self) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(None)

    def _failure_of(self, error: BaseException) -> ManagedLedgerError:
        what = f"{self._metadata.name}: {error}"
        return ManagedLedgerFenced(what) if isinstance(error, LedgerFenced) else ManagedLedgerError(what)

    # from one ledger to the next

    def _has_to_end(self, writer: LedgerWriter, now: float) -> bool:
        if self._is_broken or self._is_ending or self._is_idle:
            return True
        entries = writer.next_entry_id
        return entries > 0 and self._limits.is_full(entries, writer.length_bytes, now - self._opened_at)

    def _wait(self, append: Append) -> None:
        self._waiting = queued(self._waiting, append)
        self._waiting_bytes += len(append.batch.buffer)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self.fail(ManagedLedgerError(f"{self._metadata.name}: too much waits for a new ledger"))
        else:
            self._switch()

    def _switch(self) -> None:
        if self._switching is None:
            self._switching = self._loop.create_task(self._switch_ledgers())
            self._switching.add_done_callback(self._switch_ended)

    async def _switch_ledgers(self) -> None:
        try:
            while self._failure is None:
                if self._writer is not None:
                    if not self._has_to_end(self._writer, self._loop.time()):
                        break
                    await self._retire(self._writer)
                elif self._waiting:
                    await self._go_on()
                else:
                    break
        except ManagedLedgerError as error:
            _log.warning(line("managed ledger takes no more entries", managed_ledger=self._metadata.name, error=error))
            self.fail(error)
        except asyncio.CancelledError:
            self.fail(ManagedLedgerError(f"{self._metadata.name}: cancelled"))
            raise
        finally:
            self._switching = None

    def _switch_ended(self, done: "asyncio.Task[None]") -> None:
        """End appending after an unforeseen failure too: waiting appends would never be answered."""
        error = None if done.cancelled() else done.exception()
        if error is not None:
            _log.error(line("managed ledger takes no more entries", managed_ledger=self._metadata.name), exc_info=error)
            self.fail(ManagedLedgerError(f"{self._metadata.name}: {error!r}"))

    async def _retire(self, writer: LedgerWriter) -> None:
        """End the ledger after its last answer. Appends wait from now on."""
        self._writer, self._retiring = None, writer
        self._stop_timer()
        await self._all_heard()
        try:
            await writer.close()
        except LedgerFenced as error:
            raise self._failure_of(error) from error
        except LedgerError as error:
            _log.warning(line("ledger not closed", managed_ledger=self._metadata.name, ledger=writer.ledger_id, error=error))
            self._is_broken = True
        if self._is_broken:
            await self._recover(writer.ledger_id)
        self._retiring = None
        self._is_broken = self._is_idle = False
        empty = self._sequence.close_open(self._clock.now_ms())
        if empty is not None:
            self._metadata.mark_deleting(empty)

    async def _all_heard(self) -> None:
        while self._failure is None and (self._unheard if self._is_broken else self._sent):
            self._heard = self._loop.create_future()
            await self._heard

    async def _recover(self, ledger_id: int) -> None:
        """Recover a broken ledger, and answer the appends that it has stored."""
        try:
            reader = await self._ledgers.open(ledger_id)
        except LedgerError as error:
            raise self._failure_of(error) from error
        span = self._sequence.span(ledger_id)
        assert span is not None
        batches = [append.batch() if isinstance(append, Part) else append.batch for append in self._sent or ()]
        settlement = settle(ledger_id, span.entries, batches, reader.last_entry_id)
        for run in settlement.stored:
            self._stored(run)
        self._waiting = deque((*map(sent_again, settlement.again, self._sent or ()), *(self._waiting or ())))
        self._sent = None
        self._waiting_bytes += sum(len(batch.buffer) for batch in settlement.again)

    async def _go_on(self) -> None:
        """Give what waits to a new ledger, or refuse it: it is stored nowhere, and before it nothing is under way."""
        try:
            if self._fruitless >= FRUITLESS_LEDGERS_MAX:
                what = f"{self._fruitless} ledgers in a row took nothing, the last one: {self._last_error}"
                raise AppendRefused(f"{self._metadata.name}: {what}")
            await self._begin()
        except AppendRefused as refusal:
            self._fruitless = 0
            self._refuse_waiting(refusal)
        else:
            self._send_waiting()

    def _refuse_waiting(self, refusal: AppendRefused) -> None:
        assert not self._sent, "what follows them has no fate yet"
        if self._failure is not None:
            return
        if not self._refused():
            raise ManagedLedgerError(*refusal.args) from refusal
        refused, self._waiting = self._waiting or (), None
        _log.warning(line("appends refused", managed_ledger=self._metadata.name, appends=len(refused), error=refusal))
        self._waiting_bytes = 0
        for append in refused:
            tell_failure(append.answer, refusal)

    async def _begin(self) -> None:
        self._writer = await self._creation.begin()
        self._opened_at = self._loop.time()
        if self._limits.age_s_max is not None:
            self._age_timer = self._loop.call_later(self._limits.age_s_max, self._grew_old)
        self._entries_seen = 0
        self._watch_idleness()
        self._switched()

    def _grew_old(self) -> None:
        self._age_timer = None
        if self._writer is not None and self._has_to_end(self._writer, self._loop.time()):
            self._switch()

    def _watch_idleness(self) -> None:
        if self._limits.idle_s_max is not None:
            self._idle_timer = self._loop.call_later(self._limits.idle_s_max, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        """Close an idle ledger; the next append makes a new one (ManagedLedgerImpl.checkInactiveLedgerAndRollOver)."""
        if self._writer is None:
            return
        entries = self._writer.next_entry_id
        if 0 < entries == self._entries_seen:
            self._is_idle = True
            self._switch()
        else:
            self._entries_seen = entries
            self._watch_idleness()

    def _stop_timer(self) -> None:
        for timer in (self._age_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._age_timer = self._idle_timer = None

    def _send_waiting(self) -> None:
        writer = self._writer
        assert writer is not None
        while self._waiting and (self._is_ending or not self._has_to_end(writer, self._loop.time())):
            append = self._waiting.popleft()
            self._waiting_bytes -= len(append.batch.buffer)
            self._send(writer, append)
        self._waiting = self._waiting or None
