"""The rows of a split: of closed ledgers straight from their bookies, and through the broker what is left."""

import logging
from collections.abc import Generator, Iterator
from dataclasses import replace

from ..decode.rows import Rows
from ..options import SourceOptions
from ..plan import Split
from ..positions import LedgerRange
from .bookie_reader import BookieReader, NeedsBroker
from .split_reader import SplitReader

_log = logging.getLogger(__name__)


def rows_of_split(split: Split, options: SourceOptions) -> Iterator[Rows]:
    """In order. Where bookies cannot give a range, the broker gives what is left of it. Errors are the broker's reader's."""
    waiting: list[LedgerRange] = []
    for each in split.ranges:
        if not options.reads_bookies or each.places is None:
            waiting.append(each)
            continue
        if waiting:
            yield from _from_broker(split, waiting, options)
            waiting = []
        left = yield from _from_bookies(split.topic, each, options)
        waiting += [left] if left is not None else []
    if waiting:
        yield from _from_broker(split, waiting, options)


def _from_broker(split: Split, ranges: list[LedgerRange], options: SourceOptions) -> Iterator[Rows]:
    part = replace(split, ranges=tuple(ranges))
    yield from SplitReader(part, options.access, options.fails_on_data_loss, options.verifies_checksums)


def _from_bookies(topic: str, wanted: LedgerRange, options: SourceOptions) -> Generator[Rows, None, LedgerRange | None]:
    """What could not be had is the generator's return value, None where there is nothing left."""
    assert wanted.places is not None
    reader = BookieReader(wanted.places, wanted, options.access, options.verifies_checksums)
    try:
        yield from reader
    except NeedsBroker as reason:
        _log.info(
            "%s: ledger %d from entry %d on through its broker: %s", topic, wanted.ledger_id, reader.next_entry_id, reason
        )
        return wanted.part(reader.next_entry_id, wanted.end_entry_id)
    return None
