"""RunReads: consecutive entries of a ledger from memtables and entry logs, put together as one run."""

from bookie.adds.flusher import Flusher
from bookie.ledgers import LedgerState
from bookie.reads.log_reads import LogReads, unreadable
from bookie.reads.reading import Gathering, read_tables
from bookie.storage.storage import LedgerStorage
from wire.bookie.codes import BookieError
from wire.run import EntryRun
from wire.run_parts import answers, is_what_it_says


class RunReads:
    """Reads of one bookie. A reader pays per answer, and a block may hold very few entries."""

    def __init__(self, storage: LedgerStorage, flusher: Flusher, log_reads: LogReads) -> None:
        self._storage = storage
        self._flusher = flusher
        self._log_reads = log_reads

    async def read(self, state: LedgerState, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Returns at least the first entry; the entries after it within both bounds and `GATHER_BYTES`. BookieError."""
        run = read_tables(self._flusher.tables, state.ledger_id, first_entry_id, count_max, bytes_max)
        if run is None:
            run = await self._log_reads.read(state, self._flusher, first_entry_id, count_max, bytes_max)
        if not is_what_it_says(run):
            raise unreadable(state.ledger_id, first_entry_id, "holds other entries than it says")
        gathering = Gathering(run, count_max, bytes_max)
        while gathering.wants_more and gathering.take(await self._following(state, *gathering.rest)):
            pass
        run = gathering.whole()
        assert answers(run, state.ledger_id, first_entry_id, count_max), f"{run.first_entry_id}+{run.count} is no answer"
        return run

    async def _following(self, state: LedgerState, entry_id: int, count_max: int, bytes_max: int) -> EntryRun | None:
        """A run of sound entries; None: a read that begins there tells why."""
        run = read_tables(self._flusher.tables, state.ledger_id, entry_id, count_max, bytes_max)
        if run is None and self._storage.index.find(state.ledger_id, entry_id) is not None:
            try:
                run = await self._log_reads.read(state, self._flusher, entry_id, count_max, bytes_max)
            except BookieError:
                return None
        return run if run is not None and is_what_it_says(run) else None
