"""Histograms as Prometheus counts them."""

from ports.metrics.histogram import Histogram


def test_a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    histogram = Histogram((1.0, 5.0, 10.0))
    for value in (0.5, 1.0, 1.1, 10.0, 11.0):
        histogram.record(value)
    assert histogram.cumulative() == [2, 3, 4, 5]
    assert histogram.count == 5
    assert histogram.total == 23.6


def test_a_value_may_be_recorded_several_times_at_once() -> None:
    histogram = Histogram((1.0,))
    histogram.record(2.0, 3)
    assert histogram.cumulative() == [0, 3]
    assert histogram.total == 6.0


def test_an_empty_histogram_has_no_values() -> None:
    assert Histogram((1.0, 2.0)).cumulative() == [0, 0, 0]
    assert Histogram((1.0, 2.0)).count == 0
