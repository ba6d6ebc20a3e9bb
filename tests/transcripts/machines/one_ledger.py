"""Topic of one ledger with entries of one message each, from which the reads of a dispatcher are answered."""

from array import array
from collections.abc import Mapping, Sequence

from pyroaring import BitMap

from broker.dispatchers.contract import EntriesPicked, EntriesRead, Read
from tests.transcripts.transcript import TranscriptError
from wire.position import Position
from wire.run import EntryRun, RunMetadata

LEDGER = 1


class OneLedger:
    """Entries by their keys, `slots` the slot of each key, and which entries are acknowledged."""

    def __init__(self, slots: Mapping[str, int]) -> None:
        self.keys: list[str] = []
        self.acknowledged: set[int] = set()
        self.pending: Sequence[int] = ()
        """Entries that a read gives as acknowledged: they are, in a transaction that is not decided."""
        self._slots = slots
        self._reads: dict[int, Read] = {}

    def asked(self, read: Read) -> str:
        """Remembers a read; its arguments as text."""
        self._reads[read.read_id] = read
        if read.picks is not None:
            return f"picks={','.join(map(str, _picked(read)))}"
        start = "cursor" if read.position is None else str(read.position.entry_id)
        return f"from={start} max={read.entries_max}{' again' if read.is_replay else ''}"

    def run_for(self, read_id: int, entries_max: int | None) -> EntriesRead:
        """Answer to a read, with fewer entries than it allows where `entries_max` says so."""
        read = self._read(read_id, has_picks=False)
        first = self._mark_delete() + 1 if read.position is None else read.position.entry_id
        return self._answer(read, first, min(first + (entries_max or read.entries_max), len(self.keys)))

    def picks_for(self, read_id: int) -> EntriesPicked:
        read = self._read(read_id, has_picks=True)
        return EntriesPicked(read_id, [self._answer(read, entry, entry + 1) for entry in _picked(read)])

    def _read(self, read_id: int, *, has_picks: bool) -> Read:
        read = self._reads.get(read_id)
        if read is None or (read.picks is not None) is not has_picks:
            raise TranscriptError(f"there was no Read id={read_id} {'with' if has_picks else 'without'} picks")
        return read

    def _mark_delete(self) -> int:
        return next(entry for entry in range(len(self.keys) + 1) if entry not in self.acknowledged) - 1

    def _answer(self, read: Read, first: int, end: int) -> EntriesRead:
        count = end - first
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * count + 4)))
        metadata = RunMetadata(array("I", [1] * count), array("B", bytes(count)), 0, count)
        hashes = array("I", [self._slots[key] for key in self.keys[first:end]])
        mark_delete, is_last = Position(LEDGER, self._mark_delete()), end == len(self.keys)
        return EntriesRead(
            read.read_id, run, metadata, mark_delete, BitMap([*self.acknowledged, *self.pending]), {}, hashes, is_last
        )


def _picked(read: Read) -> Sequence[int]:
    return [entry for _, entries in read.picks or () for entry in entries]
