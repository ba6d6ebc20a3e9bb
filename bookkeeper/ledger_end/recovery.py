"""Recovery: finds the end of a ledger whose writer is gone, or must stop. Pure; decides, and sends nothing.

Order of work: fence the last ensemble, until no ack quorum can be made without a bookie that has answered; start after the
highest last-add-confirmed that was told; read on, entry by entry, until one is certainly absent; write what is found to its
whole write set again; close after it. Every read fences too: a bookie whose fence was lost must not take an add after it said
"no such entry" (BookKeeper issue 2614).

An entry is present with one sound copy, and absent when so many bookies promise never to have accepted it that no ack quorum is
left (write quorum - ack quorum + 1). Anything else, damage above all, is an error and not the end: a ledger is never
cut where an entry cannot be read.
"""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias, assert_never

from bookkeeper.write.quorum_tracker import FATAL_CODES, Quorum
from wire.bookie.codes import BookieCode
from wire.record import record
from wire.run import EntryRun

LENGTH_OFFSET = 24
"""Offset of the ledger's length in an entry's header."""


# -- what happened


@record(frozen=True, slots=True)
class Fenced:
    """The bookie takes no adds any more, durably; the highest last-add-confirmed it has seen."""

    bookie: int
    last_add_confirmed: int


@record(frozen=True, slots=True)
class FenceFailed:
    """The bookie could not be fenced."""

    bookie: int
    code: BookieCode


@record(frozen=True, slots=True)
class EntriesFound:
    """The bookie, fenced, has these entries; digests were verified."""

    bookie: int
    run: EntryRun


@record(frozen=True, slots=True)
class EntryMissing:
    """The bookie, fenced, promises that it never accepted the entry."""

    bookie: int
    entry_id: int


@record(frozen=True, slots=True)
class ReadFailed:
    """The bookie could not be fenced or not read, or its entry is damaged: it may or may not have the entry."""

    bookie: int
    entry_id: int
    code: BookieCode
    reason: str


@record(frozen=True, slots=True)
class Rewritten:
    """An ack quorum has the entries of the last Rewrite."""


@record(frozen=True, slots=True)
class RewriteFailed:
    """No ack quorum took them."""

    reason: str


@record(frozen=True, slots=True)
class LengthRead:
    """The length in the header of the entry that ReadLength named."""

    length_bytes: int


@record(frozen=True, slots=True)
class LengthUnreadable:
    """No replica gave that entry."""

    reason: str


Event: TypeAlias = (
    Fenced | FenceFailed | EntriesFound | EntryMissing | ReadFailed | Rewritten | RewriteFailed | LengthRead | LengthUnreadable
)


# -- what to do


@record(frozen=True, slots=True)
class Fence:
    """Fence the ledger at this bookie: Fenced or FenceFailed."""

    bookie: int


@record(frozen=True, slots=True)
class Read:
    """Read a run from `entry_id` at this bookie, fencing it before where that has not succeeded yet."""

    bookie: int
    entry_id: int
    fence_first: bool


@record(frozen=True, slots=True)
class Rewrite:
    """Store the entries, as they are, at their write sets with the recovery flag: Rewritten or RewriteFailed."""

    run: EntryRun


@record(frozen=True, slots=True)
class ReadLength:
    """Read a confirmed entry for its length: LengthRead or LengthUnreadable."""

    entry_id: int


@record(frozen=True, slots=True)
class Close:
    """The ledger ends here; recovery is done."""

    last_entry_id: int
    length_bytes: int


@record(frozen=True, slots=True)
class GiveUp:
    """The end cannot be told now; the ledger stays in recovery, and may be recovered later."""

    reason: str
    is_damage: bool = False


Effect: TypeAlias = Fence | Read | Rewrite | ReadLength | Close | GiveUp


class _Phase(Enum):
    FENCING = 1
    READING = 2
    REWRITING = 3
    MEASURING = 4
    DONE = 5


class Recovery:
    """One recovery of one ledger. Indexes of bookies are those in the last segment's ensemble."""

    def __init__(self, quorum: Quorum, segment_first_entry_id: int) -> None:
        self._quorum = quorum
        self._phase = _Phase.FENCING
        self._last = segment_first_entry_id - 1
        """The last entry that is known to belong to the ledger."""
        self._length: int | None = 0 if segment_first_entry_id == 0 else None
        """The ledger's length up to `_last`, once known."""
        self._fenced: dict[int, None] = {}
        self._unfenced: dict[int, BookieCode] = {}
        self._missing: dict[int, None] = {}
        self._failed: dict[int, ReadFailed] = {}

    @property
    def is_done(self) -> bool:
        return self._phase is _Phase.DONE

    def start(self) -> Sequence[Effect]:
        return [Fence(bookie) for bookie in range(self._quorum.ensemble_size)]

    def handle(self, event: Event) -> Sequence[Effect]:
        if self._phase is _Phase.DONE:
            return ()
        match event:
            case Fenced():
                return self._on_fenced(event)
            case FenceFailed():
                return self._on_fence_failed(event)
            case EntriesFound():
                return self._on_found(event.run)
            case EntryMissing():
                return self._on_missing(event)
            case ReadFailed():
                return self._on_read_failed(event)
            case Rewritten():
                return self._read_on()
            case LengthRead():
                return self._close(event.length_bytes)
            case RewriteFailed() | LengthUnreadable():
                return self._give_up(event.reason)
            case _:
                assert_never(event)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self._last >= -1
        assert self._phase in (_Phase.FENCING, _Phase.DONE) or self._is_covered(), "a bookie could still confirm entries"
        assert self._length is None or self._length >= 0
        if self._phase is _Phase.READING:
            write_set = self._quorum.write_set(self._last + 1)
            assert self._missing.keys() | self._failed.keys() <= set(write_set)
            assert len(self._missing) <= self._quorum.failures_max, "the entry is certainly absent"
        assert self._phase is not _Phase.MEASURING or self._length is None

    def _on_fenced(self, event: Fenced) -> Sequence[Effect]:
        self._fenced[event.bookie] = None
        if self._phase is not _Phase.FENCING:
            return ()
        if event.last_add_confirmed > self._last:
            self._last, self._length = event.last_add_confirmed, None
        return self._read_on() if self._is_covered() else self._unless_uncoverable()

    def _on_fence_failed(self, event: FenceFailed) -> Sequence[Effect]:
        self._unfenced[event.bookie] = event.code
        if event.code in FATAL_CODES:
            return self._give_up(f"a bookie refuses the fence: {event.code.name}")
        return self._unless_uncoverable() if self._phase is _Phase.FENCING else ()

    def _unless_uncoverable(self) -> Sequence[Effect]:
        if len(self._fenced) + len(self._unfenced) < self._quorum.ensemble_size:
            return ()
        codes = ", ".join(f"{bookie}: {code.name}" for bookie, code in sorted(self._unfenced.items()))
        return self._give_up(f"too few bookies could be fenced ({codes})")

    def _is_covered(self) -> bool:
        """Whether every write set has so many fenced bookies that the others cannot make an ack quorum."""
        quorum = self._quorum
        return all(
            sum(bookie not in self._fenced for bookie in quorum.write_set(start)) < quorum.ack_quorum
            for start in range(quorum.ensemble_size)
        )

    def _read_on(self) -> Sequence[Effect]:
        self._phase = _Phase.READING
        self._missing.clear()
        self._failed.clear()
        entry_id = self._last + 1
        return [Read(bookie, entry_id, bookie not in self._fenced) for bookie in self._quorum.write_set(entry_id)]

    def _on_found(self, run: EntryRun) -> Sequence[Effect]:
        if self._phase is not _Phase.READING or run.first_entry_id != self._last + 1:
            return ()  # another copy of what was found
        self._phase = _Phase.REWRITING
        self._last, self._length = run.last_entry_id, length_of(run)
        return (Rewrite(run),)

    def _on_missing(self, event: EntryMissing) -> Sequence[Effect]:
        if self._phase is not _Phase.READING or event.entry_id != self._last + 1:
            return ()
        self._missing[event.bookie] = None
        if len(self._missing) > self._quorum.failures_max:
            return self._end()
        return self._unless_undecided()

    def _on_read_failed(self, event: ReadFailed) -> Sequence[Effect]:
        if event.code in FATAL_CODES:
            return self._give_up(f"a bookie refuses: {event.reason}")
        if self._phase is not _Phase.READING or event.entry_id != self._last + 1:
            return ()
        self._failed[event.bookie] = event
        return self._unless_undecided()

    def _unless_undecided(self) -> Sequence[Effect]:
        if len(self._missing) + len(self._failed) < self._quorum.write_quorum:
            return ()
        reasons = "; ".join(f"{bookie}: {failed.reason}" for bookie, failed in sorted(self._failed.items()))
        return self._give_up(f"entry {self._last + 1} is neither readable nor certainly absent ({reasons})", is_damage=True)

    def _end(self) -> Sequence[Effect]:
        if self._length is not None:
            return self._close(self._length)
        self._phase = _Phase.MEASURING
        return (ReadLength(self._last),)

    def _close(self, length_bytes: int) -> Sequence[Effect]:
        self._phase = _Phase.DONE
        return (Close(self._last, length_bytes),)

    def _give_up(self, reason: str, *, is_damage: bool = False) -> Sequence[Effect]:
        self._phase = _Phase.DONE
        return (GiveUp(reason, is_damage),)


def length_of(run: EntryRun) -> int:
    """The ledger's length up to the run's last entry, from its header."""
    at = run.offsets[-2] + LENGTH_OFFSET
    return int.from_bytes(run.buffer[at : at + 8], "big")
