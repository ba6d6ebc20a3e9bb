"""Deduplication of one topic: performs the decisions of `deduplication`, and keeps its state in a cursor.

Owns the durable cursor `pulsar.dedup`: its properties are the highest persisted sequence id of each producer name, its mark is
the entry up to which they are true (Apache's format, so that either software goes on from the other's). Later entries are read
again when the topic is loaded; a snapshot is due after so many entries, after some time, and at the end, so that these are
never many. Turning on and off is one task for any number of requests (MessageDeduplication.checkStatus). Messages get no
verdict until all is known, but all ids are recorded. Producers are admitted when all is known, and when messages under way of
their predecessors of the same name are settled: the last sequence id that they get is then certain.
"""

import asyncio
import logging
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Protocol

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import LATEST, ManagedCursor, ManagedLedger, ManagedLedgerError
from ports.clock import Clock
from ports.logs import line
from ports.loop.promise import listen
from wire.int64 import signed
from wire.position import Position
from wire.run import EntryRun, SendRun

from ...policies.in_force import PoliciesInForce
from ...policies.topic_settings import TopicSettings
from .deduplication import Chunk, Deduplication, Verdict
from .deduplication_runs import Piece, judged, message_of, metadata_of, noted

CURSOR = "pulsar.dedup"
REPLICATORS = "pulsar.repl."
"""Producers that bring other producers' messages, whose ids are not their own: they are left alone."""
_READ_ENTRIES_MAX = 1000
_READ_BYTES_MAX = 4 << 20
_SNAPSHOT_SECONDS_MIN = 1.0
"""A cursor is not stored more often anyway; with many producers a snapshot is work."""
_REFUSALS = {
    Verdict.UNKNOWN: (ServerError.PERSISTENCE, "Whether it, or one before it, is stored is not known yet: send it again"),
    Verdict.STRADDLES: (
        ServerError.NOT_ALLOWED,
        "A part of the batch is stored already: send the messages above the last sequence id in a batch of their own",
    ),
}

_log = logging.getLogger(__name__)


class Status(StrEnum):
    """Apache's words in a topic's stats."""

    DISABLED = "Disabled"
    RECOVERING = "Recovering"
    ENABLED = "Enabled"
    REMOVING = "Removing"
    FAILED = "Failed"


class DeduplicationHost(Protocol):
    """Part of a topic that deduplication needs."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    def producer_names(self) -> Iterable[str]: ...
    def last_appends(self) -> "list[asyncio.Future[EntryRun]]":
        """The youngest of each producer that is not answered."""


class TopicDeduplication:
    """Deduplication of one topic. `is_active`: published messages have to pass here."""

    def __init__(self, host: DeduplicationHost, policies: PoliciesInForce, settings: TopicSettings, clock: Clock) -> None:
        self.status = Status.DISABLED
        self.is_active = False
        self._host = host
        self._policies = policies
        self._settings = settings
        self._clock = clock
        self._known = Deduplication(settings.broker_deduplication_max_number_of_producers)
        self._cursor: ManagedCursor | None = None
        self._position: Position | None = None
        """The last entry that is known of."""
        self._loop = asyncio.get_running_loop()
        self._changing: asyncio.Task[None] | None = None
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._snapshot_due = 0.0
        """Time of the timer; uvloop's timers that are due at once do not say it."""
        self._purge_timer: asyncio.TimerHandle | None = None
        self._snapshot_at = 0.0
        self._settled: dict[str, asyncio.Future[None]] = {}
        self._is_closed = False

    # on and off

    def policies_changed(self) -> None:
        """Begins the change that the policies ask for; it goes on by itself. A failed change is tried again."""
        if self._changing is None and not self._is_closed and not self._is_right():
            self._changing = self._loop.create_task(self._change())
            self._changing.add_done_callback(self._changed)
        elif self.status is Status.ENABLED:
            self._plan_snapshot()

    def _is_right(self) -> bool:
        if self._policies.current.deduplication_enabled:
            return self.status is Status.ENABLED
        return self.status is Status.DISABLED and CURSOR not in self._host.ledger.cursors

    async def _change(self) -> None:
        """Runs until the wanted state is reached; a failure ends it."""
        while not self._is_right():
            try:
                await (self._begin() if self._policies.current.deduplication_enabled else self._end())
            except ManagedLedgerError as error:
                self.status = Status.FAILED
                _log.warning(line("deduplication could not be turned on or off", topic=self._host.name, error=error))
                return

    def _changed(self, done: "asyncio.Task[None]") -> None:
        self._changing = None
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self.status = Status.FAILED
            _log.error(line("deduplication failed", topic=self._host.name), exc_info=error)

    async def _begin(self) -> None:
        self.status, self.is_active = Status.RECOVERING, True
        self._known = Deduplication(self._settings.broker_deduplication_max_number_of_producers)
        before = self._host.last_appends()
        self._cursor = cursor = await self._host.ledger.open_cursor(CURSOR, LATEST)
        if before:
            await asyncio.wait(before)
        self._known.restore(cursor.properties, self._clock.now_ms())
        self._position = cursor.mark_delete
        replayed = await self._replay(cursor)
        self.status = Status.ENABLED
        self._snapshot_at = self._loop.time()
        _log.info(line("deduplication on", topic=self._host.name, producers=self._known.count, entries_replayed=replayed))
        self._plan_snapshot()
        self._plan_purge()

    async def _replay(self, cursor: ManagedCursor) -> int:
        """Replays the entries after the snapshot; returns their number."""
        ledger, position, replayed = self._host.ledger, cursor.first_unacknowledged(), 0
        end = ledger.last_confirmed
        while position <= end:
            run = await ledger.read(position, _READ_ENTRIES_MAX, _READ_BYTES_MAX)
            if run is None:
                break
            self._replay_run(run, end)
            replayed += run.count
            position = ledger.next_position(Position(run.ledger_id, run.last_entry_id))
        return replayed

    def _replay_run(self, run: EntryRun, end: Position) -> None:
        known, now_ms = self._known, self._clock.now_ms()
        for entry_id in range(run.first_entry_id, run.last_entry_id + 1):
            metadata = metadata_of(run.payload(entry_id))
            if metadata is None or metadata.HasField("replicated_from"):
                known.unsaved_entries += 1
                continue
            message = message_of(metadata, run.payload(entry_id))
            known.replayed(metadata.producer_name, message.last, message.chunk, now_ms)
        self._position = max(self._position or end, min(end, Position(run.ledger_id, run.last_entry_id)))

    async def _end(self) -> None:
        self.status, self.is_active = Status.REMOVING, False
        self._stop_timers()
        self._cursor = None
        if CURSOR in self._host.ledger.cursors:
            await self._host.ledger.delete_cursor(CURSOR)
        self._known = Deduplication(self._settings.broker_deduplication_max_number_of_producers)
        self.status = Status.DISABLED
        _log.info(line("deduplication off", topic=self._host.name))

    async def ready(self) -> None:
        """Return when a producer can come on. BrokerError(PERSISTENCE) when the stored state cannot be read."""
        self.policies_changed()
        while self._changing is not None:
            await asyncio.wait([self._changing])
        if self._policies.current.deduplication_enabled and self.status is Status.FAILED:
            raise BrokerError(ServerError.PERSISTENCE, "The topic could not be read for deduplication: try again")

    async def settled(self, name: str) -> None:
        """Return when nothing of that producer name is on its way."""
        while self.is_active and self._known.in_flight(name):
            await asyncio.shield(self._settled.setdefault(name, self._loop.create_future()))

    # publishing

    def concerns(self, name: str) -> bool:
        """Whether messages of that producer have to pass here."""
        return self.is_active and not name.startswith(REPLICATORS)

    def last_sequence_id(self, name: str) -> int:
        """-1 without deduplication, and for a new producer."""
        return self._known.last_pushed(name) if self.is_active else -1

    def pieces(self, name: str, run: SendRun) -> list[Piece]:
        """The run, or its parts: those to be stored are then appended, each, and `appended` told of them."""
        if self.status is Status.ENABLED:
            return judged(self._known, name, run, self._clock.now_ms())
        return [noted(self._known, name, run, self._clock.now_ms())]

    def refused(self, name: str, run: SendRun) -> None:
        """A run that did not come through whole: the client sends it again."""
        self._known.refused(name, min(map(signed, run.sequence_ids)), self._clock.now_ms())

    def refusal(self, piece: Piece) -> tuple[ServerError, str]:
        """Error for a piece that is neither stored nor a repeat."""
        return _REFUSALS[piece.verdict]

    def appended(self, name: str, piece: Piece, future: "asyncio.Future[EntryRun]") -> None:
        """Called when a piece is on its way, before its receipt can be sent."""
        listen(future, partial(self._answered, self._known, name, piece.last, piece.chunk))

    def _answered(
        self, known: Deduplication, name: str, last: int, chunk: Chunk | None, future: "asyncio.Future[EntryRun]"
    ) -> None:
        if future.cancelled() or future.exception() is not None:
            known.failed(name)
        else:
            run = future.result()
            known.stored(name, last, chunk, run.count)
            if known is self._known and self.status is Status.ENABLED:
                self._position = Position(run.ledger_id, run.last_entry_id)
                self._plan_snapshot()
        if self._settled and not known.in_flight(name):
            self._tell_settled(name)

    def _tell_settled(self, name: str) -> None:
        waiting = self._settled.pop(name, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    # snapshots

    def _plan_snapshot(self) -> None:
        if self._is_closed:
            return
        known = self._known
        is_full = known.unsaved_entries >= self._settings.broker_deduplication_entries_interval
        if self._snapshot_timer is not None:
            if not is_full or self._snapshot_due <= self._snapshot_at + _SNAPSHOT_SECONDS_MIN:
                return
            self._snapshot_timer.cancel()
            self._snapshot_timer = None
        seconds = _SNAPSHOT_SECONDS_MIN if is_full else self._snapshot_seconds()
        if known.unsaved_entries and seconds > 0:
            self._snapshot_due = self._snapshot_at + seconds
            self._snapshot_timer = self._loop.call_at(self._snapshot_due, self._snapshot_fell_due)

    def _snapshot_seconds(self) -> int:
        """0: never by the clock."""
        if self._settings.broker_deduplication_snapshot_frequency_in_seconds <= 0:
            return 0
        return self._policies.current.deduplication_snapshot_seconds

    def _snapshot_fell_due(self) -> None:
        self._snapshot_timer = None
        self._take_snapshot()

    def _take_snapshot(self) -> None:
        """Takes a snapshot in the cursor's memory; the cursor stores itself, at a limited rate."""
        if self._cursor is None or self._position is None or self.status is not Status.ENABLED:
            return
        self._snapshot_at = self._loop.time()
        snapshot = self._known.snapshot()
        if self._position > self._cursor.mark_delete:
            self._cursor.acknowledge_cumulative(self._position, properties=snapshot)

    # unused names

    def producer_came(self, name: str) -> None:
        """Notes an admitted producer. One more name may be too many."""
        self._known.came(name)
        if self._known.has_too_many:
            self._purge()

    def _plan_purge(self) -> None:
        seconds = self._settings.broker_deduplication_producer_inactivity_timeout_minutes * 60 / 3
        if seconds > 0 and self._purge_timer is None:
            self._purge_timer = self._loop.call_later(seconds, self._purge_fell_due)

    def _purge_fell_due(self) -> None:
        self._purge_timer = None
        self._purge()
        self._plan_purge()

    def _purge(self) -> None:
        """Forgets unused names. Names in use are marked at each round, so one round more than the time allowed passes first."""
        minutes = self._settings.broker_deduplication_producer_inactivity_timeout_minutes
        now_ms = self._clock.now_ms()
        before_ms = now_ms - minutes * 60_000 * 4 // 3 if minutes > 0 else 0
        gone = self._known.purge(frozenset(self._host.producer_names()), before_ms, now_ms)
        if gone:
            _log.info(line("inactive producers removed from deduplication", topic=self._host.name, producers=gone))

    # the end

    def close(self) -> None:
        """The topic closes, and its cursors with it. Stores the known ids in the cursor."""
        if self._is_closed:
            return
        self._is_closed = True
        self._stop_timers()
        self._take_snapshot()
        self._cursor = None
        if self._changing is not None:
            self._changing.cancel()
        for name in list(self._settled):
            self._tell_settled(name)

    def _stop_timers(self) -> None:
        for timer in (self._snapshot_timer, self._purge_timer):
            if timer is not None:
                timer.cancel()
        self._snapshot_timer = self._purge_timer = None
