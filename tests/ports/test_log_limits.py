"""LineLimits: a bounded number of lines from each place in the code."""

from ports.log_limits import LineLimits

ONE, OTHER = ("bookie", "a.py", 1), ("bookie", "a.py", 2)


def test_lines_beyond_the_limit_of_a_place_are_left_out_and_counted() -> None:
    limits = LineLimits(lines_max=2, period_seconds=60.0)
    assert [limits.lets_through(ONE, 1.0) for _ in range(5)] == [True, True, False, False, False]
    assert limits.lets_through(OTHER, 1.0), "each place has a limit of its own"
    assert limits.ended(61.0) == [(ONE, 3)]


def test_a_place_begins_anew_after_its_period() -> None:
    limits = LineLimits(lines_max=1, period_seconds=60.0)
    assert limits.lets_through(ONE, 0.0)
    assert not limits.lets_through(ONE, 59.9)
    assert limits.ended(59.9) == []
    assert limits.ended(60.0) == [(ONE, 1)]
    assert limits.lets_through(ONE, 60.0)
    assert limits.ended(1000.0) == [], "nothing was left out in this period"


def test_periods_of_places_end_one_by_one() -> None:
    limits = LineLimits(lines_max=1, period_seconds=60.0)
    for place, now in ((ONE, 0.0), (ONE, 1.0), (OTHER, 30.0), (OTHER, 31.0)):
        limits.lets_through(place, now)
    assert limits.ended(60.0) == [(ONE, 1)]
    assert limits.ended(89.0) == []
    assert limits.ended(90.0) == [(OTHER, 1)]
