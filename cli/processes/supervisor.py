"""Supervisor: carries out what `supervision` decides, and reports to it what happened. Owns the processes and the clock of it.

Relies on its ports in front being bound. Never touches a client's bytes: they go to the processes, which share these ports.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence

from cli.processes.child import Child, how_ended
from cli.processes.place import Place
from cli.processes.plan import ProcessesPlan
from cli.processes.supervision import (
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
from metadata.zookeeper.session_key import SessionKey, SessionNotEnded, end_session
from ports.logs import line

log = logging.getLogger("interpulse")

CLEAN = how_ended(0)


class Supervisor:
    """`run` once, on its loop. `command` gives the words that start the process of a place; `on_ready` hears whenever one is
    ready and all have been."""

    def __init__(
        self,
        plan: ProcessesPlan,
        command: Callable[[Place], Sequence[str]],
        fronts: Mapping[str, int],
        directory: str,
        on_ready: Callable[["Supervisor"], None],
        bounds: Bounds | None = None,
    ) -> None:
        self._command, self._fronts, self._directory, self._on_ready = command, fronts, directory, on_ready
        self._loop = asyncio.get_running_loop()
        self.supervision = Supervision(len(plan.settings), bounds)
        self.children: dict[int, Child] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._were_all_ready = False
        self._finished: asyncio.Future[int] = self._loop.create_future()

    async def run(self) -> int:
        """The exit code, when no process is left."""
        signals = ((signal.SIGTERM, StopAsked()), (signal.SIGINT, StopAsked()), (signal.SIGHUP, RestartAsked()))
        for number, event in signals:
            self._loop.add_signal_handler(number, self._happened, event)
        self._happened(Begun())
        code = await self._finished
        await asyncio.gather(*self._running.values())
        return code

    def serving(self) -> list[int]:
        """The numbers of those that serve now."""
        return [each.number for each in self.supervision.processes.values() if each.phase is Phase.SERVING]

    def _happened(self, event: Event) -> None:
        if self._finished.done():
            return
        for effect in self.supervision.handle(event, self._loop.time()):
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Start(number, _):
                self._start(number)
            case Terminate(number):
                self.children[number].send(signal.SIGTERM)
            case Kill(number):
                self.children[number].send(signal.SIGKILL)
            case Tell():
                _tell(effect)
            case AllReady():
                self._were_all_ready = True
                self._on_ready(self)
            case WakeAt(at):
                self._wake_at(at)
            case Finish(exit_code):
                self._finished.set_result(exit_code)

    def _wake_at(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if at is None else self._loop.call_at(at, self._happened, TimePassed())

    def _start(self, number: int) -> None:
        child = self.children[number] = Child(number)
        self._running[number] = self._loop.create_task(self._follow(child), name=f"process {number}")

    async def _follow(self, child: Child) -> None:
        def command(channel: int) -> Sequence[str]:
            return self._command(Place(child.number, len(self.supervision.processes), channel, self._fronts, self._directory))

        how = await child.run(command, list(self._fronts.values()), self._is_ready)
        self._loop.call_soon(self._happened, Ended(child.number, how))
        if child.session is not None and how != CLEAN:
            await _end_session(child.number, child.session)

    def _is_ready(self, child: Child) -> None:
        log.info(line("a process is ready", number=child.number, **child.ready))
        self._happened(BecameReady(child.number))
        if self._were_all_ready:
            self._on_ready(self)


async def _end_session(number: int, key: SessionKey) -> None:
    """Ends the session of a reaped process, which cannot use it any more: what it owned is free now, not when that expires."""
    try:
        await asyncio.to_thread(end_session, key)
    except SessionNotEnded as error:
        log.warning(line("the session of a dead process ends when its time is out", number=number, reason=error))
    else:
        log.info(line("the session of a dead process is ended", number=number))


def _tell(effect: Tell) -> None:
    fields = {} if effect.number is None else {"number": effect.number}
    reason = {"reason": effect.reason} if effect.reason else {}
    log.log(logging.ERROR if effect.is_error else logging.INFO, line(effect.what, **fields, **reason))
