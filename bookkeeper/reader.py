"""EntryReader: confirmed entries of a ledger from whichever replica has them sound. Owns no state but what it was given.

Every digest is checked here, because a bookie does not. What is read is known to be confirmed: no answer of any bookie makes it
"no such entry"; it is there, or it is unreadable.
"""

import dataclasses
import logging
from bisect import bisect_right
from collections.abc import Mapping

from bookkeeper.ensemble import Quorum
from bookkeeper.ledgers import EntryLost, LedgerUnreadable
from bookkeeper.metadata_codec import LedgerMetadata
from bookkeeper.ports import BookieClient
from ports.logs import line
from wire.bookie_codes import BookieCode, BookieError
from wire.digests import HEADER_BYTES, first_damaged
from wire.run import EntryRun

LOST_CODES = frozenset({BookieCode.ENOENTRY, BookieCode.ENOLEDGER, BookieCode.EIO})
"""Of a bookie that was asked: it does not have what it stored once. Any other says nothing about the entry."""

_log = logging.getLogger(__name__)


class DamagedEntry(Exception):
    """What a bookie gave is not what was written."""


class EntryReader:
    """Reads one ledger with the segments of `metadata`."""

    def __init__(self, ledger_id: int, metadata: LedgerMetadata, bookies: Mapping[str, BookieClient]) -> None:
        self._ledger_id, self._metadata, self._bookies = ledger_id, metadata, bookies
        self._quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._starts = [segment.first_entry_id for segment in metadata.segments]

    def follow(self, metadata: LedgerMetadata) -> None:
        """The ledger's ensembles are others now."""
        self._metadata = metadata
        self._starts = [segment.first_entry_id for segment in metadata.segments]

    async def read(self, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """A run from `first_entry_id`, which must be confirmed. LedgerUnreadable; EntryLost when that is for ever."""
        at = bisect_right(self._starts, first_entry_id) - 1
        if at + 1 < len(self._starts):
            count_max = min(count_max, self._starts[at + 1] - first_entry_id)
        ensemble = self._metadata.segments[at].bookies
        reasons, is_lost = [], True
        for index in self._quorum.write_set(first_entry_id):
            name = ensemble[index]
            try:
                return await self._read_from(name, first_entry_id, count_max, bytes_max)
            except (BookieError, DamagedEntry) as error:
                reasons.append(f"{name}: {error}")
                is_lost = is_lost and (isinstance(error, DamagedEntry) or error.code in LOST_CODES)
                _log.warning(
                    line("a replica could not be read", ledger=self._ledger_id, entry=first_entry_id, reason=reasons[-1])
                )
        raise (EntryLost if is_lost else LedgerUnreadable)(
            f"ledger {self._ledger_id} entry {first_entry_id}: {'; '.join(reasons)}"
        )

    async def _read_from(self, name: str, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        bookie = self._bookies.get(name)
        if bookie is None:
            raise BookieError(BookieCode.ETOOMANYREQUESTS, self._ledger_id, "the bookie is not available")
        run = await bookie.read(self._ledger_id, first_entry_id, count_max, bytes_max)
        return sound_entries(run, self._ledger_id, first_entry_id, self._metadata)


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
