"""Reads under way are within their bound, waiting reads are let in in order, and one that leaves the line blocks no other."""

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.cache.reads_in_flight import ReadsInFlight
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(ReadsInFlight)

STEPS = st.lists(st.tuples(st.sampled_from(["read", "end", "leave"]), st.integers(0, 12)), max_size=40)


@given(st.integers(0, 10), STEPS)
def test_reads_are_let_in_in_the_order_in_which_they_came(bytes_max: int, steps: list[tuple[str, int]]) -> None:
    gate = ReadsInFlight(bytes_max, 3)
    under_way: list[tuple[int, int]] = []
    line: dict[int, object] = {}
    granted: list[int] = []
    for number, (step, size) in enumerate(steps):
        if step == "read" and gate.try_take(size):
            assert not line, "somebody waits"
            under_way.append((number, size))
        elif step == "read":

            def let_in(number: int = number, size: int = size) -> None:
                del line[number]
                granted.append(number)
                under_way.append((number, size))

            waiting = gate.wait(size, let_in)
            assert (waiting is None) == (len(line) == 3)
            if waiting is not None:
                line[number] = waiting
        elif step == "end" and under_way:
            gate.give_back(under_way.pop(size % len(under_way))[1])
        elif step == "leave" and line:
            gate.leave(line.pop(list(line)[size % len(line)]))  # type: ignore[arg-type]  # what `wait` gave
        assert gate.waiting == len(line)
    assert granted == sorted(granted)


def test_one_that_leaves_the_line_lets_in_those_behind_it() -> None:
    gate = ReadsInFlight(10, 3)
    granted: list[str] = []
    assert gate.try_take(5)
    large = gate.wait(10, lambda: granted.append("large"))
    assert gate.wait(5, lambda: granted.append("small")) is not None
    assert large is not None
    gate.leave(large)
    assert granted == ["small"]
