"""Order of writes that are under way together."""

from hypothesis import given
from hypothesis import strategies as st

from metadata.zookeeper.write_order import Turn, WriteOrder

PATHS = st.lists(st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/ab"]), min_size=1, max_size=3)


def are_related(one: frozenset[str], other: frozenset[str]) -> bool:
    return any(a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in one for b in other)


@given(st.lists(PATHS, max_size=12), st.randoms(use_true_random=False))
def test_writes_run_beside_each_other_unless_they_are_related_and_then_in_order(asked: list[list[str]], rng) -> None:  # type: ignore[no-untyped-def]
    order = WriteOrder()
    turns = [order.join(paths) for paths in asked]
    left: list[Turn] = []
    while len(left) < len(turns):
        waiting = [turn for turn in turns if turn not in left]
        for turn in waiting:
            earlier = waiting[: waiting.index(turn)]
            assert turn.has_come == (not any(are_related(turn.paths, other.paths) for other in earlier))
        turn = rng.choice([turn for turn in waiting if turn.has_come])
        ready = order.leave(turn)
        left.append(turn)
        assert all(each.has_come for each in ready)
    assert len(order) == 0
