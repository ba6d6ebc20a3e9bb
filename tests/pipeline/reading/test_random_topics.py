"""Topics by chance on the standalone that these tests share: all ways of reading and Apache's client have the same rows.

A few seeds of what `python -m tests.pipeline.random_topics` does with hundreds, and without killing the server.
"""

from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.clients.server_process import Ready
from tests.pipeline.random_topics.__main__ import keys_in
from tests.pipeline.random_topics.checking import Figures, expected_rows
from tests.pipeline.random_topics.model import first_difference
from tests.pipeline.random_topics.queries import WHOLE, Way
from tests.pipeline.random_topics.recipe import PHASES, recipe_of
from tests.pipeline.random_topics.run import Round
from tests.pipeline.random_topics.servers import make_namespaces
from tests.pipeline.spark_process import SparkProcess

pytestmark = pytest.mark.clients

SEEDS = range(8)


def written(standalone: Ready, name: str, seeds: range, keys: pulsar.CryptoKeyReader | None) -> Round:
    namespaces = (f"public/{name}-kept", f"public/{name}-let-go")
    make_namespaces(standalone, namespaces)
    these = Round(seeds, (Way.BROKER, Way.AUTO), 2, keys, Figures())
    for number in range(PHASES):
        these.write(standalone, number, namespaces)
    return these


def test_all_ways_and_apaches_client_have_the_same_rows(standalone: Ready, tmp_path: Path) -> None:
    these = written(standalone, "all-ways", SEEDS, keys_in(tmp_path))
    these.check(standalone)
    assert not these.failures, "\n".join(these.failures.values())


def test_spark_has_the_same_rows(spark: SparkProcess, standalone: Ready, options: dict[str, str]) -> None:
    these = written(standalone, "spark", range(100, 103), None)
    assert not these.failures, "\n".join(these.failures.values())
    for topic in these.topics:
        asked = {**options, "topic": topic.name, "mode": "PERMISSIVE", "splitBytes": "5000"}
        found = [as_plain(each) for each in spark.run("tests.pipeline.spark_jobs:rows", options=asked)]
        difference = first_difference(expected_rows(topic), found, WHOLE.columns)
        assert difference is None, f"seed {topic.recipe.seed}: {difference}"


def as_plain(row: dict[str, Any]) -> dict[str, Any]:
    """Row in the form of an Arrow batch: ids are tuples, times milliseconds."""
    times = {name: value and round(value.timestamp() * 1000) for name, value in row.items() if name.endswith("_time")}
    return row | times | {"message_id": tuple(row["message_id"].values())}


def test_a_seed_makes_the_same_topic_each_time() -> None:
    assert recipe_of(7) == recipe_of(7)
    assert recipe_of(7) != recipe_of(8)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([{"key": b"a", "n": 1}, {"key": b"b", "n": 3}], "row 1, n: expected 2, found 3"),
        ([{"key": b"a", "n": 1}], "row 1: expected 2 rows, found 1; missing is"),
        ([{"key": b"a"}, {"key": b"b", "n": 2}], "row 0, n: expected 1, found None"),
        ([{"key": b"a", "n": 1}, {"key": b"b", "n": 2}, {"key": b"c"}], "row 2: expected 2 rows, found 3; too many is"),
    ],
)
def test_the_first_row_that_differs_is_told(found: list[dict[str, object]], said: str) -> None:
    expected = [{"key": b"a", "n": 1}, {"key": b"b", "n": 2}]
    assert str(first_difference(expected, found, ("key", "n"))).startswith(said)
    assert first_difference(expected, expected, ("key", "n")) is None
