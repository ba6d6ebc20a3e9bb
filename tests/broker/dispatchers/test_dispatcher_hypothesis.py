"""The generated schedules once more with hypothesis drawing them: fewer, but it looks for corners and shrinks well."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.dispatchers.schedules import Schedule
from tests.broker.dispatchers.test_dispatcher_properties import (
    ExclusiveSchedule,
    KeySharedSchedule,
    OutOfOrderSchedule,
    SharedSchedule,
    SingleActiveSchedule,
)

ALL = (SingleActiveSchedule, ExclusiveSchedule, SharedSchedule, KeySharedSchedule, OutOfOrderSchedule)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False), steps=st.integers(0, 15))
def test_a_dispatcher_withstands_schedules_drawn_by_hypothesis(kind: type[Schedule], rng: Random, steps: int) -> None:
    kind(rng).run(steps)
