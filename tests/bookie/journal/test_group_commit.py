"""The pure machine that gathers journal writes into groups."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.journal.group_commit import GroupCommit, WaitUntil, Write
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(GroupCommit)


def machine(group_bytes: int = 100, group_bytes_max: int = 200, wait: float = 1.0) -> GroupCommit[str]:
    return GroupCommit(group_bytes=group_bytes, group_bytes_max=group_bytes_max, wait_seconds=wait)


def test_an_idle_journal_writes_an_item_at_once() -> None:
    commit = machine()
    assert commit.next(0.0) is None
    assert commit.on_queued("a", 10, 0.0)
    assert commit.next(0.0) == Write(["a"])
    commit.on_written()
    assert commit.on_queued("b", 10, 0.0)
    assert commit.next(0.0) == Write(["b"])


def test_items_queued_during_a_write_gather_until_the_oldest_is_old_enough() -> None:
    commit = machine()
    commit.on_queued("a", 10, 0.0)
    commit.next(0.0)
    assert not commit.on_queued("b", 10, 0.5)
    assert not commit.on_queued("c", 10, 0.7)
    assert commit.next(0.7) is None
    commit.on_written()
    assert commit.next(0.8) == WaitUntil(1.5)
    assert not commit.on_queued("d", 10, 0.9)
    assert commit.next(1.5) == Write(["b", "c", "d"])


def test_one_that_waits_at_rest_too_writes_when_the_first_item_is_old_enough_or_there_is_enough() -> None:
    commit: GroupCommit[str] = GroupCommit(group_bytes=100, group_bytes_max=200, wait_seconds=1.0, waits_at_rest=True)
    assert commit.on_queued("a", 10, 0.0)
    assert commit.next(0.0) == WaitUntil(1.0)
    assert not commit.on_queued("b", 10, 0.5)
    assert commit.next(1.0) == Write(["a", "b"])
    commit.on_written()
    assert commit.on_queued("c", 100, 3.0)
    assert commit.next(3.0) == Write(["c"])


def test_enough_bytes_end_the_wait() -> None:
    commit = machine()
    commit.on_queued("a", 10, 0.0)
    commit.next(0.0)
    commit.on_queued("b", 10, 0.5)
    commit.on_written()
    assert commit.next(0.5) == WaitUntil(1.5)
    assert commit.on_queued("c", 95, 0.6)
    assert commit.next(0.6) == Write(["b", "c"])


def test_a_group_has_a_bound_and_a_larger_item_goes_alone() -> None:
    commit = machine()
    for name, size in (("a", 150), ("b", 60), ("c", 1000), ("d", 1)):
        commit.on_queued(name, size, 0.0)
    groups = []
    while isinstance(decision := commit.next(5.0), Write):
        groups.append(decision.items)
        commit.on_written()
    assert groups == [["a"], ["b"], ["c"], ["d"]]
    assert commit.waiting_bytes == 0


def test_drained_items_are_not_written() -> None:
    commit = machine()
    commit.on_queued("a", 10, 0.0)
    commit.next(0.0)
    commit.on_queued("b", 10, 0.0)
    assert commit.drain() == ["b"]
    commit.on_written()
    assert commit.next(9.0) is None


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.tuples(st.just("add"), st.integers(0, 300)), st.tuples(st.sampled_from(["tick", "written"]), st.just(0)))
    )
)
def test_every_item_is_written_once_in_order_and_none_waits_longer_than_told(plan: list[tuple[str, int]]) -> None:
    commit: GroupCommit[int] = GroupCommit(group_bytes=100, group_bytes_max=200, wait_seconds=1.0)
    now, queued, written = 0.0, 0, []
    flying: list[int] | None = None
    arrived: list[float] = []
    for what, size in plan:
        if what == "add":
            commit.on_queued(queued, size, now)
            arrived.append(now)
            queued += 1
        elif what == "tick":
            now += 0.3
        elif flying is not None:
            written += flying
            flying = None
            commit.on_written()
        decision = commit.next(now)
        if isinstance(decision, Write):
            assert flying is None
            flying = decision.items
        elif isinstance(decision, WaitUntil):
            oldest = len(written)
            assert now < decision.time <= arrived[oldest] + 1.0
        elif flying is None:
            assert len(written) == queued
    assert written + (flying or []) == list(range(len(written) + len(flying or [])))
