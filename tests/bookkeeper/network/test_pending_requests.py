"""Pending requests to a bookie: which adds an answer ends, in whatever order answers come."""

from itertools import accumulate, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.network.pending_requests import Awaited, PendingAdd, PendingAdds
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(Awaited, PendingAdds)


@given(st.permutations(range(12)), st.integers(0, 11))
def test_adds_are_done_in_order_however_their_answers_come(answers: list[int], refused: int) -> None:
    adds: PendingAdds[int] = PendingAdds()
    for number in range(4):
        adds.sent(7, PendingAdd(3 * number, 3, 0.0, number))
    done: list[PendingAdd[int]] = []
    for at, entry_id in enumerate(answers):
        done += adds.answered(7, entry_id, 1, 104 if entry_id == refused else 0)
        assert [add.owner for add in done] == [
            number for number in range(4) if all(each in answers[: at + 1] for each in range(3 * number + 3))
        ]
    assert [bool(add.code) for add in done] == [number == refused // 3 for number in range(4)]
    assert not list(adds)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sets(st.integers(0, 23)), st.randoms(use_true_random=False))
def test_answers_that_come_in_runs_end_the_adds_that_they_are_all_of(sizes: list[int], cuts: set[int], order: Random) -> None:
    adds: PendingAdds[int] = PendingAdds()
    ends = list(accumulate(sizes, initial=0))
    for number, (first, end) in enumerate(pairwise(ends)):
        adds.sent(7, PendingAdd(first, end - first, 0.0, number))
    edges = sorted({0, ends[-1], *(cut for cut in cuts if cut < ends[-1])})
    runs = list(pairwise(edges))
    order.shuffle(runs)
    answered: set[int] = set()
    done: list[int] = []
    for first, end in runs:
        assert adds.awaits(7, first, end - first)
        assert not adds.awaits(7, first, ends[-1] - first + 1)
        done += [add.owner for add in adds.answered(7, first, end - first, 0)]
        answered |= set(range(first, end))
        assert not adds.awaits(7, first, 1)
        assert done == [number for number, end in enumerate(ends[1:]) if answered >= set(range(end))]
    assert not list(adds)


def test_two_adds_of_one_entry_take_one_answer_each() -> None:
    adds: PendingAdds[str] = PendingAdds()
    adds.sent(7, PendingAdd(5, 1, 0.0, "first"))
    adds.sent(7, PendingAdd(5, 1, 0.0, "second"))
    assert [add.owner for add in adds.answered(7, 5, 1, 0)] == ["first"]
    assert [add.owner for add in adds.answered(7, 5, 1, 0)] == ["second"]
    assert adds.answered(7, 5, 1, 0) == []
