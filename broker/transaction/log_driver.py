"""The log of one coordinator: a managed ledger of its own, and the cursor that marks its needed records.

Owns both. Apache's names: `__transaction_log_N` in pulsar/system, the cursor `transaction.subscription`, the property
`max_local_txn_id` (MLTransactionLogImpl, MLTransactionSequenceIdGenerator). The machine knows the meaning of the records.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from pyroaring import BitMap

from managed_ledger.append.gathered_appends import GatheredAppends
from managed_ledger.contract import ManagedLedger, ManagedLedgerError, ManagedLedgers
from ports.clock import Clock
from ports.logs import line
from ports.loop.promise import Promise
from wire.position import Position
from wire.run import EntryRun

from ..errors import BrokerError, ServerError
from ..service.topic_name import TopicName
from .log_format import MalformedEntry, decode, encode
from .records import Place, Record

log = logging.getLogger(__name__)

CURSOR = "transaction.subscription"
MAX_SEQUENCE = "max_local_txn_id"
SEQUENCES_RESERVED = 10_000
"""Numbers noted as given at a time, before they are given: should the log be empty after a crash, none is given again."""
REPLAYED_MIN = 2_000
"""Entries at the end of the log that are read also when nothing needs them, to know how their transactions ended."""
_RETENTION_MS, _RETENTION_BYTES = 600_000, 16 << 20
"""Time that unneeded records are kept: longer than a client tries to get an answer."""
_READ_ENTRIES, _READ_BYTES = 500, 1 << 20

OnRecord = Callable[[Record, Place, int], Sequence[Place]]
"""Takes a record, its place and the highest number given at its time; returns places that are not needed any more."""


def log_topic(coordinator_id: int) -> TopicName:
    return TopicName.parse(f"persistent://pulsar/system/__transaction_log_{coordinator_id}")


class TransactionLog:
    """Open log of one coordinator. BrokerError(PERSISTENCE) where nothing else is said: it is of no use after that."""

    def __init__(self, coordinator_id: int, ledger: ManagedLedger, clock: Clock) -> None:
        self._coordinator_id, self._clock = coordinator_id, clock
        self.ledger = ledger
        self._cursor = ledger.cursors[CURSOR]
        self._reserved = int(ledger.properties.get(MAX_SEQUENCE, -1))
        self._reserving: asyncio.Lock = asyncio.Lock()
        self._appends = GatheredAppends(ledger)
        self._last: Promise[Position] | None = None

    @classmethod
    async def open(cls, ledgers: ManagedLedgers, coordinator_id: int, clock: Clock) -> "TransactionLog":
        """Opens the log and fences its former owner."""
        try:
            ledger = await ledgers.open(log_topic(coordinator_id).managed_ledger_name)
            ledger.set_retention(_RETENTION_MS, _RETENTION_BYTES)
            await ledger.open_cursor(CURSOR, ledger.first_position())
        except ManagedLedgerError as error:
            raise _failure(coordinator_id, error) from error
        return cls(coordinator_id, ledger, clock)

    async def replay(self, on_record: OnRecord) -> int:
        """Reads all needed records and those before them; returns the highest number that may have been given."""
        try:
            position: Position | None = self._begin()
            while position is not None:
                run = await self.ledger.read(position, _READ_ENTRIES, _READ_BYTES)
                position = None if run is None else Position(run.ledger_id, run.last_entry_id + 1)
                if run is not None:
                    self._replay(run, on_record)
        except (ManagedLedgerError, MalformedEntry) as error:
            raise _failure(self._coordinator_id, error) from error
        return self._reserved

    def _begin(self) -> Position:
        needed, left = self._cursor.first_unacknowledged(), REPLAYED_MIN
        for facts in reversed(self.ledger.ledgers()):
            if facts.entries >= left:
                return min(needed, Position(facts.ledger_id, facts.entries - left))
            left -= facts.entries
        return min(needed, self.ledger.first_position())

    def _replay(self, run: EntryRun, on_record: OnRecord) -> None:
        for entry_id in range(run.first_entry_id, run.last_entry_id + 1):
            position = Position(run.ledger_id, entry_id)
            try:
                records = decode(run.payload(entry_id))
            except MalformedEntry as error:
                raise MalformedEntry(f"entry {position}: {error}") from error
            for index, (record, last_sequence) in enumerate(records):
                self.let_go(on_record(record, Place(position, index, len(records)), last_sequence))

    # ---- Writing

    async def reserve(self, sequence: int) -> None:
        """Reserves the number before it is given for the first time."""
        async with self._reserving:
            if sequence > self._reserved:
                await self._note(sequence + SEQUENCES_RESERVED)

    def is_reserved(self, sequence: int) -> bool:
        return sequence <= self._reserved

    async def _note(self, sequence: int) -> None:
        try:
            await self.ledger.set_properties({**self.ledger.properties, MAX_SEQUENCE: str(sequence)})
        except ManagedLedgerError as error:
            raise _failure(self._coordinator_id, error) from error
        self._reserved = sequence

    async def append(self, record: Record, last_sequence: int, on_stored: Callable[[Place], None]) -> None:
        """Appends a record; returns when it is durable. Records are in the order of the calls. `on_stored` gets the place
        first, also without a waiting caller.
        """
        payload = encode(self._coordinator_id, record, last_sequence, self._clock.now_ms())
        self._last = stored = self._appends.append(payload)
        stored.listen(partial(_tell, on_stored))
        await self._outcome(stored)

    async def all_stored(self) -> None:
        """Returns when all records appended so far are durable."""
        if self._last is not None:
            await self._outcome(self._last)

    async def _outcome(self, stored: Promise[Position]) -> None:
        """Waits for an append. A cancelled caller does not stop it: others wait for it."""
        try:
            await asyncio.shield(stored)
        except ManagedLedgerError as error:
            raise _failure(self._coordinator_id, error) from error

    def let_go(self, places: Sequence[Place]) -> None:
        """Deletes records in the order of the log, so that the opening of a transaction goes first, also with a crash in
        between.
        """
        for place in places:
            position = place.position
            if place.parts == 1:
                self._cursor.acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
            else:
                self._cursor.acknowledge_batch_indexes(position, _all_but(place.part, place.parts), place.parts)

    async def close(self, last_sequence: int) -> None:
        """Closes the log, with the exact last number noted if possible: numbers go on without a gap then. Never fails."""
        try:
            if self._reserved > last_sequence >= 0:
                await self._note(last_sequence)
        except BrokerError as error:
            log.warning(line("last transaction number not stored", coordinator=self._coordinator_id, error=error))
        self._appends.flush()
        try:
            await self.ledger.close()
        except ManagedLedgerError as error:
            log.warning(line("a transaction log was not closed cleanly", coordinator=self._coordinator_id, error=error))


def _tell(on_stored: Callable[[Place], None], stored: "asyncio.Future[Position]") -> None:
    if not stored.cancelled() and stored.exception() is None:
        on_stored(Place(stored.result()))


def _all_but(index: int, size: int) -> tuple[int, ...]:
    """The ack set (bit 1: not acknowledged) that acknowledges one part of so many."""
    bits = ((1 << size) - 1) & ~(1 << index)
    return tuple((bits >> shift) & ((1 << 64) - 1) for shift in range(0, size, 64))


def _failure(coordinator_id: int, error: Exception) -> BrokerError:
    return BrokerError(ServerError.PERSISTENCE, f"The log of transaction coordinator {coordinator_id}: {error}")
