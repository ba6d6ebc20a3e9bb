"""World: all of the modelled ledger at one moment: bookies, metadata, writer, recoverers; and what must hold of it.

Everything here is immutable; a step makes another world. The steps are in `protocol_writer` and `protocol_recoverer`.
"""

from array import array
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import lru_cache

from bookie.ledgers import Ledgers
from bookkeeper.ledger_end.recovery import Recovery
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment
from bookkeeper.write.quorum_tracker import Quorum, QuorumTracker
from simulation.checks.history import Violation
from simulation.protocol.exhaustive import Frozen
from wire.bookie.codes import BookieCode
from wire.run import HEADER_BYTES_CRC32C, EntryRun

KEY = b"k"
LEDGER = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Size of the world. `bugs` are the model's own planted ones, see `simulation.protocol`."""

    bookies: int
    quorum: Quorum
    entries: int
    recoverers: int
    given_up_max: int = 0
    """Times that the writer may give up a bookie: a time-out, or a lost connection."""
    damaged: int | None = None
    """The bookie that can read nothing of what it has."""
    bugs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stored:
    """The ledger's metadata at one version."""

    metadata: LedgerMetadata
    version: int

    def key(self) -> Hashable:
        found = self.metadata
        return (
            self.version,
            found.state,
            found.last_entry_id,
            tuple((each.first_entry_id, each.bookies) for each in found.segments),
        )


@dataclass(frozen=True, slots=True)
class Bookie:
    """Durable state of one bookie."""

    entries: frozenset[int] = frozenset()
    is_fenced: bool = False

    def refusal(self, *, recovery: bool) -> BookieCode | None:
        return _ledgers(self.is_fenced).refusal(LEDGER, KEY, recovery=recovery)


@lru_cache
def _ledgers(is_fenced: bool) -> Ledgers:
    ledgers = Ledgers()
    ledgers.ensure(LEDGER, KEY)
    if is_fenced:
        ledgers.fence(LEDGER)
    return ledgers


@dataclass(frozen=True, slots=True)
class Add:
    """An add of the writer on its way to a bookie."""

    piece: int
    seat: int
    entry_id: int
    is_awaited: bool = True
    """False: the writer has given it up, and it may arrive all the same."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The client that made the ledger. `queues`: by bookie, in order."""

    tracker: Frozen[QuorumTracker]
    ensemble: tuple[str, ...]
    queues: tuple[tuple[Add, ...], ...]
    known: Stored
    is_open: bool = True
    given_up: int = 0
    failed: frozenset[str] = frozenset()
    """Bookies that are not taken again."""
    change: tuple[int, tuple[str, ...], tuple[int, ...]] | None = None
    """First entry id, ensemble and leaving seats of a compare-and-set that is under way."""

    def key(self) -> Hashable:
        rest = (self.ensemble, self.queues, self.is_open, self.given_up, self.failed, self.change)
        return (self.tracker.key, self.known.version, rest)


Request = tuple[object, ...]
"""Request under way: ("fence", bookie), ("read", bookie, entry id, fence first), ("add", bookie, piece, seat, first, count),
("close", last, length). Bookies are indexes in the ensemble."""


@dataclass(frozen=True, slots=True)
class Recoverer:
    """A client that opens the ledger. Nothing under way, and it is done: or it has given up."""

    machine: Frozen[Recovery] | None = None
    known: Stored | None = None
    adds: Frozen[QuorumTracker] | None = None
    requests: frozenset[Request] = frozenset()
    is_over: bool = False

    def key(self) -> Hashable:
        machine, adds = self.machine and self.machine.key, self.adds and self.adds.key
        return (machine, self.known and self.known.version, adds, self.requests, self.is_over)


@dataclass(frozen=True, slots=True)
class World:
    """One state. `lacs`: the last-add-confirmed in the header of each entry; `acknowledged`: the last entry that was."""

    bounds: Bounds
    bookies: tuple[Bookie, ...]
    stored: Stored
    writer: Writer
    recoverers: tuple[Recoverer, ...]
    lacs: tuple[int, ...] = ()
    acknowledged: int = -1

    def key(self) -> Hashable:
        """The recoverers are alike."""
        recoverers = [recoverer.key() for recoverer in self.recoverers]
        return (self.bookies, self.stored.key(), self.writer.key(), self.lacs, self.acknowledged, _unordered(recoverers))

    def with_bookie(self, name: str, bookie: Bookie) -> "World":
        at = int(name)
        return replace(self, bookies=(*self.bookies[:at], bookie, *self.bookies[at + 1 :]))

    def updated(self, known: Stored, change: Callable[[LedgerMetadata], LedgerMetadata | None]) -> "tuple[World, Stored]":
        """`LedgerRegistry.update`, all at once."""
        if known.version != self.stored.version and "last-writer-wins" not in self.bounds.bugs:
            if change(known.metadata) is None:
                return self, known
            known = self.stored
        metadata = change(known.metadata)
        if metadata is None:
            return self, known
        stored = Stored(metadata, self.stored.version + 1)
        before = self.stored.metadata
        if before.state == LedgerState.CLOSED and before != metadata:
            raise Violation(f"the metadata was closed at {before.last_entry_id}, and is written again")
        after = replace(self, stored=stored)
        after.check()
        return after, stored

    def check(self) -> None:
        """Checks that acknowledged entries are where the metadata says, and before the end; and all entries before the end."""
        metadata, bounds = self.stored.metadata, self.bounds
        is_closed = metadata.state == LedgerState.CLOSED
        if is_closed and self.acknowledged > metadata.last_entry_id:
            raise Violation(f"entry {self.acknowledged} is acknowledged, and the ledger is closed at {metadata.last_entry_id}")
        for entry_id in range(max(self.acknowledged, metadata.last_entry_id) + 1):
            segment = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1]
            names = [segment.bookies[index] for index in bounds.quorum.write_set(entry_id)]
            if sum(entry_id in self.bookies[int(name)].entries for name in names) < bounds.quorum.ack_quorum:
                raise Violation(
                    f"entry {entry_id} is not on an ack quorum of {names}, with {metadata.last_entry_id} as the end"
                )


def _unordered(keys: list[Hashable]) -> Hashable:
    return frozenset((key, keys.count(key)) for key in keys)


def first_world(bounds: Bounds) -> World:
    """A ledger that was just made, on the first bookies."""
    names = tuple(map(str, range(bounds.quorum.ensemble_size)))
    quorum = bounds.quorum
    metadata = LedgerMetadata(quorum.ensemble_size, quorum.write_quorum, quorum.ack_quorum, (Segment(0, names),))
    stored = Stored(metadata, 0)
    writer = Writer(Frozen(QuorumTracker(quorum)), names, ((),) * bounds.bookies, stored)
    return World(bounds, (Bookie(),) * bounds.bookies, stored, writer, (Recoverer(),) * bounds.recoverers)


@lru_cache
def run_of(first_entry_id: int, lacs: tuple[int, ...]) -> EntryRun:
    """Entries of one byte each, with these last-add-confirmeds in their headers."""
    buffer, offsets = bytearray(), array("I", [0])
    for entry_id, confirmed in enumerate(lacs, first_entry_id):
        numbers = (LEDGER, entry_id, confirmed, entry_id + 1)
        buffer += b"".join(number.to_bytes(8, signed=True) for number in numbers) + bytes(HEADER_BYTES_CRC32C - 32) + b"x"
        offsets.append(len(buffer))
    return EntryRun(LEDGER, first_entry_id, bytes(buffer), offsets)
