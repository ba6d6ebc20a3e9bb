"""Filters of a query: what they leave is every row that passes, and a filter that is not understood leaves all."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.filters import Left, left_by
from pipeline.pyspark_pulsar.options import Between

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Filter:
    """Filter like PySpark's, which are known by the names of their classes."""

    attribute: tuple[str, ...]
    value: Any


def filter_of(kind: str, column: str, value: Any) -> Any:
    return type(kind, (Filter,), {})((column,), value)


PASSES = {
    "GreaterThan": lambda one, other: one > other,
    "GreaterThanOrEqual": lambda one, other: one >= other,
    "LessThan": lambda one, other: one < other,
    "LessThanOrEqual": lambda one, other: one <= other,
    "EqualTo": lambda one, other: one == other,
}
_kinds = st.sampled_from(sorted(PASSES))


def is_left(number: int, start: int | None, end: int | None) -> bool:
    return (start is None or number >= start) and (end is None or number < end)


@given(st.lists(st.tuples(_kinds, st.integers(-3_000, 30_000)), max_size=4), st.integers(0, 30))
def test_every_message_that_passes_is_left_and_no_other_by_its_time(told: list[tuple[str, int]], at_ms: int) -> None:
    filters = [filter_of(kind, "publish_time", EPOCH + timedelta(microseconds=value)) for kind, value in told]
    found = left_by(filters, Between()).between
    passes = all(PASSES[kind](at_ms * 1000, value) for kind, value in told)
    assert is_left(at_ms, found.starting_time_ms, found.ending_time_ms) == passes


@given(st.lists(st.tuples(_kinds, st.integers(-3, 12)), max_size=4), st.integers(0, 12))
def test_every_message_that_passes_is_left_and_no_other_by_its_index(told: list[tuple[str, int]], at: int) -> None:
    found = left_by([filter_of(kind, "index", value) for kind, value in told], Between()).between
    assert is_left(at, found.starting_index, found.ending_index) == all(PASSES[kind](at, value) for kind, value in told)


def test_limits_of_the_options_hold_as_well() -> None:
    given_limits = Between(starting_time_ms=5, ending_time_ms=9)
    filters = [
        filter_of("GreaterThan", "publish_time", EPOCH),
        filter_of("LessThan", "publish_time", EPOCH + timedelta(seconds=1)),
    ]
    assert left_by(filters, given_limits) == Left(given_limits)


def test_topics_are_those_that_all_filters_name() -> None:
    filters = [filter_of("In", "topic", ["a", "b"]), filter_of("EqualTo", "topic", "b")]
    assert left_by(filters, Between()).topics == frozenset("b")


@pytest.mark.parametrize(
    "unknown",
    [
        filter_of("StringStartsWith", "topic", "a"),
        filter_of("EqualTo", "key", b"a"),
        filter_of("IsNotNull", "publish_time", None),
        filter_of("GreaterThan", "publish_time", datetime(2026, 1, 1)),
        filter_of("EqualNullSafe", "index", 5),
        filter_of("Not", "index", None),
    ],
)
def test_a_filter_that_is_not_understood_excludes_nothing(unknown: Any) -> None:
    assert left_by([unknown], Between()) == Left(Between())
