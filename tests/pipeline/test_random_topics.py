"""Topics by chance on the standalone that these tests share: read by all ways and by Apache's client, they have the same rows.

A few seeds of what `python -m tests.pipeline.random_topics` does with hundreds, and without killing the server.
"""

from pathlib import Path

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.random_topics.__main__ import keys_in
from tests.pipeline.random_topics.checking import Figures
from tests.pipeline.random_topics.model import first_difference
from tests.pipeline.random_topics.queries import Way
from tests.pipeline.random_topics.recipe import PHASES, recipe_of
from tests.pipeline.random_topics.run import Round
from tests.pipeline.random_topics.servers import make_namespaces

pytestmark = pytest.mark.clients

SEEDS = range(10)


def test_all_ways_and_apaches_client_have_the_same_rows(standalone: Ready, tmp_path: Path) -> None:
    namespaces = ("public/random-kept", "public/random-let-go")
    make_namespaces(standalone, namespaces)
    these = Round(SEEDS, (Way.BROKER, Way.AUTO), 2, keys_in(tmp_path), Figures())
    for number in range(PHASES):
        these.write(standalone, number, namespaces)
    these.check(standalone)
    assert not these.failures, "\n".join(these.failures.values())


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
