"""BookieClient: what the ledger client needs of a bookie, whether in this process or across a socket."""

import asyncio
from typing import Protocol

from wire.run import EntryRun


class BookieClient(Protocol):
    """One bookie. Errors are `wire.bookie_codes.BookieError`."""

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """Store a run; done when its journal record is on disk. Futures of one ledger complete in call order.

        EFENCED unless `recovery` when the ledger is fenced; EUA when the key differs from the first add's.
        """

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """A run that starts at `first_entry_id`: at least one entry, at most `count_max`, and at most `bytes_max` bytes
        unless the first entry alone is larger. Stops at a gap. ENOLEDGER, ENOENTRY, EIO."""

    async def fence(self, ledger_id: int, master_key: bytes) -> int:
        """Refuse further adds, durably; then the highest last-add-confirmed this bookie knows of the ledger (-1: none)."""

    async def last_entry_id(self, ledger_id: int) -> int:
        """The highest entry id stored, -1 for none; ENOLEDGER."""
