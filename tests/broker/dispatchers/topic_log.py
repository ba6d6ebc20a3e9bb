"""The truth about a topic and its cursor, message by message: what the dispatchers are judged against."""

from array import array
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from pyroaring import BitMap

from broker.dispatchers.contract import EntriesPicked, EntriesRead, NothingToRead, Read
from broker.dispatchers.reading.replays import first_of
from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun, RunMetadata

BEFORE_ALL = Position(-1, -1)
EMPTY_MAX = 6
"""Few, so that a pick comes in several runs (`wire.picked_runs`)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a batch of `count` messages (never 0), or a marker."""

    position: Position
    count: int
    key_hash: int
    is_marker: bool


class TopicLog:
    """Entries in order, and which of them are acknowledged."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.place: dict[Position, int] = {}
        self.acked: set[Position] = set()
        self.left: dict[Position, int] = {}
        """Partly acknowledged batches: the bits of the messages that are left."""
        self._next = Position(5, 0)
        self._done = 0

    def publish(self, count: int, key_hash: int, *, is_marker: bool) -> None:
        entry = Entry(self._next, count, key_hash, is_marker)
        self.place[entry.position] = len(self.entries)
        self.entries.append(entry)
        self._next = Position(self._next.ledger_id, self._next.entry_id + 1)

    def roll_over(self) -> None:
        if self._next.entry_id:
            self._next = Position(self._next.ledger_id + 2, 0)

    def entry(self, position: Position) -> Entry:
        return self.entries[self.place[position]]

    def cost(self, position: Position) -> int:
        """Messages of the entry that are not acknowledged."""
        left = self.left.get(position)
        return self.entry(position).count if left is None else left.bit_count()

    def acknowledge(self, position: Position) -> None:
        self.acked.add(position)
        self.left.pop(position, None)

    def acknowledge_part(self, position: Position) -> int:
        """One message more of the batch, if at least one is left then; how many."""
        left = self.left.get(position, (1 << self.entry(position).count) - 1)
        if left.bit_count() < 2:
            return 0
        self.left[position] = left & (left - 1)
        return 1

    def reset(self, place: int) -> None:
        """Seek: everything before is acknowledged, nothing after it."""
        self.acked = {entry.position for entry in self.entries[:place]}
        self.left.clear()
        self._done = 0

    def mark_delete(self) -> Position:
        while self._done < len(self.entries) and self.entries[self._done].position in self.acked:
            self._done += 1
        return self.entries[self._done - 1].position if self._done else BEFORE_ALL

    def unacked(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.position not in self.acked and not entry.is_marker]

    def answer(self, read: Read, entries_max: int) -> EntriesRead | EntriesPicked | NothingToRead:
        """Answers as a driver does: consecutive entries of one ledger, looked up now."""
        mark_delete = self.mark_delete()
        if read.picks is not None:
            parts = [
                self._picked(read.read_id, ledger_id, part)
                for ledger_id, picks in first_of(read.picks, entries_max)
                for part in _far_apart(picks)
            ]
            return EntriesPicked(read.read_id, parts)
        start = self._done
        if read.position is not None:
            start = self.place.get(read.position, -1)
            if start < 0:
                start = next(
                    (at for at, entry in enumerate(self.entries) if entry.position >= read.position), len(self.entries)
                )
        found = self.entries[start : start + entries_max]
        if not found:
            return NothingToRead(read.read_id)
        ledger_id = found[0].position.ledger_id
        found = [entry for entry in found if entry.position.ledger_id == ledger_id]
        return self._entries_read(read.read_id, found, mark_delete, start + len(found) == len(self.entries))

    def _picked(self, read_id: int, ledger_id: int, picks: BitMap) -> EntriesRead:
        """A run in which all but the picks are empty, as `wire.picked_runs` makes it."""
        ids = range(picks.min(), picks.max() + 1)
        found = [self.entry(Position(ledger_id, entry_id)) for entry_id in ids]
        answer = self._entries_read(read_id, found, self.mark_delete(), False)
        offsets = array("I", accumulate((entry_id in picks for entry_id in ids), initial=0))
        return replace(answer, run=EntryRun(ledger_id, picks.min(), b"", offsets, header_bytes=0))

    def _entries_read(self, read_id: int, found: list[Entry], mark_delete: Position, is_last: bool) -> EntriesRead:
        ledger_id, first = found[0].position
        run = EntryRun(ledger_id, first, b"", array("I", bytes(4 * len(found) + 4)))
        counts = array("I", [entry.count for entry in found])
        flags = array("B", [FLAG_MARKER * entry.is_marker for entry in found])
        metadata = RunMetadata(counts, flags, max(flags), sum(counts))
        acknowledged = BitMap([at.entry_id for at in self.acked if at.ledger_id == ledger_id and at > mark_delete])
        ack_sets = {at.entry_id: (left,) for at, left in self.left.items() if at.ledger_id == ledger_id}
        hashes = array("I", [entry.key_hash for entry in found])
        return EntriesRead(read_id, run, metadata, mark_delete, acknowledged, ack_sets, hashes, is_last)


def _far_apart(picks: BitMap) -> list[BitMap]:
    """Some entries of a ledger as they come in runs: another one after a gap."""
    ids = picks.to_array()
    breaks = [place for place in range(1, len(ids)) if ids[place] - ids[place - 1] > EMPTY_MAX]
    return [BitMap(ids[start:stop]) for start, stop in zip([0, *breaks], [*breaks, len(ids)], strict=True)]


def publish_some(log: TopicLog, rng: Random, hashes: list[int]) -> None:
    """Up to eight entries: mostly single messages, some batches, a few markers, now and then in a new ledger."""
    if rng.random() < 0.15:
        log.roll_over()
    batched = rng.random() < 0.3
    for _ in range(rng.randint(1, 8)):
        count = rng.randint(1, 5) if batched else 1
        log.publish(count, rng.choice(hashes), is_marker=rng.random() < 0.05)
