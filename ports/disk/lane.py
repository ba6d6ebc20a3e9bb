"""Lane: blocking calls of the system, carried out in order by a thread of their own; and the kernel's queue beside it.

A lane's thread takes its jobs in order; everything it finishes while the event loop is busy is handed back with one wake-up.
Bounds: a lane holds at most one job per awaiting caller, so that what waits is bounded by the callers (a journal has one write
in flight). A cancelled caller does not stop its job: buffers must stay unchanged until the lane is through with them, so
drivers do not cancel writes.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ports.disk.direct_io import DirectMemory
from ports.disk.kernel_queue import KernelQueue, opened
from ports.loop.promise import Promise
from ports.loop.turn import turn_of

T = TypeVar("T")
Job = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class Lane:
    """A thread with a queue of blocking calls.

    Both sides wake one another through eventfds: writing to one releases the interpreter's lock, so that the woken
    thread finds it free. A queue of Python's, and the loop's `call_soon_threadsafe`, hold it meanwhile: twice as many switches
    of threads.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn = turn_of(self._loop)
        self._jobs: deque[Job | None] = deque()
        self._finished: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._told = False
        self.memory = DirectMemory()
        self._asking, self._telling = os.eventfd(0, os.EFD_CLOEXEC), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._loop.add_reader(self._telling, self._on_told)
        self._thread = threading.Thread(target=self._work, name=f"disk-{name or 'files'}", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[..., T], *arguments: Any) -> Promise[T]:
        return self.perform(self.promise(), call, *arguments)

    def promise(self) -> Promise[Any]:
        return Promise(loop=self._loop)

    def perform(self, promise: Promise[T], call: Callable[..., T], *arguments: Any) -> Promise[T]:
        """Makes the call, and keeps a promise that was given before."""
        self._ask((promise, call, arguments))
        return promise

    @cached_property
    def queue(self) -> KernelQueue | None:
        """The kernel's queue for writes of this lane, opened when it is first wanted. None where there is no such thing."""
        queue = opened()
        if queue is not None:
            self._loop.add_reader(queue.descriptor, self._on_queue, queue)
        return queue

    def _on_queue(self, queue: KernelQueue) -> None:
        with self._turn:
            queue.finish()

    def _ask(self, job: Job | None) -> None:
        self._jobs.append(job)
        os.eventfd_write(self._asking, 1)

    def stop(self) -> None:
        """Let the kernel and the thread finish what waits, then end it."""
        queue: KernelQueue | None = vars(self).get("queue")
        if queue is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(queue.descriptor)
            queue.close()
        self._ask(None)
        self._thread.join()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._telling)
            self._loop.call_soon(self._deliver)  # what was done in the end
        os.close(self._asking)
        os.close(self._telling)

    def _work(self) -> None:
        while True:
            os.eventfd_read(self._asking)
            while self._jobs:
                job = self._jobs.popleft()
                if job is None:
                    return
                self._do(*job)
                del job  # a waiting thread must not keep the last buffers alive

    def _do(self, future: "asyncio.Future[Any]", call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            self._finished.append((future, call(*arguments), None))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the caller that awaits the job must get it
            self._finished.append((future, None, error))
        if not self._told:
            self._told = True
            os.eventfd_write(self._telling, 1)

    def _on_told(self) -> None:
        os.eventfd_read(self._telling)
        self._deliver()

    def _deliver(self) -> None:
        self._told = False  # before draining: a job that finishes from here on tells again
        with self._turn:
            while self._finished:
                settle(*self._finished.popleft())


def settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    """Gives a job's end to its caller, unless that was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
