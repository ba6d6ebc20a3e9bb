"""SimProcess: a program on a simulated host, with its disk and its place in the network. Owns life and death; not what it runs.

Everything that the program starts runs in a context that names its incarnation; when that is dead nothing of it runs any more,
not even a `finally`, as after kill -9. The disk outlives it, and keeps what `simulation.disks.disk` says it keeps.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from simulation.disks.disk import SimDisk
from simulation.world.loop import HARDWARE, OWNER, SimHandle, SimLoop
from simulation.world.network import SimNetwork

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Incarnation:
    """One life of a process: the `Owner` of its callbacks, tasks, connections and files."""

    name: str
    host: str
    number: int
    alive: bool = True
    held: list[SimHandle] | None = None


class SimProcess:
    """`main` is the program: it is called anew for each life, and serves until it returns, raises or is killed.

    That it raises fails the run, unless it `may_die`; then `error` says of what it died.
    """

    def __init__(
        self,
        loop: SimLoop,
        network: SimNetwork,
        host: str,
        disk: SimDisk | None,
        main: Callable[[], Coroutine[Any, Any, None]],
        *,
        may_die: bool = False,
    ) -> None:
        self.host, self.disk = host, disk
        self.may_die = may_die
        self.ended = asyncio.Event()
        self.error: BaseException | None = None
        self._loop, self._network, self._main = loop, network, main
        self._life: Incarnation | None = None
        self._lives = 0

    @property
    def alive(self) -> bool:
        return self._life is not None

    def start(self) -> None:
        """Start it (again). Power comes back with it."""
        if self._life is not None:
            raise RuntimeError(f"{self.host} is running")
        self._lives += 1
        self.ended.clear()
        self.error = None
        self._network.set_power(self.host, on=True)
        life = self._life = Incarnation(f"{self.host}#{self._lives}", self.host, self._lives)
        self._context = contextvars.Context()
        self._context.run(OWNER.set, life)
        self._loop.trace.record(life.name, "start")
        self._task = self._loop.create_task(self._main(), name=life.name, context=self._context)
        self._task.add_done_callback(lambda task: self._on_end(life, task), context=HARDWARE)

    @property
    def life(self) -> Incarnation | None:
        """The one that it lives now."""
        return self._life

    def pause(self) -> None:
        """SIGSTOP: nothing of it runs, its kernel goes on. Nothing happens if it is not running."""
        if self._life is not None and self._life.held is None:
            self._loop.trace.record(self._life.name, "stopped")
            self._life.held = []

    def go_on(self) -> None:
        """SIGCONT."""
        if self._life is not None and self._life.held is not None:
            self._loop.trace.record(self._life.name, "goes on")
            held, self._life.held = self._life.held, None
            self._loop.go_on(held)

    def spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> "asyncio.Task[T]":
        """Run `work` as a part of the process as it lives now."""
        if self._life is None:
            raise RuntimeError(f"{self.host} is not running")
        return self._loop.create_task(work, name=name, context=self._context.copy())

    def kill(self) -> None:
        """SIGKILL: at once. Nothing happens if it is not running."""
        self._end("kill", power_cut=False)

    def cut_power(self) -> None:
        """The host is off until `start`."""
        self._network.set_power(self.host, on=False)
        self._end("power cut", power_cut=True)

    def _on_end(self, life: Incarnation, task: "asyncio.Task[None]") -> None:
        if life.alive:
            self.error = None if task.cancelled() else task.exception()
            if self.error is not None and not self.may_die:
                self._loop.fail(self.error)
            self._end("exit" if self.error is None else f"died of {type(self.error).__name__}", power_cut=False)

    def _end(self, how: str, *, power_cut: bool) -> None:
        if self._life is not None:
            life, self._life = self._life, None
            self._loop.trace.record(life.name, how)
            life.alive = False
            self._loop.bury(life)
            self._network.drop_process(life, power_cut=power_cut)
            self.ended.set()
        if self.disk is not None:
            self.disk.crash(power_cut=power_cut)


def start_program(loop: SimLoop, network: SimNetwork, host: str, work: Callable[[], Awaitable[None]]) -> SimProcess:
    """Run `work` as a client program on a host of its own."""

    async def main() -> None:
        await work()

    program = SimProcess(loop, network, host, None, main)
    program.start()
    return program
