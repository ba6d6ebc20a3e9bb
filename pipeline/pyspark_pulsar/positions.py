"""Places in a topic, and the ranges of ledgers between two of them. Pure.

A place is that of the next entry to read: a range ends before its end, so that where one query ended another begins.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .errors import DataLost, NoSuchPosition
from .ledger_places import LedgerPlaces

_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """The entry that is read next; ordered as the topic is."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return "earliest" if self == EARLIEST else f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Place(-1, -1)
LATEST = Place(1 << 62, 0)
_NAMED = {"earliest": EARLIEST, "latest": LATEST}
_FORM = re.compile(r"(\d{1,18}):(\d{1,18})")


def parse_place(text: str) -> Place | None:
    """`earliest`, `latest` or `ledger:entry`; None for anything else."""
    if text in _NAMED:
        return _NAMED[text]
    found = _FORM.fullmatch(text)
    return Place(int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class Ledger:
    """One ledger of a topic as its broker tells: entries and bytes until now; closed_at_ms is 0 while it is written."""

    ledger_id: int
    entries: int
    size_bytes: int
    closed_at_ms: int = 0
    places: LedgerPlaces | None = None
    """Places of its entries; None unless its bookies are known and can be asked."""


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """The entries `first_entry_id <= e < end_entry_id` of one ledger, at least one, and about how many bytes they have."""

    ledger_id: int
    first_entry_id: int
    end_entry_id: int
    size_bytes: int
    places: LedgerPlaces | None = None

    @property
    def count(self) -> int:
        return self.end_entry_id - self.first_entry_id

    @property
    def first(self) -> Place:
        return Place(self.ledger_id, self.first_entry_id)

    @property
    def last(self) -> Place:
        return Place(self.ledger_id, self.end_entry_id - 1)

    def part(self, first_entry_id: int, end_entry_id: int) -> "LedgerRange":
        size_bytes = self.size_bytes * (end_entry_id - first_entry_id) // self.count
        return LedgerRange(self.ledger_id, first_entry_id, end_entry_id, size_bytes, self.places)


def end_of(ledgers: Sequence[Ledger]) -> Place:
    """Place of the next message, as far as is known; earliest for a topic that has no ledger."""
    return Place(ledgers[-1].ledger_id, ledgers[-1].entries) if ledgers else EARLIEST


def ranges_between(ledgers: Sequence[Ledger], start: Place, end: Place) -> list[LedgerRange]:
    """All entries from `start` to before `end`, ledger by ledger, in order."""
    found = []
    for ledger in ledgers:
        first = start.entry_id if ledger.ledger_id == start.ledger_id else 0
        until = min(end.entry_id, ledger.entries) if ledger.ledger_id == end.ledger_id else ledger.entries
        if start.ledger_id <= ledger.ledger_id <= end.ledger_id and max(first, 0) < until:
            whole = LedgerRange(ledger.ledger_id, 0, ledger.entries, ledger.size_bytes, ledger.places)
            found.append(whole.part(max(first, 0), until))
    return found


def ranges_before(ledgers: Sequence[Ledger], end: Place, count: int) -> list[LedgerRange]:
    """The last `count` entries before `end`, in order; fewer where the topic begins."""
    found: list[LedgerRange] = []
    for each in reversed(ranges_between(ledgers, EARLIEST, end)):
        if count <= 0:
            break
        found.insert(0, each.part(max(each.first_entry_id, each.end_entry_id - count), each.end_entry_id))
        count -= each.count
    return found


def check_start(topic: str, ledgers: Sequence[Ledger], start: Place, fails_on_data_loss: bool = True) -> None:
    """DataLost where the place's ledger was deleted, NoSuchPosition where it is beyond the end; fine are the named places.

    The end of a ledger that is gone is lost data too: nothing proves any more that no entry came after it.
    """
    if start in (EARLIEST, LATEST):
        return
    end = end_of(ledgers)
    if start > end:
        raise NoSuchPosition(f"{topic}: position {start} is beyond the end of the topic, {end}")
    first = ledgers[0].ledger_id
    entries = next((each.entries for each in ledgers if each.ledger_id == start.ledger_id), start.entry_id)
    if start.entry_id > entries:
        raise NoSuchPosition(f"{topic}: position {start} is behind the end of its ledger, which has {entries} entries")
    if start.ledger_id < first:
        lost = DataLost(
            f"{topic}: the messages from {start} to before {first}:0 were deleted (retention, expiry or a deleted topic); "
            "how many they were went with them"
        )
        told(lost, fails_on_data_loss)


def check_batch(
    topic: str, ledgers: Sequence[Ledger], start: Place | None, end: Place, fails_on_data_loss: bool = True
) -> None:
    """Checks that all data between the places of a batch, which may be planned long ago, is still there; see `check_start`.

    `start` None: the topic came with this batch.
    """
    if start is not None and ledgers:
        check_start(topic, ledgers, start, fails_on_data_loss)
    begins_named = start is None or start == EARLIEST
    if end != EARLIEST and (not ledgers or (begins_named and end.ledger_id < ledgers[0].ledger_id)):
        lost = DataLost(f"{topic}: the messages before {end} were deleted (retention, expiry or a deleted topic)")
        told(lost, fails_on_data_loss)
    elif end > end_of(ledgers) and end.entry_id > 0:  # a ledger without entries may go when its topic is loaded
        raise NoSuchPosition(
            f"{topic}: a batch of the checkpoint ends at {end}, beyond the end of the topic, {end_of(ledgers)}: was the topic "
            "restored from a copy? What is between them is not skipped; begin with a new checkpoint"
        )


def told(lost: DataLost, fails: bool) -> None:
    """Raises the loss with the remedy if `fails`; otherwise logs it, and the reader goes on without the messages."""
    if fails:
        raise DataLost(f"{lost}. To go on without them: failOnDataLoss=false")
    _log.warning("%s; failOnDataLoss=false, so that the query goes on without them", lost)
