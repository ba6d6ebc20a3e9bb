"""LedgerAccess: entries of any ledger, for the shell and for a bookie's HTTP: read with or without recovery, delete.

Any digest and password will do: the metadata have both, as BookKeeperAdmin uses them. Reads go through bounded runs.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bookkeeper.ledger_end.ledger_recovery import recover_ledger
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, master_key
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerUnreadable
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import EntryReader
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.settings import RepairSettings
from cli.bookkeeper_cluster.cluster import Cluster, NotThere
from metadata.store import MetadataStore
from ports.clock import RealClock
from ports.network.tls import RenewedTls
from ports.rng import RealRng
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.digests import HEADER_BYTES
from wire.run import EntryRun

RUN_ENTRIES_MAX = 1000
RUN_BYTES_MAX = 4 << 20
ANSWER_SECONDS = 30.0
"""Time that a bookie may leave a request without an answer."""
_ABSENT = (BookieCode.ENOENTRY, BookieCode.ENOLEDGER)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it was written."""

    entry_id: int
    payload: bytes


class LedgerAccess:
    """Access to ledgers, made by `open_ledgers`."""

    def __init__(self, client: RepairClient) -> None:
        self.client = client

    async def read(
        self, ledger_id: int, first: int = 0, last: int | None = None, *, recovers: bool = False
    ) -> AsyncGenerator[Entry, None]:
        """Entries from `first` to `last`, or to the end; of an open ledger also unconfirmed ones. With `recovers`
        the ledger is fenced and closed first. NotThere when it has no entry `last`, after those before it; LedgerError."""
        ledger = await self._registered(ledger_id)
        if recovers:
            key, client = master_key(ledger.metadata.password), self.client
            ledger = await recover_ledger(ledger, client.registry, client.bookies, client.candidates, key)
        end = await self._last_entry_id(ledger_id, ledger.metadata)
        reader = EntryReader(ledger_id, ledger.metadata, self.client.bookies)
        at, stop = first, end if last is None else min(last, end)
        while at <= stop:
            run = await reader.read(at, min(RUN_ENTRIES_MAX, stop + 1 - at), RUN_BYTES_MAX)
            for entry in _entries(run, ledger.metadata):
                yield entry
            at = run.last_entry_id + 1
        if (last is not None and last > end) or (last is None and first > max(end, 0)):
            raise NotThere(f"ledger {ledger_id} has no entry {max(first, end + 1)}: it ends at {end}")

    async def read_at(self, bookie_id: str, ledger_id: int, first: int, last: int | None) -> AsyncGenerator[Entry, None]:
        """Entries that this one bookie has, without a look at digests. NotThere for one that it has not; BookieError."""
        bookie = self.bookie(bookie_id)
        metadata = (await self._registered(ledger_id)).metadata
        stop = await bookie.last_entry_id(ledger_id) if last is None else last
        at = first
        while at <= stop:
            try:
                run = await bookie.read(ledger_id, at, min(RUN_ENTRIES_MAX, stop + 1 - at), RUN_BYTES_MAX)
            except BookieError as error:
                if error.code not in _ABSENT:
                    raise
                if last is not None:
                    raise NotThere(f"{bookie_id} has no entry {at} of ledger {ledger_id}") from error
                at += 1  # another bookie's: the ledger is striped
                continue
            for entry in _entries(run, metadata):
                yield entry
            at = run.last_entry_id + 1

    def bookie(self, bookie_id: str) -> BookieClient:
        """NotThere."""
        found = self.client.bookies.get(bookie_id)
        if found is None:
            raise NotThere(f"bookie {bookie_id} is not registered, and its id is no address")
        return found

    async def delete(self, ledger_id: int) -> None:
        """The metadata goes; bookies collect the entries later. NotThere, LedgerError."""
        await self._registered(ledger_id)
        await self.client.registry.delete(ledger_id)

    async def _registered(self, ledger_id: int) -> RegisteredLedger:
        """NotThere, LedgerError."""
        await Cluster(self.client.store).ledger_node(ledger_id)
        return await self.client.registry.read(ledger_id)

    async def _last_entry_id(self, ledger_id: int, metadata: LedgerMetadata) -> int:
        """The last entry; of an open ledger the last that one of its bookies has. LedgerUnreadable without any answer."""
        if metadata.state == LedgerState.CLOSED:
            return metadata.last_entry_id
        segment = metadata.segments[-1]
        last, reasons = segment.first_entry_id - 1, []
        for name in segment.bookies:
            try:
                last = max(last, await self.bookie(name).last_entry_id(ledger_id))
            except NotThere as error:
                reasons.append(str(error))
            except BookieError as error:
                if error.code not in _ABSENT:
                    reasons.append(f"{name}: {error}")
        if len(reasons) == len(segment.bookies):
            raise LedgerUnreadable(f"ledger {ledger_id}: no bookie says where it ends: {'; '.join(reasons)}")
        return last


def _entries(run: EntryRun, metadata: LedgerMetadata) -> list[Entry]:
    run = EntryRun(run.ledger_id, run.first_entry_id, run.buffer, run.offsets, HEADER_BYTES[metadata.digest_type])
    return [Entry(entry_id, bytes(run.payload(entry_id))) for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]


@asynccontextmanager
async def open_ledgers(
    store: MetadataStore, tls: RenewedTls | None, settings: RepairSettings | None = None
) -> AsyncIterator[LedgerAccess]:
    """Access to ledgers; in plain text without `tls`. NotThere when there is no cluster; LedgerError, MetadataError."""
    await Cluster(store).registry()
    bookies = NetworkBookies(store, ANSWER_SECONDS, tls=tls)
    client = RepairClient(
        store, settings or RepairSettings(), RealClock(), RealRng(), "bookkeeper shell", bookies, ANSWER_SECONDS
    )
    try:
        await client.open()
        yield LedgerAccess(client)
    finally:
        await client.close()
