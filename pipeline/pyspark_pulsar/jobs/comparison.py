"""What became of the messages of one side on the other: lost, duplicated, reordered, altered, or added.

A message is known by its identity (`by`): producer and sequence id where the copy keeps them, else key, value or a property. Of
one identity there may be several messages; their numbers are compared. Order is compared in each scope (`producer` or `key`)
and pair of topics, and the fewest messages are named that are out of it. One scope's places have to fit into a task's memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ..errors import WrongOption
from .order import moved
from .report import Report, Table

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
    """A row for each identity with something wrong: kind, producer, key, sequence_id, count, expected_at, found_at."""
    both = _together(_identified(expected, how, "e"), _identified(found, how, "f"), how)
    counted = both.select(*_SAID, f.explode(_kinds()).alias("finding")).select("finding.*", *_SAID)
    return counted.unionByName(_reordered(both, how)) if how.scope else counted


_SAID = ("producer", "key", "sequence_id", "expected_at", "found_at")


def _identified(frame: DataFrame, how: Comparison, side: str) -> DataFrame:
    """One row for each identity: how many messages, their contents' extremes, and the first of them."""
    identity = [_identity(name).alias(f"by{index}") for index, name in enumerate(how.by)]
    first = f.struct("topic", "message_id", "producer", "key", "sequence_id")
    rows = frame.select(*identity, _content().alias("content"), first.alias("first"))
    return rows.groupBy(*(f"by{index}" for index in range(len(how.by)))).agg(
        f.count("*").alias(f"{side}_count"),
        f.min("content").alias(f"{side}_low"),
        f.max("content").alias(f"{side}_high"),
        f.min("first").alias(f"{side}_first"),
    )


def _identity(name: str) -> Column:
    if name.startswith(_PROPERTY):
        return f.col("properties")[name.removeprefix(_PROPERTY)]
    return f.col(name)


def _content() -> Column:
    """Of all that a producer says. A null and an empty value are two things, which a hash alone does not see."""
    pairs = f.array_sort(f.map_entries("properties")).cast("string")
    return f.xxhash64(f.isnull("key"), "key", f.isnull("value"), "value", pairs, f.isnull("event_time"), "event_time")


def _together(expected: DataFrame, found: DataFrame, how: Comparison) -> DataFrame:
    names = [f"by{index}" for index in range(len(how.by))]
    found = found.withColumnsRenamed({name: f"f_{name}" for name in names})
    matches = expected[names[0]].eqNullSafe(found[f"f_{names[0]}"])
    for name in names[1:]:
        matches &= expected[name].eqNullSafe(found[f"f_{name}"])
    first = f.coalesce("e_first", "f_first")
    joined = expected.join(found, matches, "full_outer")
    said = {each: first[each] for each in ("producer", "key", "sequence_id")}
    return joined.withColumns({**said, "expected_at": _place("e_first"), "found_at": _place("f_first")})


def _place(first: str) -> Column:
    """`topic ledger:entry:batch_index`."""
    place = f.col(first)["message_id"]
    parts = [place[each].cast("string") for each in ("ledger_id", "entry_id", "batch_index")]
    return f.when(f.isnotnull(first), f.concat_ws(" ", f.col(first)["topic"], f.concat_ws(":", *parts)))


def _kinds() -> Column:
    """What is wrong with an identity, but for its order."""
    expected, found = f.coalesce("e_count", f.lit(0)), f.coalesce("f_count", f.lit(0))
    is_on_both = (expected > 0) & (found > 0)
    has_changed = (f.col("e_low") != f.col("f_low")) | (f.col("e_high") != f.col("f_high"))
    each = [
        (expected > found, "lost", expected - found),
        (is_on_both & (found > expected), "duplicated", found - expected),
        (expected == 0, "added", found),
        (is_on_both & has_changed, "altered", f.lit(1)),
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
    """Of one scope: the rows that are out of order."""
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
    """By producer or key: how many of each kind."""
    name = f.coalesce(f.col(column).cast("string"), f.lit("(none)")).alias(column)
    rows = wrong.groupBy(name).pivot("kind", list(KINDS)).agg(f.sum("count")).fillna(0)
    total = sum((f.col(kind) for kind in KINDS), f.lit(0))
    worst = rows.withColumn("all", total).orderBy(f.desc("all"), column).limit(_WORST_MAX)
    return Table(f"by {column}", worst.columns, [list(row) for row in worst.collect()], bars="all")


def _examples(wrong: DataFrame) -> Table:
    shown = wrong.withColumn("key", f.col("key").cast("string")).orderBy("kind", "producer", "sequence_id").limit(_SHOWN_MAX)
    return Table(f"the first {_SHOWN_MAX}", shown.columns, [list(row) for row in shown.collect()])
