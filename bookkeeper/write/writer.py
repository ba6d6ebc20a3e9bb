"""LedgerWriter: an open ledger that this process writes. Owns ids, length and the sealing;
`ReplicatedAdds` knows which bookies have each entry.

The first failure that no other bookie heals fails every pending and later append, in order, and leaves the metadata alone:
recovery decides what was stored.
"""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import pairwise

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerBusy, LedgerClosed, LedgerError, LedgerFenced, NoSuchEntry
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import EntryReader
from bookkeeper.write.counted_adds import PLAIN_RULES, AddRules
from bookkeeper.write.ensemble_change import WriterEnsembles
from bookkeeper.write.explicit_lac import ExplicitLac
from bookkeeper.write.parts import Part
from bookkeeper.write.quorum_tracker import Quorum
from bookkeeper.write.replicated_adds import ReplicatedAdds, WrittenLedger
from wire.bookie import digests
from wire.bookie.digests import HEADER_BYTES, DigestType, lac_record
from wire.kernels import entries
from wire.kernels.rows import WriterRow
from wire.run import EntryBatch, EntryRun


class BookieLedgerWriter(WriterRow):
    """Satisfies `bookkeeper.ledgers.LedgerWriter`. `entries` reads them."""

    __slots__ = ("_ensembles", "_loop", "_on_closed", "_registry", "_seal", "entries")

    _adds: ReplicatedAdds

    def __init__(
        self,
        registry: LedgerRegistry,
        ensembles: WriterEnsembles,
        bookies: Mapping[str, BookieClient],
        reader: EntryReader,
        master_key: bytes,
        rules: AddRules = PLAIN_RULES,
        *,
        on_closed: Callable[[RegisteredLedger], Awaitable[None]] | None = None,
    ) -> None:
        """`on_closed` does not fail."""
        self._on_closed = on_closed
        metadata = ensembles.ledger.metadata
        self.ledger_id = ensembles.ledger.ledger_id
        self._registry, self._ensembles, self.entries = registry, ensembles, reader
        self._seal = _seal_of(metadata)
        self._header_bytes = HEADER_BYTES[metadata.digest_type]
        self._loop = asyncio.get_running_loop()
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        ledger = WrittenLedger(self.ledger_id, quorum, metadata.segments[-1].bookies, master_key)
        self._adds = adds = ReplicatedAdds(ledger, bookies, ensembles, rules)
        self._explicit_lac: ExplicitLac | None = None
        if rules.explicit_lac_seconds:
            self._explicit_lac = ExplicitLac(
                self.ledger_id,
                master_key,
                rules.explicit_lac_seconds,
                lambda: adds.last_confirmed,
                lambda: adds.clients if adds.failure is None else (),
                partial(lac_record, self.ledger_id, digest=metadata.digest_type, password=metadata.password),
            )
        self._next_entry_id = 0
        self._length = 0
        self._closing: asyncio.Task[None] | None = None
        self._takes_parts = metadata.digest_type == DigestType.CRC32C

    @property
    def last_add_confirmed(self) -> int:
        return self._adds.last_confirmed

    @property
    def length_bytes(self) -> int:
        return self._length

    @property
    def next_entry_id(self) -> int:
        return self._next_entry_id

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        if self._adds.failure is not None or self._closing is not None or self._adds.is_full:
            return self._refuse()
        first = self._next_entry_id
        count = len(batch.offsets) - 1
        if count < 1:
            raise ValueError("an append without entries")
        if batch.header_bytes != self._header_bytes:
            batch = with_room(batch, self._header_bytes)
        self._length = self._seal(batch, self.ledger_id, first, self._adds.last_confirmed, self._length)
        self._next_entry_id = first + count
        if self._explicit_lac is not None:
            self._explicit_lac.appended(first + count - 1)
        return self._adds.append(EntryRun(self.ledger_id, first, batch.buffer, batch.offsets, batch.header_bytes))

    def take_part(self, part: Part) -> bool:
        first = self._next_entry_id
        if not self._takes_parts or self._closing is not None or part.mix.header_bytes != self._header_bytes:
            return False
        if not self._adds.take_part(part, first):
            return False
        count = part.count
        part.length_before = self._length
        self._length += part.size_bytes - count * self._header_bytes
        self._next_entry_id = first + count
        if self._explicit_lac is not None:
            self._explicit_lac.appended(first + count - 1)
        return True

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        last = self._adds.last_confirmed
        if not 0 <= first_entry_id <= last:
            raise NoSuchEntry(f"ledger {self.ledger_id} entry {first_entry_id}: confirmed up to {last}")
        return await self.entries.read(first_entry_id, min(count_max, last + 1 - first_entry_id), bytes_max)

    async def close(self) -> None:
        """Closing twice is fine, and gives the same answer."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._adds.finish()
        finally:
            if self._explicit_lac is not None:
                self._explicit_lac.stop()
        self._ensembles.ledger = await self._registry.update(self._ensembles.ledger, self._closed_metadata)
        if self._on_closed is not None:
            await self._on_closed(self._ensembles.ledger)

    def _closed_metadata(self, metadata: LedgerMetadata) -> LedgerMetadata | None:
        last, length = self._adds.last_confirmed, self._length
        if metadata.state == LedgerState.CLOSED and (metadata.last_entry_id, metadata.length_bytes) == (last, length):
            return None
        if metadata.state != LedgerState.OPEN:
            raise LedgerFenced(f"ledger {self.ledger_id} is {metadata.state.name}: another client recovers it")
        return metadata.closed(last, length)

    def _refuse(self) -> "asyncio.Future[EntryRun]":
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        failure = self._adds.failure
        refusal: LedgerError = LedgerClosed(f"ledger {self.ledger_id} takes no more entries: {failure or 'it was closed'}")
        if isinstance(failure, LedgerFenced):
            refusal = LedgerFenced(*failure.args)
        elif failure is None and self._closing is None:
            refusal = LedgerBusy(f"ledger {self.ledger_id}: too many appends wait for its bookies")
        future.set_exception(refusal)
        return future


def _seal_of(metadata: LedgerMetadata) -> Callable[[EntryBatch, int, int, int, int], int]:
    """The kernel's where it does the digest."""
    if metadata.digest_type in (DigestType.CRC32C, DigestType.DUMMY):
        return entries.seal
    return partial(digests.seal, digest=metadata.digest_type, password=metadata.password)


def with_room(batch: EntryBatch, header_bytes: int) -> EntryBatch:
    """A copy with room for another digest than the batch was made for."""
    view, room, skipped = memoryview(batch.buffer), bytes(header_bytes), batch.header_bytes
    grown = header_bytes - skipped
    parts = [part for at, end in pairwise(batch.offsets) for part in (room, view[at + skipped : end])]
    first = batch.offsets[0]
    offsets = array("I", [at - first + index * grown for index, at in enumerate(batch.offsets)])
    return EntryBatch(bytearray().join(parts), offsets, header_bytes, batch.message_count)
