"""Unacknowledged part of a subscription: ranges of ledgers, and inside them runs of entries that are done. Pure.

A range for each of very many holes would cost more than the entries between them: the longest runs part ranges, and the
others are left out row by row. Brokers report holes as text, ours report very many of them in pages. An entry whose batch is
acknowledged in part is in the ranges. Our brokers say which of its messages are left (`partly`); Apache's do not, and all
of them count as not acknowledged.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from .decode.octets import Places
from .partly import Parts
from .positions import Ledger, LedgerRange, Place, end_of, ranges_between

RANGES_MAX = 10_000
"""Ranges of one topic, and one more for each ledger."""
_RANGE = re.compile(r"([(\[])(\d+):(-?\d+)\.\.(\d+):(-?\d+)([)\]])")


@dataclass(frozen=True, slots=True)
class Runs:
    """Entries of one ledger: `starts[i] <= e < ends[i]`, ascending and apart."""

    starts: Places
    ends: Places

    def has(self, entry_ids: Places) -> Any:
        """Whether each entry is in a run."""
        at = numpy.searchsorted(self.starts, entry_ids, "right") - 1
        return (
            (at >= 0) & (entry_ids < self.ends[numpy.maximum(at, 0)]) if len(self.starts) else numpy.zeros(len(entry_ids), bool)
        )

    def between(self, first_entry_id: int, end_entry_id: int) -> "Runs":
        begin = int(numpy.searchsorted(self.ends, first_entry_id, "right"))
        return self.chosen(slice(begin, int(numpy.searchsorted(self.starts, end_entry_id))))

    def chosen(self, which: Any) -> "Runs":
        return Runs(self.starts[which], self.ends[which])


@dataclass(frozen=True, slots=True)
class Unacknowledged:
    """Unacknowledged entries of a subscription. `done`: by ledger, entries in a range that are not wanted; `parts`: of batches
    acknowledged in part, the messages left."""

    ranges: list[LedgerRange]
    parts: Parts = field(default_factory=Parts)
    done: Mapping[int, Runs] = field(default_factory=dict)


def is_all_told(cursor: Mapping[str, Any]) -> bool:
    """Whether the text of internal stats has all holes: ours show some of very many, and of some say how many they were."""
    shown = str(cursor["individuallyDeletedMessages"]).count("..")
    told = cursor.get("partlyAcknowledged", {"batches": 0, "left": {}})
    is_in_segments = bool(cursor.get("holeSegments", {}).get("inUse"))
    stated = int(cursor.get("totalNonContiguousDeletedMessagesRange", shown))
    return stated <= shown and told["batches"] <= len(told["left"]) and not is_in_segments


def start_of(cursor: Mapping[str, Any]) -> Place:
    """The entry after mark-delete."""
    ledger_id, _, entry_id = str(cursor["markDeletePosition"]).partition(":")
    return Place(int(ledger_id), int(entry_id) + 1)


def runs_in(texts: Iterable[str], ledgers: Sequence[Ledger]) -> dict[int, Runs]:
    """Runs by ledger from pages of acknowledged ranges, in order."""
    starts: dict[int, list[Places]] = {}
    ends: dict[int, list[Places]] = {}
    for text in texts:
        found = numpy.array(list(_pieces(text, ledgers)), numpy.int64).reshape(-1, 3)
        for ledger_id in numpy.unique(found[:, 0]).tolist():
            these = found[found[:, 0] == ledger_id]
            starts.setdefault(ledger_id, []).append(these[:, 1])
            ends.setdefault(ledger_id, []).append(these[:, 2])
    return {
        ledger_id: _sorted(numpy.concatenate(starts[ledger_id]), numpy.concatenate(ends[ledger_id])) for ledger_id in starts
    }


def _sorted(starts: Places, ends: Places) -> Runs:
    """Ascending, and those that touch are one: a window of a page may end amid a run."""
    order = numpy.argsort(starts, kind="stable")
    starts, ends = starts[order], numpy.maximum.accumulate(ends[order])
    begins = numpy.flatnonzero(numpy.concatenate([[True], starts[1:] > ends[:-1]]))
    return Runs(starts[begins], ends[numpy.concatenate([begins[1:] - 1, [len(ends) - 1]])])


def _pieces(text: str, ledgers: Sequence[Ledger]) -> Iterator[tuple[int, int, int]]:
    """Ledger, first entry and end of each; Apache's ranges are open at one end or at both, and some go over several ledgers."""
    for opening, first_ledger, first, last_ledger, last, closing in _RANGE.findall(text):
        lower = Place(int(first_ledger), int(first) + (opening == "("))
        upper = Place(int(last_ledger), int(last) + (closing == "]"))
        if lower.ledger_id == upper.ledger_id:
            yield lower.ledger_id, lower.entry_id, upper.entry_id
            continue
        for each in ranges_between(ledgers, lower, upper):
            yield each.ledger_id, each.first_entry_id, each.end_entry_id


def unacknowledged(
    ledgers: Sequence[Ledger], start: Place, done: Mapping[int, Runs], parts: Parts, ranges_max: int = RANGES_MAX
) -> Unacknowledged:
    """Entries from `start` on that are not done, in order."""
    parting = _parting(done.values(), ranges_max)
    found: list[LedgerRange] = []
    inside: dict[int, Runs] = {}
    for whole in ranges_between(ledgers, start, end_of(ledgers)):
        runs = done.get(whole.ledger_id)
        if runs is None:
            found.append(whole)
            continue
        are_long = runs.ends - runs.starts >= parting
        found += _without(whole, runs.chosen(are_long))
        if not bool(are_long.all()):
            inside[whole.ledger_id] = runs.chosen(~are_long)
    return Unacknowledged(found, parts, inside)


def _parting(done: Iterable[Runs], ranges_max: int) -> int:
    """Smallest length of a run that parts a range: at most `ranges_max` runs are that long."""
    lengths = numpy.concatenate([numpy.zeros(0, numpy.int64), *(each.ends - each.starts for each in done)])
    if len(lengths) <= ranges_max:
        return 0
    longest = numpy.sort(lengths)[-ranges_max - 1 :]
    return int(longest[0]) + 1


def _without(whole: LedgerRange, runs: Runs) -> Iterator[LedgerRange]:
    at = whole.first_entry_id
    for begin, end in zip(runs.starts.tolist(), runs.ends.tolist(), strict=True):
        if at < min(begin, whole.end_entry_id):
            yield whole.part(at, min(begin, whole.end_entry_id))
        at = max(at, end)
    if at < whole.end_entry_id:
        yield whole.part(at, whole.end_entry_id)


def of_ranges(found: Unacknowledged, ranges: Sequence[LedgerRange]) -> Unacknowledged:
    """Part of `found` that concerns these ranges: all that one task has to know."""
    done: dict[int, Runs] = {}
    for ledger_id, of_ledger in itertools.groupby(ranges, key=lambda each: each.ledger_id):
        these = list(of_ledger)
        runs = found.done.get(ledger_id)
        if runs is not None:
            done[ledger_id] = runs.between(these[0].first_entry_id, these[-1].end_entry_id)
    parts = found.parts.between(ranges[0].first, ranges[-1].last)
    return Unacknowledged(list(ranges), parts, {ledger_id: runs for ledger_id, runs in done.items() if len(runs.starts)})
