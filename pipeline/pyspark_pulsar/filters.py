"""Effect of a query's filters: the times, indexes and topics of rows that can pass them. Pure.

Spark evaluates all of them again: here they only say what need not be read. Filters are known by the names of PySpark's classes
(`pyspark.sql.datasource`, since 4.1), and a filter that is not understood leaves everything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from .options import Between

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Left:
    """`topics`: None for all of them."""

    between: Between
    topics: frozenset[str] | None = None


def left_by(filters: Iterable[Any], between: Between) -> Left:
    """All of the filters hold together."""
    left = Left(between)
    for each in filters:
        kind, attribute = type(each).__name__, getattr(each, "attribute", ())
        value = getattr(each, "value", None)
        match attribute:
            case ("publish_time",) if isinstance(value, datetime) and value.tzinfo is not None:
                left = _by_time(left, kind, value)
            case ("index",) if isinstance(value, int) and not isinstance(value, bool):
                left = _by_index(left, kind, value)
            case ("topic",):
                left = _by_topic(left, kind, value)
    return left


def _by_time(left: Left, kind: str, value: datetime) -> Left:
    """Messages have milliseconds, and a filter may have less."""
    floor, rest = divmod(value - _EPOCH, _MS)
    start, end = _bounds(kind, floor + 1 if rest else floor, floor)
    known = left.between
    return replace(
        left,
        between=replace(
            known, starting_time_ms=_later(known.starting_time_ms, start), ending_time_ms=_earlier(known.ending_time_ms, end)
        ),
    )


def _by_index(left: Left, kind: str, value: int) -> Left:
    start, end = _bounds(kind, value, value)
    known = left.between
    return replace(
        left,
        between=replace(
            known, starting_index=_later(known.starting_index, start), ending_index=_earlier(known.ending_index, end)
        ),
    )


def _by_topic(left: Left, kind: str, value: Any) -> Left:
    if kind == "EqualTo":
        chosen = frozenset([value])
    elif kind == "In" and isinstance(value, list | tuple):
        chosen = frozenset(value)
    else:
        return left
    return replace(left, topics=chosen if left.topics is None else left.topics & chosen)


def _bounds(kind: str, ceiling: int, floor: int) -> tuple[int | None, int | None]:
    """First number that passes, and the one after the last; None where there is no bound, or none below zero."""
    match kind:
        case "GreaterThanOrEqual":
            return max(0, ceiling), None
        case "GreaterThan":
            return max(0, floor + 1), None
        case "LessThan":
            return None, max(0, ceiling)
        case "LessThanOrEqual":
            return None, max(0, floor + 1)
        case "EqualTo":
            return max(0, ceiling), max(0, floor + 1)
    return None, None


def _later(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
