"""SimLoop: asyncio on virtual time. Owns time, the ready queue and the fate of callbacks; never touches the machine.

As in asyncio, callbacks of `call_soon` run first in, first out. The seed draws the order of timers that are due together, which
asyncio leaves open. Time moves to the next timer when nothing is ready, and a little with every callback. On a slow machine
callbacks take longer, and several timers are due at the end of a turn: they run in one, like sockets that are ready together.
Each callback belongs to the process (`Owner`) in whose context it was scheduled; those of a dead process never run, those of
a stopped one when it goes on.
A callback that raises, a task whose exception no code takes, a thread asked for: each ends the run with SimulationFailure.
"""

import asyncio
import contextvars
import gc
import heapq
import random
import sys
import warnings
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from time import thread_time
from typing import Any, Protocol, TypeVar, TypeVarTuple

from ports.loop.promise import Promise
from simulation.world.steps import StepMeter, meter_in_force
from simulation.world.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
CALLBACK_SECONDS = 0.000_001
"""Virtual time that running a callback takes, so that a busy loop meets its timers."""
SLOW_CALLBACK_SECONDS = 0.000_3
"""The same on a slow machine."""


class Network(Protocol):
    """Connections of the simulated world, as the loop asks for them."""

    def listen(
        self, factory: Callable[[], asyncio.BaseProtocol], host: Any, port: int, options: dict[str, Any]
    ) -> asyncio.AbstractServer: ...

    async def connect(
        self, factory: Callable[[], Any], host: str, port: int, options: dict[str, Any]
    ) -> tuple[asyncio.Transport, Any]: ...


class SimulationFailure(Exception):
    """The run showed a bug: of the code under test, or of its use of the loop."""


class Owner(Protocol):
    """A simulated process, as the loop sees it."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def alive(self) -> bool: ...
    @property
    def held(self) -> "list[SimHandle] | None":
        """While it is stopped: what it will do when it goes on. None: it runs."""


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("OWNER", default=None)
HARDWARE = contextvars.Context()
"""The context of the simulated machine itself: no process owns what runs in it."""


class SimHandle(asyncio.TimerHandle):
    """A callback and its owner."""

    __slots__ = ("owner",)

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, loop: "SimLoop", context: contextvars.Context
    ) -> None:
        # As the base class, whose two calls would be a tenth of a run's time.
        self._context, self._loop, self._callback, self._args = context, loop, callback, args
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self._when = when
        self.owner: Owner | None = context.get(OWNER)


class SimFuture(asyncio.Future[Any]):
    """Hashes by serial number: asyncio keeps futures in sets, and their order must not depend on addresses."""

    def __init__(self, loop: "SimLoop") -> None:
        self.serial = loop.next_serial()
        self.owner = OWNER.get()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.serial


class SimPromise(Promise[Any], SimFuture):
    """Tells at once what its own process gives it; what comes from another, or from the machine, in a turn of its process."""

    def __init__(self, loop: "SimLoop") -> None:
        super().__init__(loop)
        self._home = contextvars.copy_context()

    def set_result(self, result: Any) -> None:
        if OWNER.get() is not self.owner:
            self.tell_later()
        super().set_result(result)

    def tell_later(self) -> None:
        for listener in self.take_listeners():
            self.add_done_callback(listener, context=self._home)


class SimTask(asyncio.Task[Any]):
    """Hashes by serial number, see SimFuture."""

    def __init__(
        self, coro: Coroutine[Any, Any, Any], loop: "SimLoop", name: str | None, context: contextvars.Context | None
    ) -> None:
        self.serial = loop.next_serial()
        self.owner = OWNER.get() if context is None else context.get(OWNER)
        super().__init__(coro, loop=loop, name=name or f"task-{self.serial}", context=context)
        loop.on_task(self)

    def __hash__(self) -> int:
        return self.serial


class SimLoop(asyncio.BaseEventLoop):
    """The loop. `network` is set by the network that is built on it."""

    network: "Network"

    def __init__(
        self,
        rng: random.Random,
        trace: Trace | None = None,
        callbacks_max: int = 20_000_000,
        *,
        is_slow: bool = False,
    ) -> None:
        self._is_running = False
        gc.freeze()  # what is older is no business of the collection in `finish`, which costs more than most runs otherwise
        super().__init__()
        self.trace = trace or Trace()
        self.callbacks = 0
        self.busiest_s = 0.0
        """Processor time of the longest callback; it says which runs are to be counted (`steps.bounded`)."""
        self.callbacks_max = callbacks_max
        self.is_slow = is_slow
        """Whether callbacks take SLOW_CALLBACK_SECONDS; packets of a connection that have come meanwhile are read together."""
        self._callback_seconds = SLOW_CALLBACK_SECONDS if is_slow else CALLBACK_SECONDS
        self._meter = meter_in_force()
        self.failure: BaseException | None = None
        self._rng = rng
        self._serial = 0
        self._now = 0.0
        self._due: deque[SimHandle] = deque()
        self._timers: list[tuple[float, float, int, SimHandle]] = []
        self._stop_asked = False
        self._is_over = False
        self._graveyard: list[asyncio.Task[Any]] = []
        self._tasks: dict[Owner | None, list[weakref.ref[SimTask]]] = {}
        """Tasks that are there still, in the order in which they were made (asyncio.all_tasks looks at all there ever were)."""

    # Time and callbacks

    def time(self) -> float:
        return self._now

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = SimHandle(self._now, callback, args, self, contextvars.copy_context() if context is None else context)
        if not self._is_over:
            self._due.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = SimHandle(when, callback, args, self, contextvars.copy_context() if context is None else context)
        if not self._is_over:
            heapq.heappush(self._timers, (when, self._rng.random(), self.next_serial(), handle))
        return handle

    def hardware_later(self, delay: float, callback: Callable[[*Ts], object], *args: *Ts) -> asyncio.TimerHandle:
        """`call_later` for the simulated machine: runs whatever happens to processes."""
        return self.call_at(self._now + delay, callback, *args, context=HARDWARE)

    # Running

    def run_forever(self) -> None:
        if self._is_running:
            raise RuntimeError("this loop is running")
        hooks = sys.get_asyncgen_hooks()
        self._is_running, self._stop_asked = True, False
        was_collecting = gc.isenabled()
        gc.disable()  # when cycles are collected depends on what ran before: it would decide when weak references end
        sys.set_asyncgen_hooks(finalizer=self._finalize_asyncgen)
        asyncio._set_running_loop(self)
        try:
            while not self._stop_asked:
                self._turn()
        finally:
            self._is_running = False
            if was_collecting:
                gc.enable()
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _turn(self) -> None:
        due, timers = self._due, self._timers
        if not due:
            self._jump()
        while timers and timers[0][0] <= self._now:
            due.append(heapq.heappop(timers)[3])
        for _ in range(len(due)):
            handle = due.popleft()
            owner = handle.owner
            if handle.cancelled() or (owner is not None and not owner.alive):
                continue
            if owner is not None and owner.held is not None:
                owner.held.append(handle)
                continue
            self._now += self._callback_seconds
            self.callbacks += 1
            self.trace.now = self._now
            try:
                if self._meter is None:
                    began = thread_time()
                    handle._context.run(handle._callback, *handle._args)
                    self.busiest_s = max(self.busiest_s, thread_time() - began)
                else:
                    self._run_counted(self._meter, handle)
            except Exception as error:  # noqa: BLE001  # as asyncio's handles do: the run ends with it
                self.call_exception_handler({"exception": error, "handle": handle})
        if self.failure is not None:
            raise SimulationFailure(f"at {self._now:.6f} s: {self.failure!r}") from self.failure
        if self.callbacks > self.callbacks_max:
            raise SimulationFailure(f"at {self._now:.6f} s: no end after {self.callbacks} callbacks")

    def _run_counted(self, meter: StepMeter, handle: SimHandle) -> None:
        callback = handle._callback
        with meter:
            handle._context.run(callback, *handle._args)
        costly = meter.ended(callback)
        if costly is not None:
            raise SimulationFailure(
                f"{costly.name} took {costly.steps} steps in one turn of the loop, most of them in {costly.where}"
            )

    def _jump(self) -> None:
        while self._timers and self._timers[0][3].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise SimulationFailure(f"at {self._now:.6f} s: nothing is left that could happen")
        self._now = max(self._now, self._timers[0][0])

    def stop(self) -> None:
        self._stop_asked = True

    def is_running(self) -> bool:
        return self._is_running

    def _finalize_asyncgen(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._is_over:
            self.create_task(generator.aclose())

    # Futures and tasks

    def create_future(self) -> "asyncio.Future[Any]":
        return SimFuture(self)

    def create_promise(self) -> SimPromise:
        return SimPromise(self)

    def create_task(
        self,
        coro: "Generator[Any, None, Any] | Coroutine[Any, Any, Any]",
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[Any]":
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"a coroutine was expected, got {coro!r}")
        return SimTask(coro, self, None if name is None else str(name), context)

    def on_task(self, task: SimTask) -> None:
        """Notes a new task."""
        self._tasks.setdefault(task.owner, []).append(weakref.ref(task))

    def _pending(self, owner: Owner | None) -> list[asyncio.Task[Any]]:
        tasks = self.unfinished(owner)
        self._tasks.pop(owner, None)
        return tasks

    # Failures

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ends the run at the first error. asyncio also reports exceptions here that no code took."""
        about = context.get("task") or context.get("future") or context.get("handle")
        owner = getattr(about, "owner", None)
        if self._is_over or (owner is not None and not owner.alive):
            return
        error = context.get("exception") or SimulationFailure(f"{context.get('message')} {about!r}")
        self.failure = self.failure or error

    def fail(self, error: BaseException) -> None:
        """End the run with this error after the current callback."""
        self.failure = self.failure or error

    has_threads = False
    """Work that may run in a thread (`ports.loop.slices`) is done at once: the same each time."""

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        raise SimulationFailure(f"a thread was asked for: {func!r}")

    # Network: see simulation.world.network

    async def create_server(  # type: ignore[override]  # only what is used: no sockets, no TLS
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: int = 0, **options: Any
    ) -> asyncio.AbstractServer:
        return self.network.listen(protocol_factory, host, port, options)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str = "", port: int = 0, **options: Any
    ) -> tuple[asyncio.Transport, Any]:
        return await self.network.connect(protocol_factory, host, port, options)

    # The end

    def go_on(self, handles: "Sequence[SimHandle]") -> None:
        """Schedules the handles that a stopped process was held from running, in that order."""
        if not self._is_over:
            self._due.extend(handles)

    def unfinished(self, owner: Owner | None) -> list[asyncio.Task[Any]]:
        """Tasks of a process, or of none, that are not done."""
        tasks = [reference() for reference in self._tasks.get(owner, ())]
        return [task for task in tasks if task is not None and not task.done()]

    def bury(self, owner: Owner) -> None:
        """Keep what a dead process was doing: letting go of a coroutine would run its `finally` blocks."""
        self._graveyard += self._pending(owner)

    def finish(self) -> None:
        """End everything that still waits, silently and without running it on; then the loop is closed."""
        self._is_over = True
        left = [task for owner in list(self._tasks) for task in self._pending(owner)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # it died before it could
            for task in (*self._graveyard, *left):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # as asyncio.gather does with its own
                with suppress(Exception):  # `finally` blocks of code that has been killed: what they say means nothing
                    task.get_coro().close()
            left.clear()
            self._due.clear()
            self._timers.clear()
            self._graveyard.clear()
            gc.collect()  # what those blocks began is not awaited either
        gc.unfreeze()
        self.close()
