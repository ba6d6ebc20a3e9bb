"""A machine whose invariant breaks is found after the step that broke it, and not in the middle of a step."""

import pytest

from tests.invariants import checked


class Balanced:
    """Two numbers that are equal between steps."""

    def __init__(self) -> None:
        self.one = self.other = 0

    def both(self) -> None:
        self.one += 1
        self.rest()

    def rest(self) -> None:
        self.other += 1

    def check_invariants(self) -> None:
        assert self.one == self.other


def test_a_step_that_breaks_an_invariant_fails_and_one_within_another_is_not_looked_at() -> None:
    with checked(Balanced) as calls:
        machine = Balanced()
        machine.both()
        assert calls.checks == 1
        with pytest.raises(AssertionError):
            machine.rest()
    machine.rest()
