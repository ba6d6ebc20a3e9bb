"""Errors of a stream whose topics are deleted, made again or restored under it, without Spark: loss is always told."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pipeline.pyspark_pulsar.errors import DataLost, NoSuchPosition
from pipeline.pyspark_pulsar.frames.split_batches import Asked
from pipeline.pyspark_pulsar.options import parse_options
from pipeline.pyspark_pulsar.positions import EARLIEST, Ledger, Place, check_batch
from pipeline.pyspark_pulsar.spark.stream_source import PulsarStreamReader
from pipeline.pyspark_pulsar.stream_offsets import offset_json

GIVEN = {"service.url": "pulsar://127.0.0.1:1", "admin.url": "http://127.0.0.1:1"}
A, B = "persistent://public/default/t-a", "persistent://public/default/t-b"


class World(PulsarStreamReader):
    """A stream whose topics have the ledgers that a test says."""

    def __init__(self, **more: str) -> None:
        options = parse_options({**GIVEN, **more}, is_stream=True)
        asked: Any = Asked.__new__(Asked)
        object.__setattr__(asked, "options", options)
        super().__init__(asked)
        self.there: dict[str, list[Ledger]] = {}

    def _ledgers(self) -> dict[str, list[Ledger]]:
        return dict(self.there)

    def latest(self, starts: Mapping[str, Place]) -> dict[str, str]:
        found = self.latestOffset(offset_json(starts), ReadAllAvailable())
        return dict(found["topics"])


def pattern(**more: str) -> World:
    return World(topicsPattern="persistent://public/default/t-.*", **more)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_topic_of_a_pattern_that_goes_with_what_was_not_read_is_told(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    world = pattern(failOnDataLoss=fails)
    world.there = {A: [Ledger(1, 5, 5)], B: [Ledger(2, 5, 5)]}
    starts = {A: Place(1, 5), B: Place(2, 3)}
    world.latest(starts)
    world.there = {A: [Ledger(1, 6, 6)]}
    if fails == "true":
        with pytest.raises(DataLost, match=f"{B}: it was deleted; what it had from 2:3 on is missing"):
            world.latest(starts)
        return
    for _ in range(2):
        assert world.latest(starts) == {A: "1:6", B: "2:3"}
    assert [each.message for each in caplog.records if B in each.message] == [
        f"{B}: it was deleted; what it had from 2:3 on is missing; failOnDataLoss=false, so that the query goes on without them"
    ]


def test_a_topic_of_a_pattern_that_was_read_whole_may_go(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = pattern()
    world.there = {A: [Ledger(1, 5, 5)], B: [Ledger(2, 5, 5)]}
    starts = {A: Place(1, 5), B: Place(2, 5)}
    world.latest(starts)
    del world.there[B]
    assert world.latest(starts) == {A: "1:5", B: "2:5"}
    assert f"{B}: it was deleted; all that was seen of it is read" in caplog.text


def test_a_topic_deleted_during_a_stop_is_logged_for_a_pattern_and_an_error_for_a_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = pattern()
    world.there = {A: [Ledger(1, 5, 5)]}
    world.latest({A: Place(1, 5), B: Place(2, 5)})
    assert f"{B}: it was deleted; what it had from 2:5 on is missing" in caplog.text
    partitioned = World(topic="t")
    name = "persistent://public/default/t-partition-{}"
    partitioned.there = {name.format(0): [Ledger(1, 5, 5)]}
    with pytest.raises(DataLost, match=r"t-partition-1: it was deleted; what it had from 2:5 on is missing"):
        partitioned.latest({name.format(0): Place(1, 5), name.format(1): Place(2, 5)})


@pytest.mark.parametrize("start", [None, EARLIEST])
def test_a_batch_of_a_topic_that_is_made_again_before_its_first_batch_is_read_is_lost(start: Place | None) -> None:
    """All of the batch would be skipped: where it begins is no place that could be missed."""
    for ledgers in ([Ledger(20, 5, 5)], []):
        with pytest.raises(DataLost, match="t: the messages before 10:7 were deleted"):
            check_batch("t", ledgers, start, Place(10, 7))
    check_batch("t", [Ledger(10, 9, 9), Ledger(20, 5, 5)], start, Place(10, 7))
    check_batch("t", [], start, EARLIEST)


def test_a_batch_that_ends_beyond_its_topic_is_not_cut_short() -> None:
    with pytest.raises(NoSuchPosition, match=r"t: a batch of the checkpoint ends at 10:7, beyond the end of the topic, 10:6"):
        check_batch("t", [Ledger(10, 6, 6)], Place(10, 2), Place(10, 7))
    check_batch("t", [Ledger(10, 6, 6)], Place(10, 2), Place(12, 0))  # of a ledger that had nothing, and went
    with pytest.raises(DataLost, match="t: the messages from 10:2 to before 20:0 were deleted"):
        check_batch("t", [Ledger(20, 6, 6)], Place(10, 2), Place(10, 7))
