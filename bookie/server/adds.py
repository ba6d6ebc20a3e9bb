"""The adds of one connection: runs, mixes and single ones, handed to the bookie and answered when they are durable.

Counts the bytes under way, which the connection bounds. Knows nothing of sockets.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from bookie.reads.reading import last_add_confirmed
from bookie.server.confirmations import Confirmations
from bookie.server.operations import Peer
from bookie.server.request_stats import RequestStats
from bookie.striped_bookie import AnyBookie
from ports.logs import line
from ports.loop.promise import listen
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.bookie.requests import Add, Answers
from wire.bookie.runs import AddMix, AddRun
from wire.kernels.bookie_requests import take_adds, take_mix
from wire.kernels.bookie_responses import plain_responses
from wire.kernels.mixes import mix_responses, runs_of
from wire.run import EntryMix, EntryRun

RUN_ENTRIES_MAX = 1 << 16
ADD_BYTES_MAX = 16 * 1024 * 1024
ENTRY_OVERHEAD_BYTES = 512
"""Memory that an add needs beside its bytes; counted so that very many small adds are bounded too."""
RECOVERY = 2
log = logging.getLogger("bookie.server")


class Adds:
    """`on_load` is called whenever `load` has come to 1, or down to a half."""

    def __init__(
        self,
        bookie: AnyBookie,
        confirmations: Confirmations,
        peer: Peer,
        frame_bytes_max: int,
        on_load: Callable[[], None],
        stats: RequestStats,
    ) -> None:
        self._bookie = bookie
        self._confirmations = confirmations
        self._peer = peer
        self._frame_bytes_max = frame_bytes_max
        self._on_load = on_load
        self._stats = stats
        self._now = stats.now
        self._mixing = bookie.stripes[0] if len(bookie.stripes) == 1 else None
        """Several stripes each have their own journal: what alternates among them cannot be written together."""
        self._bytes = 0

    @property
    def load(self) -> float:
        """1: as much as may be under way; 0: none is."""
        return self._bytes / ADD_BYTES_MAX

    def take(self, buffer: memoryview, at: int, end: int) -> int:
        """Begin the leading plain adds of version 2 in buffer[at:end]: the position after them, `at` when there is none."""
        if self._mixing is not None:
            mix = take_mix(buffer, at, end, self._frame_bytes_max, self._mixing.writable_ledgers)
            if mix is not None:
                began = self._began(mix.entries)
                future = self._mixing.add_mix(mix.entries, mix.master_key)
                listen(future, partial(self._mix_added, began, mix))
                return mix.end
        run = take_adds(buffer, at, end, RUN_ENTRIES_MAX, self._frame_bytes_max)
        if run is None:
            return at
        self._add_run(run)
        return run.end

    def add(self, add: Add, answers: Answers) -> None:
        """One, of any version."""
        began = self._began(add.entries)
        future = self._bookie.add(add.entries, add.master_key, recovery=add.recovery)
        listen(future, partial(self._added, began, add.entries, answers))

    def _add_run(self, run: AddRun) -> None:
        began = self._began(run.entries)
        future = self._bookie.add(run.entries, run.master_key, recovery=bool(run.header & RECOVERY))
        listen(future, partial(self._run_added, began, run))

    def _added(self, began: float, entries: EntryRun, answers: Answers, future: "asyncio.Future[None]") -> None:
        code = self._ended(began, entries, future.exception())
        self._peer.answer(answers.added(code, entries.ledger_id, entries.first_entry_id))

    def _run_added(self, began: float, run: AddRun, future: "asyncio.Future[None]") -> None:
        entries = run.entries
        code = self._ended(began, entries, future.exception())
        header = run.header & 0xFFFF0000
        self._peer.answer(plain_responses(header, code, entries.ledger_id, entries.first_entry_id, entries.count))

    def _mix_added(self, began: float, mix: AddMix, future: "asyncio.Future[None]") -> None:
        failure = future.exception()
        if isinstance(failure, NotAsOne):
            self._bytes -= _cost(mix.entries)
            for run in runs_of([mix.entries]):
                self._add_run(AddRun(mix.header, mix.master_key, run, mix.end))
        else:
            code = self._ended(began, mix.entries, failure)
            self._peer.answer(mix_responses(mix.entries, mix.header & 0xFFFF0000, code))

    def _began(self, entries: EntryRun | EntryMix) -> float:
        """Time of the begin."""
        before = self._bytes
        self._bytes = before + _cost(entries)
        if self._bytes >= ADD_BYTES_MAX > before:
            self._on_load()
        return self._now()

    def _ended(self, began: float, entries: EntryRun | EntryMix, failure: BaseException | None) -> BookieCode:
        before = self._bytes
        self._bytes = before - _cost(entries)
        if before > ADD_BYTES_MAX // 2 >= self._bytes:
            self._on_load()
        self._stats.adds.record(self._now() - began, entries.count, has_failed=failure is not None)
        if failure is None:
            self._stats.written_bytes += entries.size_bytes
            if self._confirmations.are_waited_for:
                self._confirm(entries)
            return BookieCode.EOK
        if isinstance(failure, BookieError):
            log.info(line("adding entries refused", peer=self._peer.address, reason=failure, entries=entries.count))
            return failure.code
        log.error(line("adding entries failed", peer=self._peer.address), exc_info=failure)
        return BookieCode.EIO

    def _confirm(self, entries: EntryRun | EntryMix) -> None:
        for run in runs_of([entries]) if isinstance(entries, EntryMix) else (entries,):
            if self._confirmations.is_waited_for(run.ledger_id):
                self._confirmations.advanced(run.ledger_id, last_add_confirmed(run))


def _cost(entries: EntryRun | EntryMix) -> int:
    offsets = entries.offsets
    return offsets[-1] - offsets[0] + (len(offsets) - 1) * ENTRY_OVERHEAD_BYTES
