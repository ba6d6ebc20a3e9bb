"""FakeLedgers: ledgers in memory behind the LedgerStore contract, which outlive the clients that use them.

A client (`FakeLedgerStore`) can be killed: nothing that it has not been told is stored any more, and none of its calls ends.
"""

import asyncio
from array import array
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence

from bookkeeper.ledgers import (
    DEFAULT_QUORUMS,
    EntryLost,
    LedgerClosed,
    LedgerError,
    LedgerFenced,
    LedgerReader,
    LedgerUnreadable,
    LedgerWriter,
    NoSuchEntry,
    NoSuchLedger,
    Quorums,
)
from bookkeeper.write.parts import Part
from wire.kernels.entries import seal
from wire.run import HEADER_BYTES_CRC32C, EntryBatch, EntryRun
from wire.run_parts import cut, join


class FakeLedger:
    """Content of a ledger on bookies and in the metadata."""

    def __init__(self, ledger_id: int, custom_metadata: Mapping[str, bytes]) -> None:
        self.ledger_id = ledger_id
        self.custom_metadata = dict(custom_metadata)
        self.runs: list[EntryRun] = []
        self.is_fenced = False
        self.last_entry_id: int | None = None
        self.lost: set[int] = set()
        """Entries that no bookie can give any more."""
        self.is_away = False
        """Whether the ledger's bookies cannot be asked now."""

    @property
    def stored_last(self) -> int:
        return self.runs[-1].last_entry_id if self.runs else -1

    @property
    def length_bytes(self) -> int:
        return sum(run.payload_bytes for run in self.runs)

    def read(self, first: int, count_max: int, bytes_max: int) -> EntryRun:
        runs = [run for run in self.runs if run.last_entry_id >= first]
        if not runs:
            raise NoSuchEntry(f"{self.ledger_id}:{first}")
        if self.is_away:
            raise LedgerUnreadable(f"{self.ledger_id}:{first}")
        if first in self.lost:
            raise EntryLost(f"{self.ledger_id}:{first}")
        sound = min((lost for lost in self.lost if lost > first), default=first + count_max)
        return cut(join(runs), first, min(count_max, sound - first), bytes_max)


class FakeLedgers:
    """All ledgers. `reads` counts reads of entries, `step_s` is how long each call takes."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.ledgers: dict[int, FakeLedger] = {}
        self.deleted: list[int] = []
        self.next_id = 0
        self.reads = 0
        self.picks = 0
        self.at_once: Container[int] = ()
        """Entries that are given in one go, if they can be read."""
        self.creates = 0
        self.step_s = step_s

    def names(self, ledger_id: int) -> str:
        return self.ledgers[ledger_id].custom_metadata["pulsar/managed-ledger"].decode()


class FakeLedgerStore:
    """One client of FakeLedgers. `fail_appends`, `fail_creates`, `fail_opens`: how many of the next ones fail."""

    def __init__(self, shared: FakeLedgers) -> None:
        self.shared = shared
        self.is_dead = False
        self.fail_appends = 0
        self.fail_creates = 0
        self.fail_opens = 0
        self.fail_deletes = 0
        self.quorums_asked: list[Quorums] = []
        self.lose_answers = False
        """An append that fails is stored all the same."""
        self.torn_entries = 0
        """Entries that an append stores although it fails."""

    async def step(self) -> None:
        await asyncio.sleep(self.shared.step_s)
        if self.is_dead:
            await asyncio.get_running_loop().create_future()

    async def create(self, custom_metadata: Mapping[str, bytes], quorums: Quorums = DEFAULT_QUORUMS) -> LedgerWriter:
        self.quorums_asked.append(quorums)
        await self.step()
        if self.fail_creates:
            self.fail_creates -= 1
            raise LedgerError("no bookies")
        shared = self.shared
        shared.creates += 1
        shared.next_id += 1
        ledger = shared.ledgers[shared.next_id] = FakeLedger(shared.next_id, custom_metadata)
        return FakeWriter(self, ledger)

    async def open(self, ledger_id: int) -> LedgerReader:
        await self.step()
        if self.fail_opens:
            self.fail_opens -= 1
            raise LedgerError("no quorum can be asked")
        ledger = self.shared.ledgers.get(ledger_id)
        if ledger is None:
            raise NoSuchLedger(f"ledger {ledger_id}")
        ledger.is_fenced = True
        if ledger.last_entry_id is None:
            ledger.last_entry_id = ledger.stored_last
        return FakeReader(self, ledger)

    async def pick(self, wanted: Sequence[tuple[LedgerReader | LedgerWriter, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        await self.step()
        self.shared.picks += 1
        found: list[EntryRun] = []
        for source, entry_ids in wanted:
            ledger = self.shared.ledgers.get(source.ledger_id)
            for entry_id in entry_ids:
                is_there = ledger is not None and not ledger.is_away and entry_id not in ledger.lost
                if ledger is not None and is_there and entry_id in self.shared.at_once:
                    found.append(ledger.read(entry_id, 1, bytes_max))
        return found

    async def delete(self, ledger_id: int) -> None:
        await self.step()
        if self.fail_deletes:
            self.fail_deletes -= 1
            raise LedgerError("not now")
        if self.shared.ledgers.pop(ledger_id, None) is not None:
            self.shared.deleted.append(ledger_id)


class FakeReader:
    def __init__(self, store: FakeLedgerStore, ledger: FakeLedger) -> None:
        self._store, self._ledger = store, ledger
        self.ledger_id = ledger.ledger_id
        assert ledger.last_entry_id is not None
        self.last_entry_id = ledger.last_entry_id
        self.length_bytes = ledger.length_bytes

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        await self._store.step()
        self._store.shared.reads += 1
        if self.ledger_id not in self._store.shared.ledgers:
            raise NoSuchLedger(f"ledger {self.ledger_id}")
        return self._ledger.read(first_entry_id, count_max, bytes_max)


class FakeWriter:
    def __init__(self, store: FakeLedgerStore, ledger: FakeLedger) -> None:
        self._store, self._ledger = store, ledger
        self._loop = asyncio.get_running_loop()
        self.ledger_id = ledger.ledger_id
        self.last_add_confirmed = -1
        self.length_bytes = 0
        self.next_entry_id = 0
        self._pending: deque[tuple[EntryRun, asyncio.Future[EntryRun]]] = deque()
        self._failure: LedgerError | None = None
        self._is_closed = False

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        if self._failure is not None or self._is_closed:
            future.set_exception(LedgerClosed(f"ledger {self.ledger_id}"))
            return future
        first = self.next_entry_id
        self.length_bytes = seal(batch, self.ledger_id, first, self.last_add_confirmed, self.length_bytes)
        self.next_entry_id += batch.count
        run = EntryRun(self.ledger_id, first, batch.buffer, batch.offsets, batch.header_bytes)
        self._pending.append((run, future))
        self._loop.call_later(self._store.shared.step_s, self._store_next)
        return future

    def take_part(self, part: Part) -> bool:
        return False

    def _store_next(self) -> None:
        if self._store.is_dead or not self._pending:
            return
        run, future = self._pending.popleft()
        if self._store.fail_appends:
            self._store.fail_appends -= 1
            self._fail(run, future, LedgerError("the write failed"))
        elif self._ledger.is_fenced:
            self._fail(run, future, LedgerFenced(f"ledger {self.ledger_id}"))
        else:
            self._ledger.runs.append(run)
            self.last_add_confirmed = run.last_entry_id
            if not future.done():
                future.set_result(run)

    def _fail(self, run: EntryRun, future: "asyncio.Future[EntryRun]", error: LedgerError) -> None:
        kept = run.count if self._store.lose_answers else self._store.torn_entries
        if kept and not self._ledger.is_fenced:
            self._ledger.runs.append(run.entries(run.first_entry_id, kept))
        self._failure = error
        for each in (future, *(pending for _, pending in self._pending)):
            if not each.done():
                each.set_exception(type(error)(*error.args))
        self._pending.clear()

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        await self._store.step()
        self._store.shared.reads += 1
        if first_entry_id > self.last_add_confirmed:
            raise NoSuchEntry(f"{self.ledger_id}:{first_entry_id}")
        return self._ledger.read(first_entry_id, count_max, bytes_max)

    async def close(self) -> None:
        while self._pending:
            await asyncio.wait([future for _, future in self._pending])
        await self._store.step()
        self._is_closed = True
        if self._failure is not None:
            raise self._failure
        if self._ledger.is_fenced:
            raise LedgerFenced(f"ledger {self.ledger_id}")
        self._ledger.last_entry_id = self.last_add_confirmed
        self._ledger.is_fenced = True


def batch(*payloads: bytes) -> EntryBatch:
    buffer, offsets = bytearray(), array("I", [0])
    for payload in payloads:
        buffer += bytes(HEADER_BYTES_CRC32C) + payload
        offsets.append(len(buffer))
    return EntryBatch(buffer, offsets, HEADER_BYTES_CRC32C, len(payloads))


def payloads(run: EntryRun) -> list[bytes]:
    return [bytes(run.payload(entry_id)) for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]


Check = Callable[[], None]
