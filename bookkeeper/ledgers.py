"""The contract of the ledger client, as `managed_ledger` uses it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bookkeeper.write.parts import Part
from wire.run import EntryBatch, EntryRun


class LedgerError(Exception):
    """A ledger operation failed."""


class NoSuchLedger(LedgerError):
    """The ledger's metadata is not there."""


class LedgerFenced(LedgerError):
    """Another client recovered the ledger; this writer must stop."""


class LedgerClosed(LedgerError):
    """This writer was closed or failed before."""


class LedgerBusy(LedgerError):
    """Too many appends are under way. Nothing has changed: a later one may be taken."""


class NoSuchEntry(LedgerError):
    """The entry was never accepted."""


class LedgerUnreadable(LedgerError):
    """The entry exists, but no replica could give it (damage, I/O, wrong digest). Never treat it as missing."""


class EntryLost(LedgerUnreadable):
    """Every replica was asked, and none has it any more: asking again will not help."""


class LedgerWriter(Protocol):
    """An open ledger that this process writes."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def last_add_confirmed(self) -> int: ...
    @property
    def length_bytes(self) -> int:
        """Payload bytes of all entries appended."""

    @property
    def next_entry_id(self) -> int:
        """The id that the next appended entry gets."""

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        """Give the entries their ids, seal them in place and store them. Futures complete in call order.

        After the first failure every pending and later append fails with LedgerError (LedgerFenced, LedgerClosed); LedgerBusy
        alone is of the one append.
        """

    def take_part(self, part: Part) -> bool:
        """Give the part its ids. True: the caller hands it to `together.send` before the next append here.

        False: not now, or never; `append` takes its entries, or says why not.
        """

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun: ...
    async def close(self) -> None:
        """Write the closed state (last entry id, length) to the ledger's metadata; waits for pending appends."""


class LedgerReader(Protocol):
    """A closed (recovered) ledger."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def last_entry_id(self) -> int: ...
    @property
    def length_bytes(self) -> int: ...
    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Digests are verified. A run that starts at `first_entry_id`, see `BookieClient.read`."""


@runtime_checkable
class ScatteredReads(Protocol):
    """A LedgerStore that can read entries of many ledgers in one go."""

    async def pick(
        self, wanted: "Sequence[tuple[LedgerReader | LedgerWriter, Sequence[int]]]", bytes_max: int
    ) -> list[EntryRun]:
        """Runs of one entry each, verified: those of the confirmed, scattered entries that could be read at once.

        Entries beyond `bytes_max` are left out; `read` says why others are missing.
        """


@dataclass(frozen=True, slots=True)
class Quorums:
    """Bookies of an ensemble, copies of each entry, and how many of these are waited for; 0: as the settings say."""

    ensemble_size: int = 0
    write_quorum: int = 0
    ack_quorum: int = 0


DEFAULT_QUORUMS = Quorums()


class LedgerStore(Protocol):
    """Creates, opens and deletes ledgers."""

    async def create(self, custom_metadata: Mapping[str, bytes], quorums: Quorums = DEFAULT_QUORUMS) -> LedgerWriter: ...
    async def open(self, ledger_id: int) -> LedgerReader:
        """Open with recovery: fences the ledger, finds its end, closes it. NoSuchLedger."""

    async def delete(self, ledger_id: int) -> None:
        """Delete the metadata; bookies collect the bytes later. NoSuchLedger is not an error."""
