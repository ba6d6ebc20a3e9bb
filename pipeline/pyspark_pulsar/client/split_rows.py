"""The rows of a split: of closed ledgers straight from their bookies, and through the broker what is left."""

import itertools
import logging
from collections.abc import Generator, Iterator
from dataclasses import replace

from ..decode.rows import Rows
from ..ledger_places import LedgerPlaces
from ..options import SourceOptions
from ..plan import Split
from ..positions import LedgerRange, Place, ranges_before
from .admin import ledgers_of
from .bookies.bookie_reader import BookieReader, NeedsBroker
from .bookies.witness import Witness
from .split_reader import SplitReader
from .whole_messages import whole_messages

_log = logging.getLogger(__name__)


_WINDOW_ENTRIES = 32
"""Before a chunk, where the others of its message are looked for: that many first, then four times as many, and so on."""


def rows_of_split(split: Split, options: SourceOptions) -> Iterator[Rows]:
    """Rows in order; a message in chunks is one row, at its last chunk. Errors are those of the broker's reader."""

    def before(end: Place) -> Iterator[Iterator[Rows]]:
        return _windows_before(split.topic, end, options)

    return whole_messages(_entries_of(split, options), before, options.verifies_checksums)


def _windows_before(topic: str, end: Place, options: SourceOptions) -> Iterator[Iterator[Rows]]:
    """The entries before a place, backwards a window at a time, each window in order."""
    ledgers = ledgers_of(topic, options.access, options.reads_bookies)
    forgiving = replace(options, fails_on_data_loss=False)  # the search notices missing entries itself
    left, size = options.chunk_distance_max, _WINDOW_ENTRIES
    while left > 0 and (ranges := ranges_before(ledgers, end, min(size, left))):
        yield _entries_of(Split(topic, tuple(ranges)), forgiving)
        end, left, size = ranges[0].first, left - size, 4 * size


def _entries_of(split: Split, options: SourceOptions) -> Iterator[Rows]:
    """Rows in order. The broker gives the rest of each range that bookies cannot give."""
    waiting: list[LedgerRange] = []
    failed: dict[str, str] = {}
    for _, of_ledger in itertools.groupby(split.ranges, key=lambda each: each.ledger_id):
        ranges = list(of_ledger)
        if not options.reads_bookies or ranges[0].places is None:
            waiting += ranges
            continue
        if waiting:
            yield from _from_broker(split, waiting, options)
        waiting = yield from _from_bookies(split.topic, ranges, ranges[0].places, options, failed)
    if waiting:
        yield from _from_broker(split, waiting, options)


def _from_broker(split: Split, ranges: list[LedgerRange], options: SourceOptions) -> Iterator[Rows]:
    part = replace(split, ranges=tuple(ranges))
    yield from SplitReader(part, options.access, options.fails_on_data_loss, options.verifies_checksums)


def _from_bookies(
    topic: str, wanted: list[LedgerRange], places: LedgerPlaces, options: SourceOptions, failed: dict[str, str]
) -> Generator[Rows, None, list[LedgerRange]]:
    """Rows of one ledger. The generator returns the ranges that the bookies could not give."""
    witness = Witness(topic, options.access)
    reader = BookieReader(places, wanted, options.access, options.verifies_checksums, failed, witness)
    try:
        yield from reader
    except NeedsBroker as reason:
        _log.info("%s from %s on through its broker: %s", topic, reader.left[0].first, reason)
        return reader.left
    return []
