"""ReplicatedAdds: the driver of `quorum_tracker.QuorumTracker`. Hands runs to the bookies of an ensemble and replaces those
that fail.

A run goes to its bookies at once; its future completes when the tracker confirms its last entry, so that futures complete
in the order of the entries however the bookies' answers come. The first failure that no replacement heals fails every
pending and later append, in order. `Ensembles` chooses the replacements, and stores the new ensemble before it gets adds.
Bounds: OUTSTANDING_... limit the adds sent before they are confirmed; further ones wait, up to WAITING_RUNS_MAX, and then are
refused. One change of the ensemble at a time, within the metadata store's time limit; where no bookie could take a place, the
search rests for a while. A client's time-out ends requests to a bookie that hangs, and `quorum_timeout_seconds`, if it is set,
an append that no quorum takes.

`CountedAdds` owns the adds under way, and the parts of a ledger without failures.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from bookkeeper.ledgers import LedgerClosed, LedgerError, LedgerFenced
from bookkeeper.ports import BookieClient, MixingBookie
from bookkeeper.write.counted_adds import PLAIN_RULES, AddRules, CountedAdds
from bookkeeper.write.parts import AppendedRun, Part, Route
from bookkeeper.write.quorum_tracker import Quorum, Send, Verdict
from ports.loop.promise import listen, promises
from ports.loop.queue_on_demand import queued, without_first
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

WAITING_RUNS_MAX = 100_000
LOOK_AGAIN_SECONDS = 1.0
LOOK_AGAIN_SECONDS_MAX = 60.0
"""After so long a place that no bookie could take may have a change again; each time twice as long."""


class Ensembles(Protocol):
    """Source of replacement bookies, and the record of each ensemble."""

    def with_replacements(self, first_entry_id: int, ensemble: tuple[str, ...], failed: Sequence[int]) -> tuple[str, ...]:
        """Ensemble for the entries from `first_entry_id` on, with others at as many of the failed indexes as can be
        had; the same one when there is none."""

    async def store(self, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        """Durably: the bookies of the entries from `first_entry_id` on. LedgerError, LedgerFenced: nothing may be sent to
        them."""

    def on_failed(self, bookie: str) -> None:
        """A bookie is to be replaced: one failure, however many adds were under way. Not for a refusal that is final."""


@dataclass(frozen=True, slots=True)
class WrittenLedger:
    """Ledger that adds go to, and its bookies at first."""

    ledger_id: int
    quorum: Quorum
    ensemble: tuple[str, ...]
    master_key: bytes


class ReplicatedAdds(CountedAdds):
    """The adds of one ledger by one client. `bookies` are looked up when they join."""

    __slots__ = (
        "_bookies",
        "_changing",
        "_clients",
        "_ensemble",
        "_ensembles",
        "_is_finished",
        "_look_again_at",
        "_look_again_seconds",
        "_master_key",
        "_promise",
        "_recovery",
        "_unheeded",
        "_waiting",
    )

    def __init__(
        self,
        ledger: WrittenLedger,
        bookies: Mapping[str, BookieClient],
        ensembles: Ensembles,
        rules: AddRules = PLAIN_RULES,
        *,
        last_confirmed: int = -1,
        recovery: bool = False,
    ) -> None:
        super().__init__(ledger.ledger_id, ledger.quorum, last_confirmed, rules)
        self._ensemble, self._bookies = ledger.ensemble, bookies
        self._ensembles, self._master_key, self._recovery = ensembles, ledger.master_key, recovery
        self._promise = promises(self._loop)
        self._clients = {seat: self._client(name) for seat, name in enumerate(ledger.ensemble)}
        self.route = self._new_route()
        self._waiting: deque[Part] | None = None
        """Pending parts that the tracker does not know yet."""
        self._look_again_at, self._look_again_seconds = 0.0, LOOK_AGAIN_SECONDS
        self._changing: asyncio.Task[None] | None = None
        self._unheeded: BookieError | None = None
        """The newest failure that found a change under way."""
        self._is_finished = False

    @property
    def clients(self) -> Sequence[BookieClient]:
        """Clients of the ensemble, in no order."""
        return list(self._clients.values())

    def append(self, run: EntryRun) -> "asyncio.Future[EntryRun]":
        """Entries in order, each once. Fails with LedgerError: LedgerFenced, or LedgerClosed after the first failure."""
        future: asyncio.Future[EntryRun] = self._promise()
        if self.failure is not None:
            future.set_exception(self._refusal(self.failure))
            return future
        if self._counts:
            self._track_all()
        assert run.first_entry_id == self._next_entry_id, f"entry {run.first_entry_id} of {self._ledger_id} is out of turn"
        appended = AppendedRun(run, future, self._loop.time())
        self._pending = queued(self._pending, appended)
        if self._waiting or not self._has_room(appended):
            self._waiting = queued(self._waiting, appended)
        else:
            self._send_run(appended)
        if self._quorum_timeout and self._late_timer is None:
            self._start_timer()
        return future

    @property
    def is_full(self) -> bool:
        """No more shall be appended now."""
        return self._waiting is not None and len(self._waiting) >= WAITING_RUNS_MAX

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        super().check_invariants()
        waiting = self._waiting or ()
        assert len(waiting) <= len(self._pending or ())
        if self.failure is None:
            sent = list(self._pending or ())
            del sent[len(sent) - len(waiting) :]
            assert self._outstanding_entries == sum(part.count for part in sent)
            assert self._outstanding_bytes == sum(part.size_bytes for part in sent)
            assert not (waiting and self._has_room(waiting[0])), "an append waits though there is room"
            assert not (self._counts and (waiting or self._changing is not None))
        else:
            assert not self._pending, "every append was told of the failure"

    def _send_waiting(self) -> None:
        while self._waiting and self.failure is None and self._has_room(self._waiting[0]):
            appended = self._waiting[0]
            self._waiting = without_first(self._waiting)
            self._send_run(appended)

    def _send_run(self, appended: Part) -> None:
        run = appended.run()
        self._outstanding_entries += appended.count
        self._outstanding_bytes += appended.size_bytes
        for send in self._tracker.on_append(run.first_entry_id, appended.count):
            self._send(send, run)

    async def finish(self) -> None:
        """Wait until nothing is pending and no change is under way; later answers are ignored. Raises the failure."""
        if self._pending:
            drained = self._loop.create_future()
            self._when_drained.append(drained)
            await drained
        self._is_finished = True
        self._stop_timer()
        if self._changing is not None:
            await asyncio.wait([self._changing])
        if self.failure is not None:
            raise self.failure

    def abandon(self) -> None:
        """Abandon all adds: their callers do not wait any more."""
        self._is_finished = True
        self._stop_timer()
        if self._changing is not None:
            self._changing.cancel()

    def _send(self, send: Send, run: EntryRun) -> None:
        part = run if self._has_whole_runs else run.entries(send.first_entry_id, send.count)
        for seat in send.seats:
            answer = self._clients[seat].add(part, self._master_key, recovery=self._recovery)
            listen(answer, partial(self._on_answer, send.piece, seat))

    def _on_answer(self, piece: int, seat: int, answer: "asyncio.Future[None]") -> None:
        error = answer.exception() if not answer.cancelled() else BookieError(BookieCode.EIO, self._ledger_id, "cancelled")
        if error is not None:
            if self._counts:
                self._track_all()
            self._on_error(piece, seat, error)
        elif self._tracker.on_stored(piece, seat):
            self._complete()

    def _on_error(self, piece: int, seat: int, error: BaseException) -> None:
        if isinstance(error, BookieError):
            self._on_failed(piece, seat, error)
        else:
            self._fail_all(LedgerError(f"ledger {self._ledger_id}: {error!r}"))
            raise error

    def _on_failed(self, piece: int, seat: int, error: BookieError) -> None:
        index = self._tracker.index_of(seat)
        if index is None or self._is_finished:
            return
        if self._look_again_at and self._loop.time() >= self._look_again_at:
            self._look_again_at = 0.0
            self._tracker.on_patience_ended()
        match self._tracker.on_failed(piece, seat, error.code):
            case Verdict.ENDED:
                self._fail(error)
            case Verdict.CHANGE:
                self._ensembles.on_failed(self._ensemble[index])
                if self._changing is None:
                    self._replace(error)
                else:
                    self._unheeded = error

    def _new_route(self) -> Route | None:
        if self._recovery or not self._has_whole_runs:
            return None
        seats = tuple(self._tracker.seats)
        takers = []
        for seat in seats:
            bookie = self._clients[seat]
            taker = bookie.mixing_for(self._ledger_id) if isinstance(bookie, MixingBookie) else None
            if taker is None:
                return None
            takers.append(taker)
        return Route(self._master_key, seats, tuple(takers))

    def _may_track(self) -> bool:
        return not self._waiting and self.failure is None and self._changing is None and self._tracker.takes_more

    # Changing the ensemble

    def _replace(self, error: BookieError) -> None:
        """Replace bookies; at once when there is none: a cluster without spare bookies must not pause at each failure."""
        leaving = self._tracker.leaving
        if self._with_replacements(leaving) == self._ensemble:
            self._keep(leaving, error)
            return
        self._changing = self._loop.create_task(self._change(error), name=f"ensemble change of ledger {self._ledger_id}")
        self._changing.add_done_callback(self._on_change_ended)

    async def _change(self, error: BookieError) -> None:
        while (leaving := self._tracker.leaving) and self.failure is None and not self._is_finished:
            ensemble = self._with_replacements(leaving)
            if ensemble == self._ensemble:
                self._keep(leaving, error)
                return
            try:
                await self._ensembles.store(self._tracker.last_confirmed + 1, ensemble)
            except LedgerError as failure:
                self._fail_all(failure)
                return
            if self.failure is None:
                self._apply(ensemble, leaving, error)

    def _apply(self, ensemble: tuple[str, ...], leaving: Sequence[int], error: BookieError) -> None:
        index_of = self._tracker.index_of
        replaced = [
            seat for seat in leaving if (index := index_of(seat)) is not None and ensemble[index] != self._ensemble[index]
        ]
        self._ensemble = ensemble
        self._look_again_seconds = LOOK_AGAIN_SECONDS
        kept = [seat for seat in leaving if seat not in replaced]
        changed = self._tracker.on_changed(replaced, kept)
        if kept:
            self._look_again_later()
        for seat in replaced:
            del self._clients[seat]
        for index, seat in changed.seats.items():
            self._clients[seat] = self._client(ensemble[index])
        self.route = self._new_route()
        self._send_again(changed.sends)
        self._settle(error)

    def _send_again(self, sends: Sequence[Send]) -> None:
        parts = iter(list(self._pending or ()))
        part = next(parts, None)
        for send in sends:
            while part is not None and part.last_entry_id < send.first_entry_id:
                part = next(parts, None)
            assert part is not None
            self._send(send, part.run())

    def _with_replacements(self, leaving: Sequence[int]) -> tuple[str, ...]:
        indexes = [index for seat in leaving if (index := self._tracker.index_of(seat)) is not None]
        return self._ensembles.with_replacements(self._tracker.last_confirmed + 1, self._ensemble, indexes)

    def _keep(self, seats: Sequence[int], error: BookieError) -> None:
        self._tracker.on_kept(seats)
        self._look_again_later()
        self._settle(error)

    def _look_again_later(self) -> None:
        self._look_again_at = self._loop.time() + self._look_again_seconds
        self._look_again_seconds = min(2 * self._look_again_seconds, LOOK_AGAIN_SECONDS_MAX)

    def _settle(self, error: BookieError) -> None:
        """Carry out the tracker's decision about all pending adds."""
        self._complete()
        if self._tracker.failure is not None:
            self._fail(error)

    def _on_change_ended(self, change: "asyncio.Task[None]") -> None:
        self._changing = None
        if change.cancelled():
            self._fail_all(LedgerError(f"ledger {self._ledger_id}: the change of its ensemble was cancelled"))
        elif (error := change.exception()) is not None:
            self._fail_all(LedgerError(f"ledger {self._ledger_id}: {error!r}"))
            raise error
        elif self._unheeded is not None and self._tracker.leaving and self.failure is None and not self._is_finished:
            self._replace(self._unheeded)  # it failed after the change had looked for the last time

    # Completing and failing

    def _complete(self) -> None:
        assert not self._counts, "what was counted since would be taken back"
        self.last_confirmed = last = self._tracker.last_confirmed
        while self._pending and self._pending[0].last_entry_id <= last:
            self._take_first().stored()
        if self._waiting:
            self._send_waiting()
        if self._pending:
            return
        is_well = self.failure is None and self._changing is None and self._tracker.is_at_rest
        self._counts = self._has_whole_runs and is_well
        if self._when_drained:
            self._tell_drained()

    def _fail(self, error: BookieError) -> None:
        what = f"ledger {self._ledger_id} at entry {self._tracker.last_confirmed + 1}: {error}"
        self._fail_all(LedgerFenced(what) if error.code == BookieCode.EFENCED else LedgerError(what))

    def _fail_all(self, failure: LedgerError) -> None:
        if self._counts:
            self._track_all()
        if self.failure is None:
            self.failure = failure
        self._waiting = None
        self._stop_timer()
        failed, self._pending = self._pending or (), None
        for part in failed:
            part.fail(self._loop, type(failure)(*failure.args))
        self._tell_drained()

    def _refusal(self, failure: LedgerError) -> LedgerError:
        if isinstance(failure, LedgerFenced):
            return LedgerFenced(*failure.args)
        return LedgerClosed(f"ledger {self._ledger_id} takes no more entries: {failure}")

    def _client(self, name: str) -> BookieClient:
        return self._bookies.get(name) or AbsentBookie(name)


class AbsentBookie:
    """A bookie without a known address: all requests fail. Satisfies `BookieClient`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(self._error(run.ledger_id))
        return future

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        raise self._error(ledger_id)

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        raise self._error(ledger_id)

    async def last_entry_id(self, ledger_id: int) -> int:
        raise self._error(ledger_id)

    def _error(self, ledger_id: int) -> BookieError:
        return BookieError(BookieCode.EIO, ledger_id, f"{self._name} is not available")
