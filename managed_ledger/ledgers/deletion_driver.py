"""LedgerDeletion: deletes ledgers that are no part of the log any more, after the metadata says so.

Two steps, and a crash may come between: the list keeps a ledger, marked, until its deletion is certain (`ledgers/info.py`), and
the next owner of the managed ledger deletes it again. Deleting twice is fine. A ledger that was made but not listed when a
crash came has the managed ledger's name in its custom metadata (`pulsar/managed-ledger`): an offline check finds it by that.
"""

import asyncio
import logging

from bookkeeper.ledgers import LedgerError, LedgerStore
from ports.logs import line

from .metadata_driver import LogMetadata

_log = logging.getLogger(__name__)


class LedgerDeletion:
    """Deletes what `LogMetadata.deletable` names."""

    def __init__(self, metadata: LogMetadata, ledgers: LedgerStore) -> None:
        self._metadata = metadata
        self._ledgers = ledgers
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Delete the ledgers listed as deletable, in the background."""
        if self._metadata.deletable and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def finish(self) -> None:
        """Wait for started deletions."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def delete_all(self) -> bool:
        """Whether everything that is listed as such is deleted now."""
        while self._metadata.deletable:
            before = self._metadata.deletable
            await self.finish()
            self.start()
            await self.finish()
            if self._metadata.deletable == before:
                return False
        return True

    async def _run(self) -> None:
        try:
            for ledger_id in self._metadata.deletable:
                if await self._delete(ledger_id):
                    self._metadata.deleted(ledger_id)
        finally:
            self._task = None

    async def delete_unlisted(self, ledger_id: int) -> None:
        """Delete a ledger that was never listed."""
        await self._delete(ledger_id)

    async def _delete(self, ledger_id: int) -> bool:
        try:
            await self._ledgers.delete(ledger_id)
        except LedgerError as error:
            _log.warning(line("ledger not deleted", managed_ledger=self._metadata.name, ledger=ledger_id, error=error))
            return False
        _log.info(line("ledger deleted", managed_ledger=self._metadata.name, ledger=ledger_id))
        return True
