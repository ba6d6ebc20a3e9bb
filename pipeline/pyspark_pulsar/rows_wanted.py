"""Rows of a block that a query wants, and the handling of those that cannot be decoded. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from .decode.arrow_columns import batch_of, keys_of, place, reasons_of
from .decode.octets import Flags, Places
from .decode.plain import plain_columns
from .decode.rows import Rows
from .decode.values.typed import Schema, typed_columns
from .errors import Undecodable
from .holes import Runs
from .options import Between
from .partly import Parts


@dataclass(frozen=True, slots=True)
class Wanted:
    """`columns` in their order. `schema` is that of the typed ones, None for bytes; `written_as` gives those of messages.

    Entries that are not in `parts` are wanted whole; entries in `done`, by ledger, are not wanted at all.
    """

    columns: tuple[str, ...]
    between: Between
    mode: str = "FAILFAST"
    schema: Schema | None = None
    written_as: Callable[[int], Schema | None] = lambda version: None
    parts: Parts = field(default_factory=Parts)
    done: Mapping[int, Runs] = field(default_factory=dict)

    @property
    def is_everything(self) -> bool:
        """Whether all rows are wanted, with their values as bytes."""
        is_typed = self.schema is not None and bool({"key", "value"} & set(self.columns))
        return self.between == Between() and not self.parts and not self.done and not is_typed


def wanted_batch(rows: Rows, topic: str, wanted: Wanted) -> Any:
    """An Arrow record batch. Undecodable where the mode is FAILFAST and a wanted record has an error."""
    if wanted.is_everything and rows.batches is not None:
        found = plain_columns(rows.batches, topic, wanted.columns)
        if found is not None:
            return found
    kept = numpy.ones(rows.count, numpy.bool_)
    if wanted.between != Between():
        kept = within(wanted.between, rows.publish_times, rows.indexes)
    if wanted.parts:
        kept &= _in_part(rows, wanted.parts)
    if wanted.done:
        kept &= ~_done(rows, wanted.done)[rows.entries]
    made, reasons = _typed(rows, wanted)
    if not reasons and not rows.has_errors:
        return batch_of(rows, topic, wanted.columns, kept, made)
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


def within(between: Between, times_ms: Any, indexes: Places) -> Flags:
    """Whether each message is in the range, by publish time and index; index -1, which is none, is in no range of indexes."""
    kept = numpy.ones(len(indexes), numpy.bool_)
    if between.starting_time_ms is not None:
        kept &= times_ms >= times_ms.dtype.type(between.starting_time_ms)
    if between.ending_time_ms is not None:
        kept &= times_ms < times_ms.dtype.type(between.ending_time_ms)
    if between.starting_index is not None:
        kept &= indexes >= between.starting_index
    if between.ending_index is not None:
        kept &= (indexes >= 0) & (indexes < between.ending_index)
    return kept


def _done(rows: Rows, done: Mapping[int, Runs]) -> Flags:
    """Whether each entry of the block is done."""
    found = numpy.zeros(rows.block.count, numpy.bool_)
    for ledger_id in numpy.unique(rows.block.ledger_ids).tolist():
        if ledger_id in done:
            these = rows.block.ledger_ids == ledger_id
            found[these] = done[ledger_id].has(rows.block.entry_ids[these])
    return found


def _in_part(rows: Rows, parts: Parts) -> Flags:
    kept = numpy.ones(rows.count, numpy.bool_)
    batches = parts.of_entries(rows.block.ledger_ids, rows.block.entry_ids)[rows.entries]
    these = numpy.flatnonzero(batches >= 0)
    kept[these] = parts.are_left(batches[these], numpy.maximum(rows.batch_indexes[these], 0).astype(numpy.int64))
    return kept
