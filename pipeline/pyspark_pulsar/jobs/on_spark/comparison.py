"""Comparison of the messages of two sides: lost, duplicated, reordered, altered, or added.

A message is known by its identity (`by`): producer and sequence id where the copy keeps them, else key, value or a property.
Several messages may have one identity; their numbers are compared. Order is compared in each scope (`producer` or `key`) and
pair of topics, and the fewest messages are named that are out of it. One scope's places have to fit into a task's memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from ...errors import WrongOption
from ..report import Report, Table
from .order import moved

COLUMNS = ("key", "value", "properties", "event_time", "topic", "message_id", "producer", "sequence_id")
KINDS = ("lost", "duplicated", "added", "altered", "reordered")
SCOPES = ("producer", "key")
_IDENTITIES = ("producer", "sequence_id", "key", "value", "topic")
_PROPERTY = "property:"
_SHOWN_MAX = 100
_WORST_MAX = 50


@dataclass(frozen=True, slots=True)
class Comparison:
    """`by`: what makes the identity. `scope`: in what order counts; "" where it does not."""

    by: Sequence[str] = ("producer", "sequence_id")
    scope: str = "producer"

    def __post_init__(self) -> None:
        for name in self.by:
            if name not in _IDENTITIES and not name.startswith(_PROPERTY):
                raise WrongOption(f"--by {name}: expected some of {', '.join(_IDENTITIES)}, property:NAME")
        if self.scope and self.scope not in SCOPES:
            raise WrongOption(f"--scope {self.scope}: expected one of {', '.join(SCOPES)}, or none")


def findings(expected: DataFrame, found: DataFrame, how: Comparison) -> DataFrame:
    """A row for each fault of an identity: kind, producer, key, sequence_id, count, expected_at, found_at. WrongOption."""
    _check_alike(expected, found)
    both = _together(expected, found, how)
    counted = both.select(*_SAID, f.explode(_kinds()).alias("finding")).select("finding.*", *_SAID)
    return counted.unionByName(_reordered(both, how)) if how.scope else counted


_SAID = ("producer", "key", "sequence_id", "expected_at", "found_at")


def _check_alike(expected: DataFrame, found: DataFrame) -> None:
    """Bytes are never what values of a type are."""
    for name in ("key", "value"):
        kinds = [each.schema[name].dataType for each in (expected, found)]
        if sum(isinstance(each, BinaryType) for each in kinds) == 1:
            said = " and ".join(each.simpleString() for each in kinds)
            raise WrongOption(f"{name} is {said} on the two sides: land with --option values=raw, then it is bytes on both")


def _together(expected: DataFrame, found: DataFrame, how: Comparison) -> DataFrame:
    """One row for each identity: how many messages of either side, how many contents differ, and the first of each side."""
    by = [f"by{index}" for index in range(len(how.by))]
    every = _side(expected, how, "e").unionByName(_side(found, how, "f"), allowMissingColumns=True)
    counts = [f.count(f"{side}_first").alias(f"{side}_count") for side in ("e", "f")]
    firsts = [f.min(f"{side}_first").alias(f"{side}_first") for side in ("e", "f")]
    of_contents = every.groupBy(*by, "content").agg(*counts, *firsts)
    more = f.col("f_count") - f.col("e_count")
    each = of_contents.groupBy(*by).agg(
        f.sum("e_count").alias("e_count"),
        f.sum("f_count").alias("f_count"),
        f.sum(f.greatest(-more, f.lit(0))).alias("lacking"),
        f.sum(f.greatest(more, f.lit(0))).alias("more"),
        f.sum(f.when(f.col("e_count") == 0, f.col("f_count")).otherwise(0)).alias("strange"),
        *firsts,
    )
    first = f.coalesce("e_first", "f_first")
    said = {name: first[name] for name in ("producer", "key", "sequence_id")}
    return each.withColumns({**said, "expected_at": _place("e_first"), "found_at": _place("f_first")})


def _side(frame: DataFrame, how: Comparison, side: str) -> DataFrame:
    identity = [_identity(frame, name).alias(f"by{index}") for index, name in enumerate(how.by)]
    key = _plain(frame, "key")
    first = f.struct("topic", "message_id", "producer", key.cast("binary").alias("key"), "sequence_id")
    return frame.select(*identity, _content(frame).alias("content"), first.alias(f"{side}_first"))


def _identity(frame: DataFrame, name: str) -> Column:
    if name.startswith(_PROPERTY):
        return f.col("properties")[name.removeprefix(_PROPERTY)]
    return _plain(frame, name) if name in ("key", "value") else f.col(name)


def _plain(frame: DataFrame, name: str) -> Column:
    """Bytes as they are, anything else as text: a hash passes over the nulls in a struct, and takes no map.

    Fields that are null are left out, so that those which one side does not have yet are none.
    """
    kind = frame.schema[name].dataType
    if isinstance(kind, BinaryType):
        return f.col(name)
    return f.to_json(name, _AS_JSON) if isinstance(kind, StructType | MapType | ArrayType) else f.col(name).cast("string")


_AS_JSON = {
    "ignoreNullFields": "true",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _content(frame: DataFrame) -> Column:
    """Hash of all that a producer says. A null and an empty value differ, which a hash of the values alone does not see."""
    pairs = f.to_json(f.array_sort(f.map_entries("properties")), _AS_JSON)
    key, value = _plain(frame, "key"), _plain(frame, "value")
    return f.xxhash64(f.isnull("key"), key, f.isnull("value"), value, pairs, f.isnull("event_time"), "event_time")


def _place(first: str) -> Column:
    """`topic ledger:entry:batch_index`."""
    place = f.col(first)["message_id"]
    parts = [place[each].cast("string") for each in ("ledger_id", "entry_id", "batch_index")]
    return f.when(f.isnotnull(first), f.concat_ws(" ", f.col(first)["topic"], f.concat_ws(":", *parts)))


def _kinds() -> Column:
    """Faults of an identity, but for its order.

    Unexpected contents, and contents in place of others, are altered.
    """
    expected, found = f.col("e_count"), f.col("f_count")
    altered = f.greatest("strange", f.least("lacking", "more"))
    each = [
        (expected > found, "lost", expected - found),
        ((expected > 0) & (found > expected), "duplicated", found - expected),
        (expected == 0, "added", found),
        ((expected > 0) & (altered > 0), "altered", altered),
    ]
    kinds = [
        f.when(holds, f.struct(f.lit(kind).alias("kind"), count.cast("bigint").alias("count"))) for holds, kind, count in each
    ]
    return f.array_compact(f.array(*kinds))


def _reordered(both: DataFrame, how: Comparison) -> DataFrame:
    there = both.where("e_first is not null and f_first is not null")
    places = [
        f.col(f"{side}_first")["message_id"][part].cast("bigint").alias(f"{side}_{part}")
        for side in ("e", "f")
        for part in ("ledger_id", "entry_id", "batch_index")
    ]
    groups = [f.col("e_first")["topic"].alias("e_topic"), f.col("f_first")["topic"].alias("f_topic")]
    scope = f.col("e_first")[how.scope].alias("scope")
    rows = there.select(*groups, scope, *places, *_SAID)
    schema = "kind string, count bigint, producer string, key binary, sequence_id bigint, expected_at string, found_at string"
    return rows.groupBy("e_topic", "f_topic", "scope").applyInPandas(_moved_rows, schema)


def _moved_rows(rows: Any) -> Any:
    """Rows of one scope that are out of order."""
    order = {side: _order(rows, side) for side in ("e", "f")}
    ranks = numpy.empty(len(rows), numpy.int64)
    ranks[order["e"]] = numpy.arange(len(rows))
    chosen = order["f"][moved(ranks[order["f"]])]
    found = rows.iloc[chosen][list(_SAID)]
    found.insert(0, "count", 1)
    found.insert(0, "kind", "reordered")
    return found


def _order(rows: Any, side: str) -> Any:
    return numpy.lexsort([rows[f"{side}_{part}"].to_numpy() for part in ("batch_index", "entry_id", "ledger_id")])


def report(expected: DataFrame, found: DataFrame, how: Comparison, names: tuple[str, str]) -> Report:
    """Counts, worst producers and keys, and examples."""
    wrong = findings(expected, found, how).cache()
    try:
        totals = {row["kind"]: row["n"] for row in wrong.groupBy("kind").agg(f.sum("count").alias("n")).collect()}
        facts = {
            "expected": names[0],
            "found": names[1],
            "messages expected": expected.count(),
            "messages found": found.count(),
        }
        facts |= {kind: totals.get(kind, 0) for kind in KINDS}
        tables = [_worst(wrong, "producer"), _worst(wrong, "key"), _examples(wrong)] if totals else []
        return Report("reconcile", facts, tables, is_fine=not totals)
    finally:
        wrong.unpersist()


def _worst(wrong: DataFrame, column: str) -> Table:
    """Number of faults of each kind, by producer or key."""
    name = f.coalesce(f.col(column).cast("string"), f.lit("(none)")).alias(column)
    rows = wrong.groupBy(name).pivot("kind", list(KINDS)).agg(f.sum("count")).fillna(0)
    total = sum((f.col(kind) for kind in KINDS), f.lit(0))
    worst = rows.withColumn("all", total).orderBy(f.desc("all"), column).limit(_WORST_MAX)
    return Table(f"by {column}", worst.columns, [list(row) for row in worst.collect()], bars="all")


def _examples(wrong: DataFrame) -> Table:
    shown = wrong.withColumn("key", f.col("key").cast("string")).orderBy("kind", "producer", "sequence_id").limit(_SHOWN_MAX)
    return Table(f"the first {_SHOWN_MAX}", shown.columns, [list(row) for row in shown.collect()])
