"""BookieReplicas: what other bookies have of the ledgers of one bookie. Satisfies `bookie.upkeep.scrub.Replicas`.

The ledger's metadata name the bookies to ask, never the bookie itself; every digest is checked, since a bookie does not.
Bound: one read at a time for each call, of READ_ENTRIES_MAX entries and READ_BYTES_MAX.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import LOST_CODES, DamagedEntry, sound_entries
from bookkeeper.write.quorum_tracker import Quorum
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.digests import DigestType
from wire.run import EntryRun

READ_ENTRIES_MAX = 500
READ_BYTES_MAX = 512 * 1024
log = logging.getLogger("bookie.replicas")


class NoReplica(BookieError):
    """No other bookie gave the entry. `is_lost`: each was asked, and none has it sound; otherwise one may have it later."""

    def __init__(self, ledger_id: int, entry_id: int, reasons: Sequence[str], *, is_lost: bool) -> None:
        why = "; ".join(reasons) or "there is no other replica"
        super().__init__(BookieCode.EIO, ledger_id, f"entry {entry_id} from no other bookie: {why}")
        self.is_lost = is_lost


class BookieReplicas:
    """Replicas for the bookie called `bookie_id`. The others are those in `bookies` at the time of each call."""

    def __init__(self, bookie_id: str, registry: LedgerRegistry, bookies: Mapping[str, BookieClient]) -> None:
        self._bookie_id, self._registry, self._bookies = bookie_id, registry, bookies

    async def fetch(self, ledger_id: int, first_entry_id: int, last_entry_id: int) -> Iterable[EntryRun]:
        """See `bookie.upkeep.scrub.Replicas`: what can be had of these, which is a block's at most."""
        metadata = (await self.ledger(ledger_id)).metadata
        runs: list[EntryRun] = []
        failure: NoReplica | None = None
        at = first_entry_id
        while at <= last_entry_id and (failure is None or failure.is_lost):
            try:
                run = await self.read(ledger_id, metadata, at, last_entry_id + 1 - at)
            except NoReplica as error:
                failure = error
                at += 1
            else:
                runs.append(run)
                at += run.count
        if failure is not None:
            log.warning(line("no other replica of some entries can be read", ledger=ledger_id, found=len(runs), reason=failure))
        if failure is not None and not failure.is_lost and not runs:
            raise failure
        return runs

    async def sound(self, run: EntryRun) -> Iterable[EntryRun]:
        """See `bookie.upkeep.scrub.Replicas`. None of a ledger without digests: nothing shows them sound."""
        metadata = (await self.ledger(run.ledger_id)).metadata
        return [] if metadata.digest_type == DigestType.DUMMY else list(_sound_parts(run, metadata))

    async def ledger(self, ledger_id: int) -> RegisteredLedger:
        """The ledger as registered now. BookieError; ENOLEDGER for a deleted ledger."""
        try:
            return await self._registry.read(ledger_id)
        except NoSuchLedger as error:
            raise BookieError(BookieCode.ENOLEDGER, ledger_id, "its metadata is gone") from error
        except LedgerError as error:
            raise BookieError(BookieCode.EIO, ledger_id, f"metadata: {error}") from error

    async def read(self, ledger_id: int, metadata: LedgerMetadata, first_entry_id: int, count_max: int) -> EntryRun:
        """Entries, at least the first of those asked for, from the first bookie that has it sound. NoReplica."""
        starts = [segment.first_entry_id for segment in metadata.segments]
        at = bisect_right(starts, first_entry_id) - 1
        count_max = min(count_max, READ_ENTRIES_MAX)
        if at + 1 < len(starts):
            count_max = min(count_max, starts[at + 1] - first_entry_id)
        ensemble = metadata.segments[at].bookies
        reasons, is_lost = list[str](), True
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        for name in (ensemble[index] for index in quorum.write_set(first_entry_id)):
            if name == self._bookie_id:
                continue
            try:
                return await self._read_from(name, ledger_id, metadata, first_entry_id, count_max)
            except (BookieError, DamagedEntry) as error:
                reasons.append(f"{name}: {error}")
                is_lost = is_lost and (isinstance(error, DamagedEntry) or error.code in LOST_CODES)
        raise NoReplica(ledger_id, first_entry_id, reasons, is_lost=is_lost)

    async def _read_from(
        self, name: str, ledger_id: int, metadata: LedgerMetadata, first_entry_id: int, count_max: int
    ) -> EntryRun:
        bookie = self._bookies.get(name)
        if bookie is None:
            raise BookieError(BookieCode.ETOOMANYREQUESTS, ledger_id, "the bookie is not available")
        run = await bookie.read(ledger_id, first_entry_id, count_max, READ_BYTES_MAX)
        sound = sound_entries(run, ledger_id, first_entry_id, metadata)
        return run.entries(first_entry_id, sound.count)  # as it came: a bookie stores entries without knowing their digest


def _sound_parts(run: EntryRun, metadata: LedgerMetadata) -> Iterator[EntryRun]:
    at = run.first_entry_id
    while at <= run.last_entry_id:
        rest = run.entries(at, run.last_entry_id + 1 - at)
        try:
            sound = sound_entries(rest, run.ledger_id, at, metadata)
        except DamagedEntry:
            at += 1
        else:
            yield rest.entries(at, sound.count)
            at += sound.count
