"""LedgerWriter: the driver of an open ledger. Owns ids, length, futures; what is confirmed is `ensemble.QuorumTracker`'s word.

An append seals the entries in place and hands the run to its bookies at once; its future completes when the tracker confirms
its last entry, so that futures complete in the order of the entries however the bookies' answers come. The first failure fails
every pending and later append, in order, and leaves the metadata alone: recovery decides what was stored.
Bounds: appends in flight are the caller's; every one is held here by reference until it is confirmed.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial

from bookkeeper.ensemble import Quorum, QuorumTracker
from bookkeeper.ledgers import LedgerClosed, LedgerError, LedgerFenced, NoSuchEntry
from bookkeeper.metadata_codec import LedgerMetadata, LedgerState
from bookkeeper.ports import BookieClient
from bookkeeper.reader import EntryReader
from bookkeeper.registry import LedgerRegistry, RegisteredLedger
from wire.bookie_codes import BookieCode, BookieError
from wire.digests import HEADER_BYTES
from wire.kernels.entries import seal
from wire.run import EntryBatch, EntryRun


class BookieLedgerWriter:
    """Satisfies `bookkeeper.ledgers.LedgerWriter`. `bookies` is the ensemble, in its order."""

    def __init__(
        self,
        registry: LedgerRegistry,
        ledger: RegisteredLedger,
        bookies: Sequence[BookieClient],
        reader: EntryReader,
        master_key: bytes,
    ) -> None:
        metadata = ledger.metadata
        self.ledger_id = ledger.ledger_id
        self._registry, self._ledger, self._bookies, self._reader = registry, ledger, bookies, reader
        self._master_key = master_key
        self._header_bytes = HEADER_BYTES[metadata.digest_type]
        self._loop = asyncio.get_running_loop()
        self._tracker = QuorumTracker(Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum))
        self._pending: deque[tuple[EntryRun, asyncio.Future[EntryRun]]] = deque()
        self._next_entry_id = 0
        self._length = 0
        self._failure: LedgerError | None = None
        self._closing: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] = self._loop.create_future()
        """Done when nothing is pending any more, once closing has begun."""

    @property
    def last_add_confirmed(self) -> int:
        return self._tracker.last_confirmed

    @property
    def length_bytes(self) -> int:
        return self._length

    @property
    def next_entry_id(self) -> int:
        return self._next_entry_id

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        if self._failure is not None or self._closing is not None:
            future.set_exception(self._refusal())
            return future
        tracker, first = self._tracker, self._next_entry_id
        count = len(batch.offsets) - 1
        if count < 1 or batch.header_bytes != self._header_bytes:
            raise ValueError(f"an append needs entries with {self._header_bytes} bytes of room before each")
        self._length = seal(batch, self.ledger_id, first, tracker.last_confirmed, self._length)
        self._next_entry_id = first + count
        run = EntryRun(self.ledger_id, first, batch.buffer, batch.offsets, batch.header_bytes)
        self._pending.append((run, future))
        for send in tracker.on_append(first, count):
            part = run.entries(send.first_entry_id, send.count)
            for bookie in send.bookies:
                answer = self._bookies[bookie].add(part, self._master_key)
                answer.add_done_callback(partial(self._on_answer, send.piece, bookie))
        return future

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        last = self._tracker.last_confirmed
        if not 0 <= first_entry_id <= last:
            raise NoSuchEntry(f"ledger {self.ledger_id} entry {first_entry_id}: confirmed up to {last}")
        return await self._reader.read(first_entry_id, min(count_max, last + 1 - first_entry_id), bytes_max)

    async def close(self) -> None:
        """Closing twice is fine, and gives the same answer."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._pending:
            await self._drained
        if self._failure is not None:
            raise self._failure
        self._ledger = await self._registry.update(self._ledger, self._closed_metadata)

    def _closed_metadata(self, metadata: LedgerMetadata) -> LedgerMetadata | None:
        last, length = self._tracker.last_confirmed, self._length
        if metadata.state == LedgerState.CLOSED and (metadata.last_entry_id, metadata.length_bytes) == (last, length):
            return None
        if metadata.state != LedgerState.OPEN:
            raise LedgerFenced(f"ledger {self.ledger_id} is {metadata.state.name}: another client recovers it")
        return metadata.closed(last, length)

    def _on_answer(self, piece: int, bookie: int, answer: "asyncio.Future[None]") -> None:
        error = answer.exception() if not answer.cancelled() else BookieError(BookieCode.EIO, self.ledger_id, "cancelled")
        if error is None:
            if self._tracker.on_stored(piece, bookie):
                self._complete()
        elif isinstance(error, BookieError):
            if self._tracker.on_failed(piece, bookie, error.code):
                self._fail(error)
        else:
            self._fail_all(LedgerError(f"ledger {self.ledger_id}: {error!r}"))
            raise error

    def _complete(self) -> None:
        pending, last = self._pending, self._tracker.last_confirmed
        while pending and pending[0][0].last_entry_id <= last:
            run, future = pending.popleft()
            if not future.done():
                future.set_result(run)
        if not pending:
            self._tell_drained()

    def _fail(self, error: BookieError) -> None:
        what = f"ledger {self.ledger_id} at entry {self._tracker.last_confirmed + 1}: {error}"
        failure = LedgerFenced(what) if error.code == BookieCode.EFENCED else LedgerError(what)
        self._fail_all(failure)

    def _fail_all(self, failure: LedgerError) -> None:
        if self._failure is None:
            self._failure = failure
        while self._pending:
            _, future = self._pending.popleft()
            if not future.done():
                future.set_exception(type(failure)(*failure.args))
        self._tell_drained()

    def _tell_drained(self) -> None:
        if self._closing is not None and not self._drained.done():
            self._drained.set_result(None)

    def _refusal(self) -> LedgerError:
        if isinstance(self._failure, LedgerFenced):
            return LedgerFenced(*self._failure.args)
        return LedgerClosed(f"ledger {self.ledger_id} takes no more entries: {self._failure or 'it was closed'}")
