"""Which rows of a block a query wants, and what becomes of those that cannot be decoded. Pure."""

from typing import Any

import numpy

from .decode.arrow_columns import batch_of
from .decode.octets import Flags
from .decode.rows import Rows
from .errors import Undecodable
from .options import Between


def wanted_batch(rows: Rows, topic: str, columns: tuple[str, ...], between: Between, mode: str) -> Any:
    """An Arrow record batch. Undecodable where the mode is FAILFAST and a wanted record has an error."""
    kept = _within(rows, between)
    bad = _bad(rows)
    if mode == "FAILFAST" and bool((bad & kept).any()):
        entry = int(rows.entries[numpy.flatnonzero(bad & kept)[0]])
        place = f"{rows.block.ledger_ids[entry]}:{rows.block.entry_ids[entry]}"
        raise Undecodable(
            f"{topic} at {place}: {rows.errors[entry]}. To have such records as rows with an error: mode=PERMISSIVE; "
            "to leave them out: mode=DROPMALFORMED"
        )
    if mode == "DROPMALFORMED":
        kept &= ~bad
    return batch_of(rows, topic, columns, kept)


def _bad(rows: Rows) -> Flags:
    return numpy.array([bool(error) for error in rows.errors], numpy.bool_)[rows.entries]


def _within(rows: Rows, between: Between) -> Flags:
    kept = numpy.ones(rows.count, numpy.bool_)
    if between.starting_time_ms is not None:
        kept &= rows.publish_times >= numpy.uint64(between.starting_time_ms)
    if between.ending_time_ms is not None:
        kept &= rows.publish_times < numpy.uint64(between.ending_time_ms)
    if between.starting_index is not None:
        kept &= rows.indexes >= between.starting_index
    if between.ending_index is not None:
        kept &= (rows.indexes >= 0) & (rows.indexes < between.ending_index)
    return kept
