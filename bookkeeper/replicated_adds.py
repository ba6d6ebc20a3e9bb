"""ReplicatedAdds: the driver of `ensemble.QuorumTracker`. Hands runs to the bookies of an ensemble and replaces those that
fail.

A run goes to its bookies at once; its future completes when the tracker confirms its last entry, so that futures complete
in the order of the entries however the bookies' answers come. The first failure that no replacement heals fails every
pending and later append, in order. Whom to take, and where the new ensemble is stored before anything is sent to it, is the
`Ensembles`' part. Bounds: appends in flight are the caller's; every one is held here by reference until it is confirmed.
One change of the ensemble at a time, each with a time limit that the metadata store has; a bookie that hangs is ended by
its client's time-out.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from bookkeeper.ensemble import Quorum, QuorumTracker, Send, Verdict
from bookkeeper.ledgers import LedgerClosed, LedgerError, LedgerFenced
from bookkeeper.ports import BookieClient
from wire.bookie_codes import BookieCode, BookieError
from wire.run import EntryRun


class Ensembles(Protocol):
    """Where bookies come from, and where it is written down who has what."""

    def with_replacements(self, first_entry_id: int, ensemble: tuple[str, ...], failed: Sequence[int]) -> tuple[str, ...]:
        """For the entries from `first_entry_id` on: the ensemble with others at as many of the failed indexes as can be
        had; the same one when there is nobody."""

    async def store(self, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        """Durably: the bookies of the entries from `first_entry_id` on. LedgerError, LedgerFenced: nothing may be sent to
        them."""

    def on_failed(self, bookie: str) -> None:
        """It is to be replaced: one failure, however many adds were under way. Not for a refusal that is final."""


class ReplicatedAdds:
    """The adds of one ledger by one client. `bookies` are looked up when they join."""

    def __init__(
        self,
        ledger_id: int,
        quorum: Quorum,
        ensemble: tuple[str, ...],
        bookies: Mapping[str, BookieClient],
        ensembles: Ensembles,
        master_key: bytes,
        *,
        last_confirmed: int = -1,
        recovery: bool = False,
        delays_change: bool = False,
    ) -> None:
        self.failure: LedgerError | None = None
        self._ledger_id, self._ensemble, self._bookies = ledger_id, ensemble, bookies
        self._ensembles, self._master_key, self._recovery = ensembles, master_key, recovery
        self._loop = asyncio.get_running_loop()
        self._tracker = QuorumTracker(quorum, last_confirmed, delays_change=delays_change)
        self._has_whole_runs = not quorum.is_striped
        self._clients = {seat: self._client(name) for seat, name in enumerate(ensemble)}
        self._pending: deque[tuple[EntryRun, asyncio.Future[EntryRun]]] = deque()
        self._changing: asyncio.Task[None] | None = None
        self._is_finished = False
        self._when_drained: list[asyncio.Future[None]] = []

    @property
    def last_confirmed(self) -> int:
        return self._tracker.last_confirmed

    def append(self, run: EntryRun) -> "asyncio.Future[EntryRun]":
        """Entries in order, each once. Fails with LedgerError: LedgerFenced, or LedgerClosed after the first failure."""
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        if self.failure is not None:
            future.set_exception(self._refusal(self.failure))
            return future
        self._pending.append((run, future))
        for send in self._tracker.on_append(run.first_entry_id, len(run.offsets) - 1):
            self._send(send, run)
        return future

    async def finish(self) -> None:
        """Until nothing is pending and no change is under way; what comes after that is not listened to. Raises the failure."""
        if self._pending:
            drained = self._loop.create_future()
            self._when_drained.append(drained)
            await drained
        self._is_finished = True
        if self._changing is not None:
            await asyncio.wait([self._changing])
        if self.failure is not None:
            raise self.failure

    def abandon(self) -> None:
        """Nobody waits any more."""
        self._is_finished = True
        if self._changing is not None:
            self._changing.cancel()

    def _send(self, send: Send, run: EntryRun) -> None:
        part = run if self._has_whole_runs else run.entries(send.first_entry_id, send.count)
        for seat in send.seats:
            answer = self._clients[seat].add(part, self._master_key, recovery=self._recovery)
            answer.add_done_callback(partial(self._on_answer, send.piece, seat))

    def _on_answer(self, piece: int, seat: int, answer: "asyncio.Future[None]") -> None:
        error = answer.exception() if not answer.cancelled() else BookieError(BookieCode.EIO, self._ledger_id, "cancelled")
        if error is None:
            if self._tracker.on_stored(piece, seat):
                self._complete()
        elif isinstance(error, BookieError):
            self._on_failed(piece, seat, error)
        else:
            self._fail_all(LedgerError(f"ledger {self._ledger_id}: {error!r}"))
            raise error

    def _on_failed(self, piece: int, seat: int, error: BookieError) -> None:
        index = self._tracker.index_of(seat)
        if index is None or self._is_finished:
            return
        match self._tracker.on_failed(piece, seat, error.code):
            case Verdict.ENDED:
                self._fail(error)
            case Verdict.CHANGE:
                self._ensembles.on_failed(self._ensemble[index])
                if self._changing is None:
                    self._replace(error)

    # Changing the ensemble

    def _replace(self, error: BookieError) -> None:
        """At once when there is nobody: a cluster that has no spare bookies shall not pause at each failure."""
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
        changed = self._tracker.on_changed(replaced, [seat for seat in leaving if seat not in replaced])
        for seat in replaced:
            del self._clients[seat]
        for index, seat in changed.seats.items():
            self._clients[seat] = self._client(ensemble[index])
        self._send_again(changed.sends)
        self._settle(error)

    def _send_again(self, sends: Sequence[Send]) -> None:
        runs = iter([run for run, _ in self._pending])
        run = next(runs, None)
        for send in sends:
            while run is not None and run.last_entry_id < send.first_entry_id:
                run = next(runs, None)
            assert run is not None
            self._send(send, run)

    def _with_replacements(self, leaving: Sequence[int]) -> tuple[str, ...]:
        indexes = [index for seat in leaving if (index := self._tracker.index_of(seat)) is not None]
        return self._ensembles.with_replacements(self._tracker.last_confirmed + 1, self._ensemble, indexes)

    def _keep(self, seats: Sequence[int], error: BookieError) -> None:
        self._tracker.on_kept(seats)
        self._settle(error)

    def _settle(self, error: BookieError) -> None:
        """What the tracker decided about all that is pending."""
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

    # Completing and failing

    def _complete(self) -> None:
        pending, last = self._pending, self._tracker.last_confirmed
        while pending and pending[0][0].last_entry_id <= last:
            run, future = pending.popleft()
            if not future.done():
                future.set_result(run)
        if self._when_drained and not pending:
            self._tell_drained()

    def _fail(self, error: BookieError) -> None:
        what = f"ledger {self._ledger_id} at entry {self._tracker.last_confirmed + 1}: {error}"
        self._fail_all(LedgerFenced(what) if error.code == BookieCode.EFENCED else LedgerError(what))

    def _fail_all(self, failure: LedgerError) -> None:
        if self.failure is None:
            self.failure = failure
        while self._pending:
            _, future = self._pending.popleft()
            if not future.done():
                future.set_exception(type(failure)(*failure.args))
        self._tell_drained()

    def _tell_drained(self) -> None:
        waiting, self._when_drained = self._when_drained, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def _refusal(self, failure: LedgerError) -> LedgerError:
        if isinstance(failure, LedgerFenced):
            return LedgerFenced(*failure.args)
        return LedgerClosed(f"ledger {self._ledger_id} takes no more entries: {failure}")

    def _client(self, name: str) -> BookieClient:
        return self._bookies.get(name) or AbsentBookie(name)


class AbsentBookie:
    """A bookie that nobody knows where to find: everything fails. Satisfies `BookieClient`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(self._error(run.ledger_id))
        return future

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        raise self._error(ledger_id)

    async def fence(self, ledger_id: int, master_key: bytes) -> int:
        raise self._error(ledger_id)

    async def last_entry_id(self, ledger_id: int) -> int:
        raise self._error(ledger_id)

    def _error(self, ledger_id: int) -> BookieError:
        return BookieError(BookieCode.EIO, ledger_id, f"{self._name} is not available")
