"""A bookie in memory that can hold answers back, fail, lose requests and rot; and what ledger tests need around it."""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from metadata.store import MetadataStore
from wire.bookie.codes import BookieCode, BookieError
from wire.run import HEADER_BYTES_CRC32C, EntryBatch, EntryRun


class FixedClock:
    def now_ms(self) -> int:
        return 1_700_000_000_000


@dataclass
class FakeLedger:
    master_key: bytes
    entries: dict[int, bytes] = field(default_factory=dict)
    fenced: bool = False


class FakeBookie:
    """Stores at the call, as a journal would order it, and answers at once unless `hold` is set: then `release` answers.

    `failures` maps a method's name to the code that it answers with; `hangs` names the methods that never answer.
    """

    def __init__(self) -> None:
        self.ledgers: dict[int, FakeLedger] = {}
        self.hold = False
        self.held: list[Callable[[], None]] = []
        self.failures: dict[str, BookieCode] = {}
        self.hangs: set[str] = set()
        self.added: list[EntryRun] = []
        self.recovery_added: list[EntryRun] = []

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if "add" in self.hangs:
            return future
        try:
            self._raise_failure("add", run.ledger_id)
            ledger = self._ledger(run.ledger_id, master_key)
            if ledger.fenced and not recovery:
                raise BookieError(BookieCode.EFENCED, run.ledger_id)
        except BookieError as error:
            self._answer(future, error)
            return future
        (self.recovery_added if recovery else self.added).append(run)
        for at in range(run.count):
            ledger.entries[run.first_entry_id + at] = bytes(run.buffer[run.offsets[at] : run.offsets[at + 1]])
        self._answer(future, None)
        return future

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        await self._may_hang("read")
        self._raise_failure("read", ledger_id)
        ledger = self.ledgers.get(ledger_id)
        if ledger is None:
            raise BookieError(BookieCode.ENOLEDGER, ledger_id)
        if first_entry_id not in ledger.entries:
            raise BookieError(BookieCode.ENOENTRY, ledger_id)
        entries: list[bytes] = []
        entry_id, size = first_entry_id, 0
        while entry_id in ledger.entries and len(entries) < count_max:
            size += len(ledger.entries[entry_id])
            if entries and size > bytes_max:
                break
            entries.append(ledger.entries[entry_id])
            entry_id += 1
        return EntryRun(ledger_id, first_entry_id, b"".join(entries), offsets_of(map(len, entries)))

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        await self._may_hang("fence")
        self._raise_failure("fence", ledger_id)
        ledger = self._ledger(ledger_id, master_key)
        ledger.fenced = True
        return ledger.entries[max(ledger.entries)] if ledger.entries else b""

    async def last_entry_id(self, ledger_id: int) -> int:
        self._raise_failure("last_entry_id", ledger_id)
        if ledger_id not in self.ledgers:
            raise BookieError(BookieCode.ENOLEDGER, ledger_id)
        return max(self.ledgers[ledger_id].entries, default=-1)

    def release(self, count: int | None = None) -> None:
        """Answer the oldest `count` adds that are held back (None: all)."""
        for answer in self.held[:count]:
            answer()
        del self.held[:count]

    def rot(self, ledger_id: int, entry_id: int, at: int = -1) -> None:
        """Flip a bit of this byte of the entry; of the last one of its payload, unless told otherwise."""
        entry = bytearray(self.ledgers[ledger_id].entries[entry_id])
        entry[at] ^= 1
        self.ledgers[ledger_id].entries[entry_id] = bytes(entry)

    def lose(self, ledger_id: int, entry_id: int) -> None:
        del self.ledgers[ledger_id].entries[entry_id]

    def _ledger(self, ledger_id: int, master_key: bytes) -> FakeLedger:
        ledger = self.ledgers.setdefault(ledger_id, FakeLedger(master_key))
        if ledger.master_key != master_key:
            raise BookieError(BookieCode.EUA, ledger_id)
        return ledger

    def _answer(self, future: "asyncio.Future[None]", error: BookieError | None) -> None:
        def answer() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        if self.hold:
            self.held.append(answer)
        else:
            asyncio.get_running_loop().call_soon(answer)

    async def _may_hang(self, method: str) -> None:
        if method in self.hangs:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)

    def _raise_failure(self, method: str, ledger_id: int) -> None:
        if method in self.failures:
            raise BookieError(self.failures[method], ledger_id)


def offsets_of(sizes: Iterable[int]) -> "array[int]":
    offsets = array("I", [0])
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return offsets


def batch(*payloads: bytes) -> EntryBatch:
    """Payloads with room for their headers."""
    room = bytes(HEADER_BYTES_CRC32C)
    buffer = bytearray(b"".join(room + payload for payload in payloads))
    offsets = offsets_of(HEADER_BYTES_CRC32C + len(payload) for payload in payloads)
    return EntryBatch(buffer, offsets, HEADER_BYTES_CRC32C, len(payloads))


def payloads_of(run: EntryRun) -> list[bytes]:
    return [bytes(run.payload(run.first_entry_id + at)) for at in range(run.count)]


class Cluster:
    """Bookies and a metadata tree; each `client` is another process."""

    def __init__(self, ensemble: int = 1, write: int = 1, ack: int = 1, bookies: int | None = None) -> None:
        self.shared = SharedTree()
        self.bookies = {f"bookie{number}:3181": FakeBookie() for number in range(bookies or ensemble)}
        self.settings = BookKeeperSettings(ensemble, write, ack)
        self._clients = 0

    def client(self, password: str = "") -> BookKeeper:
        self._clients += 1
        settings = self.settings
        if password:
            quorum = (
                settings.managed_ledger_default_ensemble_size,
                settings.managed_ledger_default_write_quorum,
                settings.managed_ledger_default_ack_quorum,
            )
            settings = BookKeeperSettings(*quorum, managed_ledger_password=password)
        store = MemoryStore(FixedClock(), self.shared, alone=False)
        return BookKeeper(self.bookies, store, settings, Random(self._clients))

    async def writer(self, store: MetadataStore | None = None) -> LedgerWriter:
        """Writer of a new ledger, by a client of its own; its metadata go through `store`."""
        client = BookKeeper(self.bookies, store, self.settings, Random(1)) if store else self.client()
        await client.initialise()
        return await client.create({})

    @property
    def all(self) -> list[FakeBookie]:
        return list(self.bookies.values())


async def settle() -> None:
    """Let everything that is ready run; nothing here waits for time."""
    for _ in range(50):
        await asyncio.sleep(0)


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await work

    asyncio.run(bounded())
