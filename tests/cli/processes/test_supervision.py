"""Decisions of a supervisor about its processes: each rule by itself, then any order of events against the invariants."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cli.processes.supervision import (
    ALIVE,
    AllReady,
    BecameReady,
    Begun,
    Bounds,
    Effect,
    Ended,
    Event,
    Finish,
    Kill,
    Phase,
    RestartAsked,
    Start,
    StopAsked,
    Supervision,
    Tell,
    Terminate,
    TimePassed,
    WakeAt,
)

BOUNDS = Bounds(ready_seconds_max=10, stop_seconds_max=5, stops_seconds_max=12, lasting_seconds=60, failures_max=3)
KILLED = "killed by SIGKILL"


def done(supervision: Supervision, event: Event, now: float = 0.0) -> list[Effect]:
    """The effects, but for the log and the clock."""
    effects = supervision.handle(event, now)
    supervision.check_invariants()
    return [each for each in effects if not isinstance(each, Tell | WakeAt)]


def serving(count: int) -> Supervision:
    supervision = Supervision(count, BOUNDS)
    done(supervision, Begun())
    for number in range(1, count + 1):
        done(supervision, BecameReady(number))
    return supervision


def until_given_up(supervision: Supervision, number: int) -> list[Tell]:
    """Ends the process again and again, each time when it has just been started."""
    said: list[Tell] = []
    for now in itertools.count(1.0, 100.0):
        said += [each for each in supervision.handle(Ended(number, "exit code 1"), now) if isinstance(each, Tell)]
        if supervision.processes[number].phase is Phase.GIVEN_UP:
            break
        if supervision.processes[number].phase is Phase.WAITING:
            done(supervision, TimePassed(), now + 50.0)
    return said


def test_the_first_process_starts_alone_and_then_all_others_together() -> None:
    supervision = Supervision(3, BOUNDS)
    assert done(supervision, Begun()) == [Start(1, 1)]
    assert done(supervision, BecameReady(1)) == [Start(2, 1), Start(3, 1)]
    assert done(supervision, BecameReady(3)) == []
    assert done(supervision, BecameReady(2)) == [AllReady()]


def test_one_process_alone_is_ready_at_once() -> None:
    supervision = Supervision(1, BOUNDS)
    done(supervision, Begun())
    assert done(supervision, BecameReady(1)) == [AllReady()]


def test_a_process_that_never_became_ready_at_the_start_ends_all_with_an_exit_code() -> None:
    supervision = Supervision(2, BOUNDS)
    done(supervision, Begun())
    done(supervision, BecameReady(1))
    assert done(supervision, Ended(2, "exit code 1")) == [Terminate(1)]
    assert done(supervision, Ended(1, "exit code 0")) == [Finish(1)]


def test_a_process_that_dies_is_started_again_at_once_and_later_after_growing_delays() -> None:
    supervision = serving(2)
    assert done(supervision, Ended(2, KILLED), 1.0) == [Start(2, 2)]
    effects = supervision.handle(Ended(2, KILLED), 2.0)
    assert effects[-1] == WakeAt(2.5)
    assert done(supervision, TimePassed(), 2.5) == [Start(2, 3)]
    assert supervision.handle(Ended(2, KILLED), 3.0)[-1] == WakeAt(4.0)


def test_a_process_that_served_for_long_is_started_at_once_again() -> None:
    supervision = serving(2)
    for turn in range(10):
        now = 100.0 * turn + 99
        assert done(supervision, Ended(2, KILLED), now) == [Start(2, turn + 2)]
        done(supervision, BecameReady(2), now)


def test_a_process_that_fails_too_often_is_given_up_by_name_and_the_others_serve_on() -> None:
    supervision = serving(2)
    said = until_given_up(supervision, 2)
    assert supervision.processes[2].phase is Phase.GIVEN_UP
    assert (said[-1].number, said[-1].reason, said[-1].is_error) == (2, "exit code 1", True)
    assert "given up" in said[-1].what
    assert supervision.processes[1].phase is Phase.SERVING


def test_the_supervisor_ends_with_an_exit_code_when_all_processes_are_given_up() -> None:
    supervision = serving(1)
    for now in (1.0, 2.0, 4.0):
        done(supervision, Ended(1, "exit code 1"), now)
        done(supervision, TimePassed(), now + 1.9)
    assert done(supervision, Ended(1, "exit code 1"), 8.0) == [Finish(1)]


def test_a_process_that_is_not_ready_in_time_is_killed() -> None:
    supervision = serving(2)
    done(supervision, Ended(2, KILLED), 1.0)
    assert done(supervision, TimePassed(), 11.0) == [Kill(2)]
    assert supervision.handle(Ended(2, KILLED), 11.0)[-1] == WakeAt(11.5)


def test_a_stop_goes_through_the_processes_one_after_another() -> None:
    supervision = serving(3)
    assert done(supervision, StopAsked()) == [Terminate(1)]
    assert done(supervision, Ended(1, "exit code 0")) == [Terminate(2)]
    assert done(supervision, Ended(2, "exit code 0")) == [Terminate(3)]
    assert done(supervision, Ended(3, "exit code 0")) == [Finish(0)]


def test_a_process_that_does_not_stop_in_time_is_killed_and_the_next_one_stops() -> None:
    supervision = serving(2)
    done(supervision, StopAsked(), 0.0)
    assert done(supervision, TimePassed(), 5.0) == [Kill(1)]
    assert done(supervision, Ended(1, KILLED), 5.0) == [Terminate(2)]


def test_a_stop_that_takes_long_asks_the_rest_together() -> None:
    supervision = serving(5)
    done(supervision, StopAsked(), 0.0)
    done(supervision, Ended(1, "exit code 0"), 4.0)
    done(supervision, Ended(2, "exit code 0"), 8.0)
    assert done(supervision, TimePassed(), 12.0) == [Terminate(4), Terminate(5)]
    assert set(done(supervision, TimePassed(), 17.0)) == {Kill(3), Kill(4), Kill(5)}


def test_a_second_stop_kills_all_at_once() -> None:
    supervision = serving(2)
    done(supervision, StopAsked())
    assert done(supervision, StopAsked()) == [Kill(1), Kill(2)]
    assert done(supervision, Ended(1, KILLED)) == []
    assert done(supervision, Ended(2, KILLED)) == [Finish(0)]


def test_a_stop_during_the_start_ends_what_starts_and_starts_nothing_more() -> None:
    supervision = Supervision(2, BOUNDS)
    done(supervision, Begun())
    assert done(supervision, StopAsked()) == [Terminate(1)]
    assert done(supervision, BecameReady(1)) == []
    assert done(supervision, Ended(1, "exit code 0")) == [Finish(0)]


def test_a_stop_does_not_wait_for_a_process_whose_next_start_is_due_later() -> None:
    supervision = serving(2)
    done(supervision, Ended(2, KILLED), 1.0)
    done(supervision, Ended(2, KILLED), 1.0)
    assert done(supervision, StopAsked(), 1.1) == [Terminate(1)]
    assert done(supervision, Ended(1, "exit code 0"), 1.2) == [Finish(0)]


def test_a_restart_goes_through_the_processes_and_waits_for_each_to_serve() -> None:
    supervision = serving(2)
    assert done(supervision, RestartAsked()) == [Terminate(1)]
    assert done(supervision, RestartAsked()) == []
    assert done(supervision, Ended(1, "exit code 0")) == [Start(1, 2)]
    assert done(supervision, BecameReady(1)) == [Terminate(2)]
    assert done(supervision, Ended(2, "exit code 0")) == [Start(2, 2)]
    assert done(supervision, BecameReady(2)) == []
    assert done(supervision, RestartAsked()) == [Terminate(1)]


def test_a_restart_stops_where_a_process_does_not_start_again() -> None:
    """Such as with a configuration that was changed for the worse: the others go on with what they have."""
    supervision = serving(2)
    done(supervision, RestartAsked(), 1.0)
    done(supervision, Ended(1, "exit code 0"), 1.0)
    assert done(supervision, Ended(1, "exit code 1"), 2.0) == [Start(1, 3)]
    assert done(supervision, BecameReady(1), 3.0) == []
    assert supervision.processes[2].starts == 1


def test_a_restart_starts_those_that_were_given_up() -> None:
    supervision = serving(2)
    until_given_up(supervision, 2)
    done(supervision, RestartAsked(), 1000.0)
    done(supervision, Ended(1, "exit code 0"), 1000.0)
    assert done(supervision, BecameReady(1), 1001.0) == [Start(2, 5)]


class World:
    """Processes that do what they are told, and die by chance; the effects must fit to them."""

    def __init__(self, count: int) -> None:
        self.supervision = Supervision(count, BOUNDS)
        self.alive: dict[int, bool] = {}
        """Whether it was asked to end."""
        self.now = 0.0
        self.wake: float | None = None
        self.exit_code: int | None = None

    def happens(self, event: Event) -> None:
        for effect in self.supervision.handle(event, self.now):
            match effect:
                case Start(number, starts):
                    assert number not in self.alive
                    assert not self.supervision.is_stopping
                    assert starts == self.supervision.processes[number].starts
                    self.alive[number] = False
                case Terminate(number) | Kill(number):
                    assert number in self.alive
                    self.alive[number] = True
                case WakeAt(at):
                    self.wake = at
                case Finish(exit_code):
                    assert not self.alive
                    self.exit_code = exit_code
        self.supervision.check_invariants()
        assert {each.number for each in self.supervision.processes.values() if each.phase in ALIVE} == set(self.alive)

    def ends(self, number: int) -> None:
        del self.alive[number]
        self.happens(Ended(number, "exit code 1"))

    def does(self, step: str, choice: int) -> None:
        alive = sorted(self.alive)
        number = alive[choice % len(alive)] if alive else 0
        match step:
            case "ready" if number and self.supervision.processes[number].phase is Phase.STARTING:
                self.happens(BecameReady(number))
            case "end" if number:
                self.ends(number)
            case "time" if self.wake is not None:
                self.now = max(self.now, self.wake)
                self.happens(TimePassed())
            case "restart":
                self.happens(RestartAsked())
            case "stop" if choice == 0:
                self.happens(StopAsked())
            case "wait":
                self.now += (0.1, 1.0, 7.0, 100.0)[choice]


STEPS = st.lists(
    st.tuples(st.sampled_from(("ready", "end", "time", "restart", "stop", "wait")), st.integers(0, 3)), max_size=60
)


@given(count=st.integers(1, 4), steps=STEPS)
def test_no_number_ever_runs_twice_and_every_stop_comes_to_its_end(count: int, steps: list[tuple[str, int]]) -> None:
    world = World(count)
    world.happens(Begun())
    for step, choice in steps:
        if world.exit_code is not None:
            return
        world.does(step, choice)
    if world.exit_code is None:
        world.happens(StopAsked())
    for _ in itertools.count():
        asked = [number for number, is_asked in world.alive.items() if is_asked]
        if world.exit_code is not None:
            break
        assert asked, "a stop that waits for a process which nobody asked to end"
        world.ends(asked[0])
