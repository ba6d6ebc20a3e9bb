"""A server whose long turns of the event loop are written down: `python -m benchmarks.slow_turns FILE standalone ...`.

A thread looks at the loop every few milliseconds. FILE gets a line of JSON for each time that the loop was busy for longer than
SLOW_MS, with the stacks that were seen meanwhile, and for each run of the cycle collector and each request to give free memory
back that took so long. `cpu_ms`: processor time of the loop's thread in such a turn; the rest of it the thread waited
for the processor, the interpreter or the disk. The watching costs some percent of the processor: figures are taken without it.
"""

import asyncio
import gc
import json
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from typing import Any

import uvloop

from ports import allocator

SLOW_MS = 20.0
BEAT_SECONDS = 0.002
DEPTH = 12


class Watch:
    """One loop, and the thread that looks at it."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a")  # noqa: SIM115
        self._slow_seconds = SLOW_MS / 1000
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._beat_at, self._beat_cpu = time.perf_counter(), time.thread_time()
        self._stacks: list[list[str]] = []
        self._collecting_since = 0.0
        self._trim = allocator._trim
        allocator._trim = self._give_back
        gc.callbacks.append(self._collected)
        self._beat()
        threading.Thread(target=self._look, daemon=True).start()

    def _beat(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        late = now - self._beat_at - BEAT_SECONDS
        if late > self._slow_seconds:
            used = round(1000 * (cpu - self._beat_cpu), 1)
            self._write({"turn_ms": round(1000 * late, 1), "cpu_ms": used, "stacks": self._stacks})
        self._beat_at, self._beat_cpu, self._stacks = now, cpu, []
        self._loop.call_later(BEAT_SECONDS, self._beat)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._collecting_since = now
        elif now - self._collecting_since > self._slow_seconds:
            ms = round(1000 * (now - self._collecting_since), 1)
            self._write({"collector_ms": ms, "generation": info["generation"]})

    def _give_back(self, keep_bytes: int) -> None:
        """Runs in a thread, and holds the allocator's lock meanwhile."""
        began = time.perf_counter()
        if self._trim is not None:
            self._trim(keep_bytes)
        seconds = time.perf_counter() - began
        if seconds > self._slow_seconds:
            self._write({"give_back_ms": round(1000 * seconds, 1)})

    def _look(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            if time.perf_counter() - self._beat_at > self._slow_seconds / 2:
                frame = sys._current_frames().get(self._thread_id)
                found = traceback.extract_stack(frame)[-DEPTH:]
                self._stacks.append([f"{each.filename.rpartition('/')[2]}:{each.lineno} {each.name}" for each in found])

    def _write(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps({"at": round(time.time(), 3)} | row) + "\n")
        self._file.flush()


def main() -> None:
    path, *arguments = sys.argv[1:]
    run = uvloop.run

    def run_watched(work: Coroutine[Any, Any, Any], **more: Any) -> Any:
        async def watched() -> Any:
            Watch(path)
            return await work

        return run(watched(), **more)

    uvloop.run = run_watched  # type: ignore[assignment]
    sys.argv[1:] = arguments
    runpy.run_module("cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
