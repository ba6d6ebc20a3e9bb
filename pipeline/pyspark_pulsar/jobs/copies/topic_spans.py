"""Ranges of topics that a job reads without Spark: planned once, then read ledger by ledger in order."""

from collections.abc import Iterator
from typing import Any

from ...client.admin import ledgers_of
from ...client.brokers import topics_of
from ...client.split_rows import rows_of_split
from ...errors import NoSuchPosition, WrongOption
from ...options import SourceOptions
from ...partly import Parts
from ...plan import Split, TopicRanges, since
from ...positions import EARLIEST, LATEST, Ledger, LedgerRange, Place, check_start, end_of, ranges_between
from ...rows_wanted import Wanted, wanted_batch


class TopicSpan(TopicRanges):
    """Ranges of one topic or partition that are read; () where there are none."""

    __slots__ = ()

    def row(self) -> tuple[str, str, str, int, int]:
        """Row of a report: topic, first and last entry, number of entries, number of bytes."""
        first, last = (str(self.ranges[0].first), str(self.ranges[-1].last)) if self.ranges else ("", "")
        return (self.topic, first, last, self.entries, self.size_bytes)


ROW_COLUMNS = ("topic", "first entry", "last entry", "entries", "bytes")
"""Columns of `TopicSpan.row`."""


def spans_of(options: SourceOptions) -> list[TopicSpan]:
    """Spans between the positions of the options, as of now. NoSuchTopic, NoSuchPosition, DataLost, Refused, Unreachable."""
    return [TopicSpan(topic, tuple(_ranges(topic, options))) for topic in topics_of(options)]


def _ranges(topic: str, options: SourceOptions) -> list[LedgerRange]:
    ledgers = ledgers_of(topic, options.access, options.reads_bookies)
    start, end = options.starting.of(topic), options.ending.of(topic)
    if options.fails_on_data_loss or start == EARLIEST:
        check_start(topic, ledgers, start)
    _check_end(topic, ledgers, end)
    return ranges_between(
        since(ledgers, options.between.starting_time_ms, options.clocks_ahead_ms), start, min(end, end_of(ledgers))
    )


def _check_end(topic: str, ledgers: list[Ledger], end: Place) -> None:
    """A query stops where the topic does; a job that was told an end is to get there."""
    if end != LATEST and end > end_of(ledgers):
        raise NoSuchPosition(f"{topic}: position {end} is beyond the end of the topic, {end_of(ledgers)}")


def batches_of_range(
    topic: str, wanted: LedgerRange, options: SourceOptions, columns: tuple[str, ...], parts: Parts | None = None
) -> Iterator[Any]:
    """Arrow record batches of one ledger, in order, key and value as bytes; of batches in `parts` what is left.

    The errors of the source.
    """
    asked = Wanted(columns, options.between, options.mode, parts=parts or Parts())
    for rows in rows_of_split(Split(topic, (wanted,)), options):
        batch = wanted_batch(rows, topic, asked)
        if batch.num_rows:
            yield batch


def refuse_other_rows(options: SourceOptions) -> None:
    """A job that sends what it reads has no place for a record that could not be decoded, and says itself what it reads."""
    if options.subscription:
        raise WrongOption(f"option unacknowledgedBy={options.subscription}: of reconcile and of queries, not of this job")
    if options.mode == "PERMISSIVE":
        raise WrongOption("option mode=PERMISSIVE: a record that cannot be decoded cannot be sent; FAILFAST or DROPMALFORMED")
