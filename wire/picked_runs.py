"""Runs of which only some entries are there: what was picked out of a ledger. Pure.

The others are empty, so that an index still says which entry it is. Headers are left out (`header_bytes` is 0): who picks has
checked them, and who delivers needs payloads alone.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

from pyroaring import BitMap

from wire.run import EntryRun


def picked_run(parts: Sequence[EntryRun], wanted: BitMap) -> EntryRun | None:
    """One run with those of the `wanted` entries that the parts hold; None: there are none.

    The parts are of one ledger, ascending, and do not overlap. The run is from the first picked entry to the last.
    """
    ids: list[int] = []
    payloads: list[memoryview] = []
    for part in parts:
        first = part.first_entry_id
        found = (wanted & BitMap(range(first, part.last_entry_id + 1))).to_array()
        ids.extend(found)
        payloads.extend(map(part.payload, found))
    if not ids:
        return None
    ends = list(accumulate(map(len, payloads)))
    offsets = array("I", [0])
    for gap, end in zip((after - before for before, after in pairwise([*ids, ids[-1] + 1])), ends, strict=True):
        offsets.extend(array("I", [end]) * gap)
    return EntryRun(parts[0].ledger_id, ids[0], b"".join(payloads), offsets, header_bytes=0)
