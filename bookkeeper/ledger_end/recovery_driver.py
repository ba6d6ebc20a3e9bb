"""The driver of `recovery.Recovery`: talks to the bookies, verifies digests, and reports back. Decides nothing.

Bounds: a run of the tail is written again before the next is; the next is read meanwhile (`read_ahead`). A bookie that hangs is
left behind: its open requests are cancelled when the end is known.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bookkeeper.ledger_end.read_ahead import ReadAhead
from bookkeeper.ledger_end.recovery import (
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
from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from bookkeeper.ledgers import LedgerError, LedgerUnreadable
from bookkeeper.placement.candidates import Candidates
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import DamagedEntry, EntryReader, entry_id_in, lac_in_entry, sound_entries
from bookkeeper.write.ensemble_change import RecoveryEnsembles
from bookkeeper.write.quorum_tracker import Quorum
from bookkeeper.write.replicated_adds import ReplicatedAdds, WrittenLedger
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

log = logging.getLogger(__name__)

RUN_ENTRIES_MAX = 1000
RUN_BYTES_MAX = 1 << 20
UNKNOWN_ENTRIES = 16
"""Asked for at once of a bookie that has not said where its entries end."""
NOBODY = -1
"""The bookie of entries read ahead: the machine does not need to know it."""
ABSENT_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER})


@dataclass(frozen=True, slots=True)
class RecoveredEnd:
    """End of the ledger, and the segments that replace or follow its last one: bookies that failed were replaced."""

    last_entry_id: int
    length_bytes: int
    segments: Sequence[Segment]


class RecoveryDriver:
    """One recovery of one ledger; `recover` gives its end, or LedgerError."""

    def __init__(
        self,
        ledger_id: int,
        metadata: LedgerMetadata,
        bookies: Mapping[str, BookieClient],
        candidates: Candidates,
        master_key: bytes,
    ) -> None:
        self._ledger_id, self._metadata, self._master_key = ledger_id, metadata, master_key
        self._bookies = bookies
        self._segment = metadata.segments[-1]
        self._quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._reader = EntryReader(ledger_id, metadata, bookies)
        self._ensembles = RecoveryEnsembles(candidates, ledger_id, metadata)
        self._adds: ReplicatedAdds | None = None
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._fenced: dict[int, int | None] = {}
        """The last entry that each had then; None where that could not be read."""
        self._next_entry_id: int | None = None
        """Entry that the machine wants; None while it wants none."""
        self._ahead = ReadAhead(ledger_id, metadata, self._client, self._offer_found, self._entries_left)

    async def recover(self) -> RecoveredEnd:
        try:
            end = await self._run(Recovery(self._quorum, self._segment.first_entry_id))
        finally:
            await self._ahead.close()
            if self._adds is not None:
                self._adds.abandon()
        if isinstance(end, GiveUp):
            failure = LedgerUnreadable if end.is_damage else LedgerError
            raise failure(f"ledger {self._ledger_id} could not be recovered: {end.reason}")
        assert isinstance(end, Close)
        segments = [segment for segment in self._ensembles.segments if segment.first_entry_id <= end.last_entry_id]
        return RecoveredEnd(end.last_entry_id, end.length_bytes, segments)

    async def _run(self, machine: Recovery) -> Effect:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._perform(effect)) for effect in machine.start()]
            while True:
                effects = machine.handle(await self._events.get())
                if machine.is_done:
                    break
                tasks = [task for task in tasks if not task.done()]
                tasks += [group.create_task(self._perform(effect)) for effect in self._beside_found(effects)]
            for task in tasks:
                task.cancel()
        (end,) = effects
        return end

    def _beside_found(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        """Effects to perform: no read of an entry that was found ahead; other entries may still be found while their reads
        are under way."""
        match effects:
            case [Read(entry_id=entry_id), *_]:
                self._next_entry_id = entry_id
                if self._offer_found():
                    return ()
                self._ahead.start(entry_id, self._fenced)
            case [Rewrite(run=run)]:
                self._next_entry_id = None
                self._ahead.start(run.last_entry_id + 1, self._fenced)
        return effects

    def _offer_found(self) -> bool:
        """Hand found entries to the machine, if it waits for them."""
        run = None if self._next_entry_id is None else self._ahead.take(self._next_entry_id)
        if run is not None:
            self._next_entry_id = None
            self._events.put_nowait(EntriesFound(NOBODY, run))
        return run is not None

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
            last_entry = await self._client(bookie).fence(self._ledger_id, self._master_key)
        except BookieError as error:
            return FenceFailed(bookie, error.code)
        return Fenced(bookie, self._confirmed_in(last_entry, bookie))

    def _confirmed_in(self, last_entry: bytes, bookie: int) -> int:
        """Last add confirmed in an entry; a damaged one counts for nothing. The fence holds; a start too early is right."""
        self._fenced[bookie] = None
        try:
            confirmed = lac_in_entry(last_entry, self._ledger_id, self._metadata)
        except DamagedEntry as error:
            log.warning(
                line(
                    "bookie has a damaged last entry of a fenced ledger",
                    bookie=self._segment.bookies[bookie],
                    reason=str(error),
                )
            )
            return -1
        self._fenced[bookie] = entry_id_in(last_entry)
        return confirmed

    def _entries_left(self, bookie: int, entry_id: int) -> int:
        """Number of entries asked for at once, at least one: a bookie answers for each entry that it lacks, and thousands of
        such answers are what a recovery takes longest for."""
        last = self._fenced.get(bookie)
        return UNKNOWN_ENTRIES if last is None else max(1, min(RUN_ENTRIES_MAX, last + 1 - entry_id))

    async def _read(self, read: Read) -> Event:
        bookie, entry_id = read.bookie, read.entry_id
        if read.fence_first:
            fenced = await self._fence(bookie)
            if isinstance(fenced, FenceFailed):
                return ReadFailed(bookie, entry_id, fenced.code, f"not fenced: {fenced.code.name}")
            self._events.put_nowait(fenced)
        try:
            count_max = self._entries_left(bookie, entry_id)
            run = await self._client(bookie).read(self._ledger_id, entry_id, count_max, RUN_BYTES_MAX)
            return EntriesFound(bookie, sound_entries(run, self._ledger_id, entry_id, self._metadata))
        except BookieError as error:
            if error.code in ABSENT_CODES:
                return EntryMissing(bookie, entry_id)
            return ReadFailed(bookie, entry_id, error.code, str(error))
        except DamagedEntry as error:
            return ReadFailed(bookie, entry_id, BookieCode.EIO, str(error))

    async def _rewrite(self, run: EntryRun) -> Rewritten | RewriteFailed:
        if self._adds is None:
            ledger = WrittenLedger(self._ledger_id, self._quorum, self._segment.bookies, self._master_key)
            last_confirmed = run.first_entry_id - 1
            self._adds = ReplicatedAdds(ledger, self._bookies, self._ensembles, last_confirmed=last_confirmed, recovery=True)
        try:
            await self._adds.append(run)
        except LedgerError as error:
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
