"""Due times of a replay's messages, in virtual time; and the sequence ids of copies."""

from dataclasses import dataclass

import numpy
import pyarrow
import pytest

from pipeline.pyspark_pulsar.decode.arrow_columns import MESSAGE_ID
from pipeline.pyspark_pulsar.errors import PipelineError, WrongOption
from pipeline.pyspark_pulsar.jobs.copies.pace import Clock, Pace, Stopped
from pipeline.pyspark_pulsar.jobs.copies.source_positions import entry_of, sequence_ids


@dataclass
class VirtualTime:
    """A wait takes just that long; `stops_at` is when the job is told to end."""

    seconds: float = 100.0
    stops_at: float = float("inf")

    def now(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> bool:
        self.seconds += seconds
        return self.seconds >= self.stops_at


def sent_at(times_ms: list[int], speed: float) -> list[float]:
    """Seconds after the first, for each message."""
    time = VirtualTime()
    pace = Pace(speed, Clock(time.now, time.wait))
    found: list[float] = []
    while len(found) < len(times_ms):
        count = pace.due(numpy.array(times_ms[len(found) :]))
        found += [time.seconds - 100.0] * count
    return found


def test_messages_go_as_far_apart_as_they_came() -> None:
    assert sent_at([5000, 6000, 6500, 9000], 1) == pytest.approx([0, 1, 1.5, 4])


def test_twice_the_speed_takes_half_the_time_and_none_takes_none() -> None:
    assert sent_at([5000, 6000, 9000], 2) == pytest.approx([0, 0.5, 2])
    assert sent_at([5000, 6000, 9000], 0) == [0, 0, 0]


def test_a_message_of_an_earlier_time_waits_for_those_before_it_and_for_nothing_else() -> None:
    assert sent_at([5000, 8000, 6000, 8000], 1) == pytest.approx([0, 3, 3, 3])


def test_several_topics_have_one_clock() -> None:
    time = VirtualTime()
    pace = Pace(1, Clock(time.now, time.wait))
    assert pace.due(numpy.array([10_000])) == 1
    assert pace.due(numpy.array([12_000])) == 1
    assert time.seconds == pytest.approx(102)
    assert pace.due(numpy.array([11_000])) == 1  # late already
    assert time.seconds == pytest.approx(102)


def test_a_job_that_is_to_end_does_not_wait() -> None:
    time = VirtualTime(stops_at=101)
    pace = Pace(1, Clock(time.now, time.wait))
    pace.due(numpy.array([0]))
    with pytest.raises(Stopped):
        pace.due(numpy.array([3_600_000]))


@pytest.mark.parametrize("speed", [-1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(WrongOption, match="--speed"):
        Pace(speed, Clock(lambda: 0.0, lambda seconds: False))


def places(*found: tuple[int, int]) -> pyarrow.RecordBatch:
    ids = [{"ledger_id": 7, "entry_id": entry, "batch_index": index} for entry, index in found]
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(ids, MESSAGE_ID)], names=["message_id"])


def test_sequence_ids_rise_with_places_and_tell_them() -> None:
    found = sequence_ids(places((0, -1), (1, 0), (1, 1), (2**40, 999_999)), "t", -1).tolist()
    assert found == sorted(set(found))
    assert [entry_of(each) for each in found] == [0, 1, 1, 2**40]
    assert max(found) < 2**63


def test_places_that_do_not_rise_are_refused_as_brokers_would_drop_them() -> None:
    with pytest.raises(PipelineError, match="t: message 0 of entry 3"):
        sequence_ids(places((4, 0), (3, 0)), "t", -1)
    with pytest.raises(PipelineError, match="entry 4"):
        sequence_ids(places((4, 0)), "t", 4 << 20)
    with pytest.raises(PipelineError, match="message 1048576 of entry 4"):
        sequence_ids(places((4, 1 << 20)), "t", -1)
