"""A queue that exists only while something is in it, beside a list."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from ports.loop.queue_on_demand import queued, without_first


@given(st.lists(st.integers() | st.none()))
def test_items_come_out_in_the_order_in_which_they_came_and_an_empty_queue_is_none(steps: list[int | None]) -> None:
    """A number is put in; None takes the first one out."""
    queue: deque[int] | None = None
    naive: list[int] = []
    for step in steps:
        if step is not None:
            queue = queued(queue, step)
            naive.append(step)
        elif queue is not None:
            assert queue[0] == naive.pop(0)
            queue = without_first(queue)
        assert (queue is None) == (not naive)
        assert list(queue or ()) == naive
