"""The slowest cursor is the one that a look at all of them finds, and it is found without one."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.cursor.slowest_cursor import SlowestCursor
from tests.cost import steps
from wire.position import Position


@dataclass
class Cursor:
    mark_delete: Position
    looks: int = 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "leave", "move", "ask"]), st.integers(0, 5), st.integers(0, 6)), max_size=60
)


@given(STEPS)
def test_the_slowest_mark_is_the_least_of_all_cursors(steps: list[tuple[str, int, int]]) -> None:
    cursors: dict[str, Cursor] = {}
    slowest = SlowestCursor(cursors)
    for what, number, place in steps:
        name, at = f"c-{number}", Position(place // 3, place % 3)
        if what == "come" and name not in cursors:
            cursors[name] = Cursor(at)
            slowest.noted(name)
        elif what == "leave":
            cursors.pop(name, None)
            slowest.left()
        elif what == "move" and name in cursors:
            old, cursors[name].mark_delete = cursors[name].mark_delete, at
            if at < old:
                slowest.noted(name)
        slowest.check_invariants()
        assert slowest.mark() == min((cursor.mark_delete for cursor in cursors.values()), default=None)


class Counting(dict[str, Cursor]):
    """Counts the looks at single cursors."""

    looks = 0

    def get(self, name: str, default: Cursor | None = None) -> Cursor | None:  # type: ignore[override]  # only so it is called
        self.looks += 1
        return super().get(name, default)


def test_each_of_many_that_leave_costs_a_look_or_two() -> None:
    cursors = Counting()
    slowest = SlowestCursor(cursors)
    for number in range(3000):
        cursors[f"c-{number}"] = Cursor(Position(0, number))
        slowest.noted(f"c-{number}")
    for name in list(cursors):
        del cursors[name]
        slowest.mark()
    assert cursors.looks <= 2 * 3000


def test_a_cursor_that_goes_to_and_fro_leaves_no_heap_behind() -> None:
    cursors: dict[str, Cursor] = {}
    slowest = SlowestCursor(cursors)
    for name in ("fast", "slow"):
        cursors[name] = Cursor(Position(0, 0))
        slowest.noted(name)
    for number in range(10_000):
        cursors["fast"].mark_delete = Position(1, number % 7)
        slowest.noted("fast")
    assert len(slowest._heap) + len(slowest._old) < 100
    slowest.check_invariants()


def test_cursors_that_left_leave_no_heap_behind_though_nobody_asks() -> None:
    cursors: dict[str, Cursor] = {}
    slowest = SlowestCursor(cursors)
    for number in range(3000):
        cursors[f"c-{number}"] = Cursor(Position(0, number))
        slowest.noted(f"c-{number}")
    for left, name in enumerate(list(cursors), 1):
        del cursors[name]
        slowest.left()
        assert len(slowest._heap) + len(slowest._old) <= 3 * (3000 - left) + 24
        if left % 100 == 0:
            slowest.check_invariants()
    assert not slowest._moved


def test_no_single_one_of_very_many_that_leave_pays_for_all_the_others() -> None:
    dearest = list[int]()
    for count in (500, 4000):
        cursors = {f"c-{number}": Cursor(Position(0, number)) for number in range(count)}
        slowest = SlowestCursor(cursors)
        for name in cursors:
            slowest.noted(name)
        dearest.append(0)
        for name in list(cursors):
            del cursors[name]
            dearest[-1] = max(dearest[-1], steps(slowest.left))
    assert dearest[1] <= dearest[0], f"of 500 and of 4000 cursors: {dearest}"


@given(STEPS, st.integers(20, 60))
def test_the_least_mark_is_found_while_a_heap_is_replaced(steps: list[tuple[str, int, int]], count: int) -> None:
    cursors = {f"c-{number}": Cursor(Position(0, number)) for number in range(count)}
    slowest = SlowestCursor(cursors)
    for name in cursors:
        slowest.noted(name)
    for number in range(count // 2 - 8, count):
        del cursors[f"c-{number}"]
        slowest.left()
    for what, number, place in steps:
        name, at = f"c-{number}", Position(0, place)
        if what == "leave":
            cursors.pop(name, None)
            slowest.left()
        elif what == "move" or (what == "come" and name not in cursors):
            cursors[name] = Cursor(at)
            slowest.noted(name)
        slowest.check_invariants()
        assert slowest.mark() == min((cursor.mark_delete for cursor in cursors.values()), default=None)
