"""Supervision: what is done about N processes when one starts, is ready or ends, and when the whole is to stop. Pure.

Owns what is known of each process. Relies on its driver to do every effect, in order, and to report what comes of it. Never
starts a process while the one before it with the same number is alive.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds, and how often a process may fail in succession."""

    ready_seconds_max: float = 120.0
    """A process that is not ready by then is killed."""
    stop_seconds_max: float = 30.0
    """A process that was asked to stop and has not by then is killed."""
    stops_seconds_max: float = 90.0
    """One stops after another for so long; then the rest are asked together."""
    first_delay_seconds: float = 0.5
    """Delay before the second start in succession; the first is at once, and each further delay is twice the one before."""
    delay_seconds_max: float = 30.0
    lasting_seconds: float = 60.0
    """A process that served for so long did not fail to start: its next start is a first one."""
    failures_max: int = 10
    """Failures in succession; then the process is given up."""


class Phase(enum.Enum):
    """DOWN: ended as it was asked to. WAITING: its next start is due later. GIVEN_UP: it is not started again."""

    DOWN = "down"
    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"
    WAITING = "waiting"
    GIVEN_UP = "given up"


_GIVEN_UP = (
    "a process ended too often and is given up: correct the cause that its log names, then send SIGHUP to the supervisor"
)
ALIVE = (Phase.STARTING, Phase.SERVING, Phase.STOPPING)


@dataclass(frozen=True, slots=True)
class Begun:
    """The supervisor is set up."""


@dataclass(frozen=True, slots=True)
class BecameReady:
    """This process serves."""

    number: int


@dataclass(frozen=True, slots=True)
class Ended:
    """This process is gone, and was reaped."""

    number: int
    how: str


@dataclass(frozen=True, slots=True)
class StopAsked:
    """All are to stop. Asked again: at once."""


@dataclass(frozen=True, slots=True)
class RestartAsked:
    """Each is to be stopped and started, one after another."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time of the last WakeAt has come."""


Event = Begun | BecameReady | Ended | StopAsked | RestartAsked | TimePassed


@dataclass(frozen=True, slots=True)
class Start:
    """`starts`: how often this number was started, this time included."""

    number: int
    starts: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask this process to stop as it should."""

    number: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End this process now."""

    number: int


@dataclass(frozen=True, slots=True)
class Tell:
    """A line of the log; `is_error`: an operator has to look."""

    what: str
    number: int | None = None
    reason: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class AllReady:
    """Every process serves, for the first time."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Time of the next wake-up, in place of the one before; None: no time is waited for."""

    at: float | None


@dataclass(frozen=True, slots=True)
class Finish:
    """No process is left; this is the exit code."""

    exit_code: int


Effect = Start | Terminate | Kill | Tell | AllReady | WakeAt | Finish


@dataclass(slots=True)
class Process:
    """State of one process. `due`: when its phase has lasted too long, or its next start is; None: no time matters."""

    number: int
    phase: Phase = Phase.DOWN
    since: float = 0.0
    """Time of the last start."""
    starts: int = 0
    failures: int = 0
    due: float | None = None


class Supervision:
    """`handle` every event, in the order in which they happen. Processes are numbered from 1."""

    def __init__(self, count: int, bounds: Bounds | None = None) -> None:
        assert count >= 1
        self.processes = {number: Process(number) for number in range(1, count + 1)}
        self._bounds = bounds or Bounds()
        self._were_all_ready = self._is_finished = self._is_at_once = False
        self._exit_code: int | None = None
        """None: nothing has asked the whole to stop."""
        self._stops_due: float | None = None
        self._turn: list[int] = []
        """Still to be restarted; the first of them is being restarted."""

    @property
    def is_stopping(self) -> bool:
        return self._exit_code is not None

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Effects to perform, in this order."""
        assert not self._is_finished
        effects = list(self._handled(event, now))
        if self.is_stopping and not self._alive():
            self._is_finished = True
            return [*effects, WakeAt(None), Finish(self._exit_code or 0)]
        return [*effects, WakeAt(self._next_due())]

    def _handled(self, event: Event, now: float) -> Iterator[Effect]:
        match event:
            case Begun():
                yield self._start(self.processes[1], now)
            case BecameReady(number):
                yield from self._became_ready(self.processes[number], now)
            case Ended(number, how):
                yield from self._ended(self.processes[number], how, now)
            case StopAsked():
                yield from self._stop(0, now)
            case RestartAsked():
                yield from self._restart_all(now)
            case TimePassed():
                yield from self._time_passed(now)

    def _start(self, process: Process, now: float) -> Effect:
        assert process.phase not in ALIVE
        process.phase, process.since, process.starts = Phase.STARTING, now, process.starts + 1
        process.due = now + self._bounds.ready_seconds_max
        return Start(process.number, process.starts)

    def _became_ready(self, process: Process, now: float) -> Iterator[Effect]:
        if process.phase is not Phase.STARTING:
            return  # it was asked to stop meanwhile
        process.phase, process.due = Phase.SERVING, None
        if not self._were_all_ready:
            yield from self._start_others(now)
        elif self._turn[:1] == [process.number]:
            del self._turn[0]
            yield from self._take_turn(now)

    def _start_others(self, now: float) -> Iterator[Effect]:
        """The first one is alone until it is ready: it makes what is missing, and says once what is wrong for all."""
        for process in self.processes.values():
            if process.phase is Phase.DOWN:
                yield self._start(process, now)
        if all(process.phase is Phase.SERVING for process in self.processes.values()):
            self._were_all_ready = True
            yield AllReady()

    def _ended(self, process: Process, how: str, now: float) -> Iterator[Effect]:
        assert process.phase in ALIVE
        before, process.due = process.phase, None
        process.phase = Phase.DOWN
        if self.is_stopping:
            yield from self._stop_next(now)
        elif before is Phase.STOPPING:
            yield self._start(process, now)
        elif not self._were_all_ready:
            yield Tell("a process ended before all were ready: the others are stopped", process.number, how, is_error=True)
            yield from self._stop(1, now)
        else:
            yield from self._failed(process, how, now, has_served=before is Phase.SERVING)

    def _failed(self, process: Process, how: str, now: float, *, has_served: bool) -> Iterator[Effect]:
        """An end that was not asked for."""
        if self._turn[:1] == [process.number]:
            self._turn.clear()
            yield Tell("a process did not start again: the others are not restarted", process.number, how, is_error=True)
        bounds = self._bounds
        has_lasted = has_served and now - process.since >= bounds.lasting_seconds
        process.failures = 1 if has_lasted else process.failures + 1
        if process.failures > bounds.failures_max:
            process.phase = Phase.GIVEN_UP
            yield Tell(_GIVEN_UP, process.number, how, is_error=True)
            if all(each.phase is Phase.GIVEN_UP for each in self.processes.values()):
                yield from self._stop(1, now)
            return
        delay = self._delay(process.failures)
        yield Tell(f"a process ended by itself, and is started again in {delay:g} s", process.number, how, is_error=True)
        if delay:
            process.phase, process.due = Phase.WAITING, now + delay
        else:
            yield self._start(process, now)

    def _delay(self, failures: int) -> float:
        """Delay before the start that follows so many failures in succession."""
        bounds = self._bounds
        return 0.0 if failures == 1 else min(bounds.delay_seconds_max, bounds.first_delay_seconds * 2 ** (failures - 2))

    def _restart_all(self, now: float) -> Iterator[Effect]:
        if not self._were_all_ready or self.is_stopping or self._turn:
            yield Tell("a restart is not begun: the processes start, restart or stop just now")
            return
        self._turn = list(self.processes)
        yield from self._take_turn(now)

    def _take_turn(self, now: float) -> Iterator[Effect]:
        """The next is stopped when the one before serves again, so that one process at most is missing on purpose."""
        if not self._turn:
            yield Tell("every process was restarted")
            return
        process = self.processes[self._turn[0]]
        process.failures = 0
        if process.phase is Phase.SERVING:
            yield self._terminate(process, now)
        elif process.phase not in ALIVE:
            yield self._start(process, now)

    def _terminate(self, process: Process, now: float) -> Effect:
        process.phase, process.due = Phase.STOPPING, now + self._bounds.stop_seconds_max
        return Terminate(process.number)

    def _stop(self, exit_code: int, now: float) -> Iterator[Effect]:
        if self.is_stopping:
            self._is_at_once = True
            yield from (Kill(process.number) for process in self._alive())
            return
        self._exit_code, self._stops_due = exit_code, now + self._bounds.stops_seconds_max
        self._turn.clear()
        for process in self.processes.values():
            if process.phase is Phase.WAITING:
                process.phase, process.due = Phase.DOWN, None
            elif process.phase is Phase.STARTING:
                yield self._terminate(process, now)  # it has nothing to hand over
        yield from self._stop_next(now)

    def _stop_next(self, now: float) -> Iterator[Effect]:
        """One after another, so that clients go over to those that still serve."""
        serving = [process for process in self._alive() if process.phase is Phase.SERVING]
        if serving and len(serving) == len(self._alive()) and not self._is_at_once:
            yield self._terminate(serving[0], now)

    def _time_passed(self, now: float) -> Iterator[Effect]:
        if self._stops_due is not None and now >= self._stops_due:
            self._stops_due = None
            left = [process for process in self._alive() if process.phase is Phase.SERVING]
            if left:
                yield Tell("the stop takes long: the rest are stopped together")
            yield from (self._terminate(process, now) for process in left)
        for process in self.processes.values():
            if process.due is not None and now >= process.due:
                yield from self._is_due(process, now)

    def _is_due(self, process: Process, now: float) -> Iterator[Effect]:
        process.due = None
        if process.phase is Phase.WAITING:
            yield self._start(process, now)
            return
        what = "did not stop" if process.phase is Phase.STOPPING else "was not ready"
        yield Tell(f"a process {what} in time, and is killed", process.number, is_error=True)
        yield Kill(process.number)

    def _alive(self) -> list[Process]:
        return [process for process in self.processes.values() if process.phase in ALIVE]

    def _next_due(self) -> float | None:
        return min(filter(None, [self._stops_due, *(process.due for process in self.processes.values())]), default=None)

    def check_invariants(self) -> None:
        """Asserts what holds after every event."""
        for process in self.processes.values():
            assert (process.phase is Phase.WAITING) <= (process.due is not None)
            assert process.failures <= self._bounds.failures_max + 1
        on_purpose = [process for process in self._alive() if process.phase is Phase.STOPPING]
        if not self.is_stopping:
            assert len(on_purpose) <= 1
        assert self._were_all_ready or not self._turn
