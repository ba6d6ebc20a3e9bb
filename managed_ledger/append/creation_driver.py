"""LedgerCreation: makes the next ledger of a managed ledger and lists it. Only then may it be used.

A ledger that could not be listed because another owner wrote the list, or because the metadata had no room, is deleted again.
"""

from bookkeeper.ledgers import DEFAULT_QUORUMS, LedgerError, LedgerStore, LedgerWriter
from managed_ledger.errors import AppendRefused, ManagedLedgerFenced, MetadataFull

from ..ledgers.deletion_driver import LedgerDeletion
from ..ledgers.metadata_driver import LogMetadata


class LedgerCreation:
    """Opens the sequence's next ledger."""

    def __init__(self, metadata: LogMetadata, ledgers: LedgerStore, deletion: LedgerDeletion) -> None:
        self._metadata = metadata
        self._ledgers = ledgers
        self._deletion = deletion
        self.quorums = DEFAULT_QUORUMS
        """Quorums of the next ledgers."""

    async def begin(self) -> LedgerWriter:
        """AppendRefused: bookies take none now, or the metadata has no room; nothing has changed. ManagedLedgerError."""
        name = self._metadata.name
        custom = {"application": b"pulsar", "component": b"managed-ledger", "pulsar/managed-ledger": name.encode()}
        try:
            writer = await self._ledgers.create(custom, self.quorums)
        except LedgerError as error:
            raise AppendRefused(f"{name}: a ledger could not be made: {error}") from error
        self._metadata.sequence.open(writer.ledger_id)
        try:
            await self._metadata.write()
        except ManagedLedgerFenced:
            if writer.ledger_id not in self._metadata.listed:
                await self._deletion.delete_unlisted(writer.ledger_id)
            raise
        except MetadataFull as error:
            await self._take_back(writer.ledger_id)
            raise AppendRefused(f"{name}: a new ledger could not be named: {error}") from error
        self._deletion.start()
        return writer

    async def _take_back(self, ledger_id: int) -> None:
        """Delete the ledger, which has no entry. Another write may have named it meanwhile; then the next write says so."""
        if ledger_id in self._metadata.listed:
            self._metadata.mark_deleting(ledger_id)
        self._metadata.sequence.close_open(0)
        if ledger_id not in self._metadata.listed:
            await self._deletion.delete_unlisted(ledger_id)
