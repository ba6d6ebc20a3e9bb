"""EntryReader: confirmed entries of a ledger from a replica that has them sound. `ReplicaRead` chooses the next bookie.

Every digest is checked here, because a bookie does not. The entries are known to be confirmed: no answer of any bookie
makes one "no such entry"; it is there, or it is unreadable.
"""

import asyncio
import dataclasses
import logging
from array import array
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ledgers import EntryLost, LedgerError, LedgerUnreadable
from bookkeeper.placement.candidates import Candidates
from bookkeeper.ports import BookieClient
from bookkeeper.read.replica_read import ReplicaRead, read_sequence
from bookkeeper.read.striped_reads import StripedReads
from bookkeeper.write.quorum_tracker import Quorum
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.digests import HEADER_BYTES, first_damaged
from wire.run import EntryRun

ABSENT_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER})
LOST_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER, BookieCode.EIO})
"""Codes by which a bookie says that it does not have an entry that it once stored. Other codes say nothing about the entry."""

_Ask: TypeAlias = Callable[[str], Coroutine[None, None, EntryRun]]

_log = logging.getLogger(__name__)


class DamagedEntry(Exception):
    """An entry from a bookie differs from the one written."""


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """Order in which replicas are asked, and the delay before the next one."""

    sticky_index: int | None = None
    """Index of the replica that is asked first, where every bookie has every entry: one bookie reads ahead and the others need
    not."""
    speculative_seconds: float = 0.0
    """After which the next replica is asked beside the one that has not answered; 0: never."""
    is_reordered: bool = False
    """Bookies in quarantine, read-only or away are asked last."""
    timeout_seconds: float = 0.0
    """Time limit of a read, however many replicas are asked meanwhile; 0: none."""


class EntryReader:
    """Reads one ledger with the segments of `metadata`."""

    def __init__(
        self,
        ledger_id: int,
        metadata: LedgerMetadata,
        bookies: Mapping[str, BookieClient],
        policy: ReadPolicy | None = None,
        candidates: Candidates | None = None,
        refresh: Callable[[int], Awaitable[LedgerMetadata]] | None = None,
    ) -> None:
        self._ledger_id, self._metadata, self._bookies, self._candidates = ledger_id, metadata, bookies, candidates
        self._refresh = refresh
        self._policy = policy or ReadPolicy()
        self._quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._sticky = None if self._quorum.is_striped else self._policy.sticky_index
        self._striped = StripedReads(metadata.write_quorum) if self._quorum.is_striped else None
        self._starts = [segment.first_entry_id for segment in metadata.segments]

    @property
    def ledger_id(self) -> int:
        return self._ledger_id

    def asked_first(self, entry_ids: Sequence[int]) -> Mapping[str, list[int]]:
        """Entries by the bookie that would be asked first."""
        found: dict[str, list[int]] = {}
        for entry_id in entry_ids:
            ensemble = self._metadata.segments[bisect_right(self._starts, entry_id) - 1].bookies
            found.setdefault(ensemble[self._sequence(entry_id, ensemble)[0]], []).append(entry_id)
        return found

    def sound(self, run: EntryRun) -> EntryRun | None:
        """Entries that `asked_first` led to; None when the first is damaged, so that `read` asks another."""
        try:
            return sound_entries(run, self._ledger_id, run.first_entry_id, self._metadata)
        except DamagedEntry as error:
            _log.warning(line("a replica could not be read", ledger=self._ledger_id, reason=error))
            return None

    def follow(self, metadata: LedgerMetadata) -> None:
        """The ledger's ensembles are others now."""
        self._metadata = metadata
        self._starts = [segment.first_entry_id for segment in metadata.segments]

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """A run from `first_entry_id`, which must be confirmed. LedgerUnreadable; EntryLost when that is for ever."""
        seconds = self._policy.timeout_seconds
        if not seconds:
            return await self._read_where_it_is(first_entry_id, count_max, bytes_max)
        try:
            async with asyncio.timeout(seconds):
                return await self._read_where_it_is(first_entry_id, count_max, bytes_max)
        except TimeoutError:
            which = f"ledger {self._ledger_id} entry {first_entry_id}"
            raise LedgerUnreadable(f"{which}: not read within {seconds:g} s (managedLedgerReadEntryTimeoutSeconds)") from None

    async def _read_where_it_is(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Read an entry; when no replica has it, read once more if the metadata says that its copies were moved."""
        try:
            return await self._read(first_entry_id, count_max, bytes_max)
        except LedgerUnreadable:
            if not await self._has_moved():
                raise
        return await self._read(first_entry_id, count_max, bytes_max)

    async def _has_moved(self) -> bool:
        if self._refresh is None:
            return False
        try:
            metadata = await self._refresh(self._ledger_id)
        except LedgerError as error:
            _log.warning(line("metadata of an unreadable ledger unknown", ledger=self._ledger_id, reason=error))
            return False
        has_moved = metadata.segments != self._metadata.segments
        self.follow(metadata)
        return has_moved

    async def _read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        at = bisect_right(self._starts, first_entry_id) - 1
        if at + 1 < len(self._starts):
            count_max = min(count_max, self._starts[at + 1] - first_entry_id)
        read = partial(self._read_of, self._metadata.segments[at].bookies)
        if self._striped is not None:
            return await self._striped.read(read, first_entry_id, count_max, bytes_max)
        return await read(first_entry_id, count_max, bytes_max)

    async def _read_of(self, ensemble: Sequence[str], first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Entries that one bookie has of the range."""
        replicas = ReplicaRead(self._sequence(first_entry_id, ensemble, count_max))
        ask = partial(self._read_from, first_entry_id=first_entry_id, count_max=count_max, bytes_max=bytes_max)
        if self._policy.speculative_seconds and self._quorum.write_quorum > 1:
            run = await self._read_side_by_side(replicas, ensemble, ask)
        else:
            run = await self._read_in_turn(replicas, ensemble, ask)
        if run is None:
            error = EntryLost if replicas.is_lost else LedgerUnreadable
            raise error(f"ledger {self._ledger_id} entry {first_entry_id}: {'; '.join(replicas.reasons)}")
        return run

    def _sequence(self, entry_id: int, ensemble: Sequence[str], count: int = 1) -> Sequence[int]:
        """Bookies to ask for an entry, in order. Striped: one that also has the `count` - 1 entries after it is first."""
        write_set = self._quorum.write_set(entry_id)
        start = self._sticky if self._striped is None else write_set[min(count, len(write_set)) - 1]
        doubtful: Sequence[int] = ()
        if self._policy.is_reordered and self._candidates is not None:
            doubtful = [index for index in write_set if self._candidates.is_doubtful(ensemble[index])]
        return read_sequence(write_set, start, doubtful)

    async def _read_in_turn(self, replicas: ReplicaRead, ensemble: Sequence[str], ask: _Ask) -> EntryRun | None:
        asked = replicas.start()
        while asked:
            (index,) = asked
            try:
                return await ask(ensemble[index])
            except (BookieError, DamagedEntry) as error:
                asked = self._failed(replicas, index, ensemble[index], error)
        return None

    async def _read_side_by_side(self, replicas: ReplicaRead, ensemble: Sequence[str], ask: _Ask) -> EntryRun | None:
        asks: dict[asyncio.Task[EntryRun], int] = {}
        asked = replicas.start()
        try:
            while not replicas.is_over:
                asks |= {asyncio.ensure_future(ask(ensemble[index])): index for index in asked}
                late = self._policy.speculative_seconds
                done, _ = await asyncio.wait(asks, timeout=late, return_when=asyncio.FIRST_COMPLETED)
                asked = () if done else replicas.on_late()
                for task in [task for task in asks if task in done]:
                    index = asks.pop(task)
                    try:
                        return task.result()
                    except (BookieError, DamagedEntry) as error:
                        asked = self._failed(replicas, index, ensemble[index], error)
        finally:
            await _cancelled(asks)
        return None

    def _failed(self, replicas: ReplicaRead, index: int, name: str, error: BookieError | DamagedEntry) -> Sequence[int]:
        reason = f"{name}: {error}"
        _log.warning(line("a replica could not be read", ledger=self._ledger_id, reason=reason))
        is_absent = isinstance(error, BookieError) and error.code in ABSENT_CODES
        if self._candidates is not None and not is_absent:
            self._candidates.on_error(name)
        if index == self._sticky:
            self._sticky = (index + 1) % self._quorum.ensemble_size
        return replicas.on_failed(index, reason, is_lost=isinstance(error, DamagedEntry) or error.code in LOST_CODES)

    async def _read_from(self, name: str, *, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        bookie = self._bookies.get(name)
        if bookie is None:
            raise BookieError(BookieCode.ETOOMANYREQUESTS, self._ledger_id, "the bookie is not available")
        run = await bookie.read(self._ledger_id, first_entry_id, count_max, bytes_max)
        return sound_entries(run, self._ledger_id, first_entry_id, self._metadata)


async def _cancelled(tasks: Mapping["asyncio.Task[EntryRun]", int]) -> None:
    """Cancel reads without a waiter; late answers are ignored."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def sound_entries(run: EntryRun, ledger_id: int, first_entry_id: int, metadata: LedgerMetadata) -> EntryRun:
    """The entries before the first damaged one; DamagedEntry when that is the first, or when the run is another."""
    if (run.ledger_id, run.first_entry_id) != (ledger_id, first_entry_id) or run.count < 1:
        raise DamagedEntry(f"asked for {ledger_id}:{first_entry_id}, got {run.count} from {run.ledger_id}:{run.first_entry_id}")
    digest = metadata.digest_type
    if run.header_bytes != HEADER_BYTES[digest]:
        run = dataclasses.replace(run, header_bytes=HEADER_BYTES[digest])
    damaged = first_damaged(run, digest, metadata.password)
    if damaged == 0:
        raise DamagedEntry(f"the digest of {ledger_id}:{first_entry_id} does not match")
    return run if damaged < 0 else run.entries(first_entry_id, damaged)


def lac_in_entry(entry: bytes, ledger_id: int, metadata: LedgerMetadata) -> int:
    """The last add confirmed in the header of an entry, whichever it is; -1 of none (empty). DamagedEntry."""
    if not entry:
        return -1
    header_bytes = HEADER_BYTES[metadata.digest_type]
    if len(entry) < header_bytes:
        raise DamagedEntry(f"an entry of ledger {ledger_id} has {len(entry)} bytes, and its header alone {header_bytes}")
    entry_id = entry_id_in(entry)
    run = EntryRun(ledger_id, entry_id, entry, array("I", (0, len(entry))), header_bytes)
    sound_entries(run, ledger_id, entry_id, metadata)
    return int.from_bytes(entry[16:24], signed=True)


def entry_id_in(entry: bytes) -> int:
    """Entry id in the header of an entry; -1 for an empty one."""
    return int.from_bytes(entry[8:16], signed=True) if entry else -1
