"""Runs of which only some entries are there: what was picked out of a log. Pure.

The others are empty, so that an index still says which entry it is. Headers are left out (`header_bytes` is 0): who picks has
checked them, and who delivers needs payloads alone.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

from pyroaring import BitMap

from wire.record import record
from wire.run import EntryRun

EMPTY_MAX = 2048
"""Between two entries of a run: beyond that another run costs less than the empty places."""
Picks: TypeAlias = Sequence[tuple[int, BitMap]]
"""Entries by ledger; the ledgers ascend, and none is there without an entry."""


@record(frozen=True, slots=True)
class Picked:
    """The first of some entries: those in `runs`, in their order, and those that are `gone`, which are not there any more.

    Entries in neither were not read, and come after all that were. Runs are `picked_runs`.
    """

    runs: Sequence[EntryRun]
    gone: Picks = ()


def picked_runs(parts: Sequence[EntryRun], wanted: BitMap) -> Iterator[EntryRun]:
    """`wanted` entries that the parts hold: a run goes from one to the last that is not too far from the one before it.

    The parts are of one ledger, ascending, and do not overlap.
    """
    ids: list[int] = []
    payloads: list[memoryview] = []
    for part in parts:
        found = _found(part, wanted)
        if ids and found and found[0] - ids[-1] > EMPTY_MAX:
            yield _run(part.ledger_id, ids, payloads)
            ids, payloads = [], []
        ids.extend(found)
        payloads.extend(map(part.payload, found))
    if ids:
        yield _run(parts[0].ledger_id, ids, payloads)


def _found(part: EntryRun, wanted: BitMap) -> Sequence[int]:
    first, count = part.first_entry_id, part.count
    if count == 1:
        return (first,) if first in wanted else ()
    return (wanted & BitMap(range(first, first + count))).to_array()


def _run(ledger_id: int, ids: Sequence[int], payloads: Sequence[memoryview]) -> EntryRun:
    ends = accumulate(map(len, payloads))
    offsets = array("I", [0])
    for gap, end in zip((after - before for before, after in pairwise([*ids, ids[-1] + 1])), ends, strict=True):
        offsets.extend(array("I", [end]) * gap)
    return EntryRun(ledger_id, ids[0], b"".join(payloads), offsets, header_bytes=0)
