"""Which rows of a block a query wants, and what becomes of those that cannot be decoded. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from .decode.arrow_columns import batch_of, keys_of, place, reasons_of
from .decode.octets import Flags
from .decode.rows import Rows
from .decode.typed import Schema, typed_columns
from .errors import Undecodable
from .options import Between


@dataclass(frozen=True, slots=True)
class Wanted:
    """`columns` in their order. `schema` is that of the typed ones, None for bytes; `written_as` gives those of messages."""

    columns: tuple[str, ...]
    between: Between
    mode: str = "FAILFAST"
    schema: Schema | None = None
    written_as: Callable[[int], Schema | None] = lambda version: None


def wanted_batch(rows: Rows, topic: str, wanted: Wanted) -> Any:
    """An Arrow record batch. Undecodable where the mode is FAILFAST and a wanted record has an error."""
    kept = _within(rows, wanted.between)
    made, reasons = _typed(rows, wanted)
    bad = _bad(rows, reasons)
    if wanted.mode == "FAILFAST" and bool((bad & kept).any()):
        row = int(numpy.flatnonzero(bad & kept)[0])
        raise Undecodable(
            f"{topic} at {place(rows, row)}: {reasons.get(row) or rows.errors[rows.entries[row]]}. To have such records as "
            "rows with an error: mode=PERMISSIVE; to leave them out: mode=DROPMALFORMED"
        )
    if wanted.mode == "DROPMALFORMED":
        kept &= ~bad
    if reasons and "error" in wanted.columns:
        made["error"] = reasons_of(rows, topic, reasons)
    return batch_of(rows, topic, wanted.columns, kept, made)


def _typed(rows: Rows, wanted: Wanted) -> tuple[dict[str, Any], dict[int, str]]:
    """The columns that have the schema's types, and why a row has none of them."""
    if wanted.schema is None or not {"key", "value"} & set(wanted.columns):
        return {}, {}
    is_in_key = wanted.schema.is_key_value and wanted.schema.is_separated
    found = typed_columns(rows, keys_of(rows) if is_in_key else None, wanted.columns, wanted.schema, wanted.written_as)
    return found.columns, found.reasons


def _bad(rows: Rows, reasons: dict[int, str]) -> Flags:
    bad = numpy.array([bool(error) for error in rows.errors], numpy.bool_)[rows.entries]
    bad[list(reasons)] = True
    return bad


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
