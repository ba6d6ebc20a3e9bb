"""The driver of `recovery.Recovery`: talks to the bookies, verifies digests, and reports back. Decides nothing.

Bounds: a run of the tail is read and written again before the next is asked for. A bookie that hangs is left behind: what is
still asked of it when the end is known is cancelled.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from bookkeeper.ensemble import Quorum, QuorumTracker
from bookkeeper.ledgers import LedgerError, LedgerUnreadable
from bookkeeper.metadata_codec import LedgerMetadata
from bookkeeper.ports import BookieClient
from bookkeeper.reader import DamagedEntry, EntryReader, sound_entries
from bookkeeper.recovery import (
    Close,
    Effect,
    EntriesFound,
    EntryMissing,
    Event,
    Fence,
    Fenced,
    FenceFailed,
    GiveUp,
    LengthRead,
    LengthUnreadable,
    Read,
    ReadFailed,
    ReadLength,
    Recovery,
    Rewrite,
    RewriteFailed,
    Rewritten,
    length_of,
)
from wire.bookie_codes import BookieCode, BookieError
from wire.run import EntryRun

RUN_ENTRIES_MAX = 1000
RUN_BYTES_MAX = 1 << 20
ABSENT_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER})


class RecoveryDriver:
    """One recovery of one ledger; `recover` gives its last entry and length, or LedgerError."""

    def __init__(
        self, ledger_id: int, metadata: LedgerMetadata, bookies: Mapping[str, BookieClient], master_key: bytes
    ) -> None:
        self._ledger_id, self._metadata, self._master_key = ledger_id, metadata, master_key
        self._bookies = bookies
        self._segment = metadata.segments[-1]
        self._quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._reader = EntryReader(ledger_id, metadata, bookies)
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    async def recover(self) -> Close:
        machine = Recovery(self._quorum, self._segment.first_entry_id)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._perform(effect)) for effect in machine.start()]
            while True:
                effects = machine.handle(await self._events.get())
                if machine.is_done:
                    break
                tasks = [task for task in tasks if not task.done()]
                tasks += [group.create_task(self._perform(effect)) for effect in effects]
            for task in tasks:
                task.cancel()
        (end,) = effects
        if isinstance(end, GiveUp):
            failure = LedgerUnreadable if end.is_damage else LedgerError
            raise failure(f"ledger {self._ledger_id} could not be recovered: {end.reason}")
        assert isinstance(end, Close)
        return end

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case Fence():
                event: Event = await self._fence(effect.bookie)
            case Read():
                event = await self._read(effect)
            case Rewrite():
                event = await self._rewrite(effect.run)
            case ReadLength():
                event = await self._read_length(effect.entry_id)
            case Close() | GiveUp():
                raise AssertionError("the end is not performed")
        self._events.put_nowait(event)

    async def _fence(self, bookie: int) -> Fenced | FenceFailed:
        try:
            return Fenced(bookie, await self._client(bookie).fence(self._ledger_id, self._master_key))
        except BookieError as error:
            return FenceFailed(bookie, error.code)

    async def _read(self, read: Read) -> Event:
        bookie, entry_id = read.bookie, read.entry_id
        if read.fence_first:
            fenced = await self._fence(bookie)
            if isinstance(fenced, FenceFailed):
                return ReadFailed(bookie, entry_id, fenced.code, f"not fenced: {fenced.code.name}")
            self._events.put_nowait(fenced)
        try:
            run = await self._client(bookie).read(self._ledger_id, entry_id, RUN_ENTRIES_MAX, RUN_BYTES_MAX)
            return EntriesFound(bookie, sound_entries(run, self._ledger_id, entry_id, self._metadata))
        except BookieError as error:
            if error.code in ABSENT_CODES:
                return EntryMissing(bookie, entry_id)
            return ReadFailed(bookie, entry_id, error.code, str(error))
        except DamagedEntry as error:
            return ReadFailed(bookie, entry_id, BookieCode.EIO, str(error))

    async def _rewrite(self, run: EntryRun) -> Rewritten | RewriteFailed:
        rewriting = _Rewriting(run, self._quorum)
        rewriting.start(self._client, self._master_key)
        try:
            await rewriting.done
        except BookieError as error:
            return RewriteFailed(str(error))
        return Rewritten()

    async def _read_length(self, entry_id: int) -> LengthRead | LengthUnreadable:
        try:
            return LengthRead(length_of(await self._reader.read(entry_id, 1, RUN_BYTES_MAX)))
        except LedgerUnreadable as error:
            return LengthUnreadable(str(error))

    def _client(self, bookie: int) -> BookieClient:
        name = self._segment.bookies[bookie]
        client = self._bookies.get(name)
        if client is None:
            raise BookieError(BookieCode.EIO, self._ledger_id, f"{name} is not available")
        return client


class _Rewriting:
    """Writes one found run to its write sets; `done` completes at the ack quorum of every entry."""

    def __init__(self, run: EntryRun, quorum: Quorum) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._run = run
        self._tracker = QuorumTracker(quorum, run.first_entry_id - 1)

    def start(self, client: Callable[[int], BookieClient], master_key: bytes) -> None:
        for send in self._tracker.on_append(self._run.first_entry_id, self._run.count):
            part = self._run.entries(send.first_entry_id, send.count)
            for bookie in send.bookies:
                try:
                    answer = client(bookie).add(part, master_key, recovery=True)
                except BookieError as error:
                    self._on_failed(send.piece, bookie, error)
                else:
                    answer.add_done_callback(partial(self._on_answer, send.piece, bookie))

    def _on_answer(self, piece: int, bookie: int, answer: "asyncio.Future[None]") -> None:
        error = BookieError(BookieCode.EIO, self._run.ledger_id, "cancelled") if answer.cancelled() else answer.exception()
        if error is not None:
            self._on_failed(piece, bookie, error)
        elif self._tracker.on_stored(piece, bookie) and self._tracker.pending_count == 0 and not self.done.done():
            self.done.set_result(None)

    def _on_failed(self, piece: int, bookie: int, error: BaseException) -> None:
        code = error.code if isinstance(error, BookieError) else BookieCode.EIO
        if (self._tracker.on_failed(piece, bookie, code) or not isinstance(error, BookieError)) and not self.done.done():
            self.done.set_exception(error)
