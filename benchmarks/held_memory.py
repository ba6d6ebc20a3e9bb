"""A server that tells what Python's allocator holds: `python -m benchmarks.held_memory standalone ...`.

With SIGUSR2 it writes the allocator's table (`sys._debugmallocstats`) to its standard error. That costs nothing before.
`told` reads the newest table: bytes of objects, and of arenas. The difference is free, and is used again by later objects;
Python returns an arena of a megabyte only when no object is in it.
"""

import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvloop

_ROW = re.compile(r"^# bytes in allocated blocks\s+=\s+([\d,]+)$|^\d+ arenas \* \d+ bytes/arena\s+=\s+([\d,]+)$", re.M)
_SECONDS_MAX = 10.0


def told(pid: int, log: Path) -> dict[str, int]:
    """Megabytes in objects and in arenas. The server must write its standard error to `log`."""
    before = log.stat().st_size
    os.kill(pid, signal.SIGUSR2)
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until:
        with log.open() as text:
            text.seek(before)
            rows = _ROW.findall(text.read())
        if len(rows) == 2:
            arenas, objects = rows[0][1], rows[1][0]
            return {
                name: round(int(size.replace(",", "")) / 1e6) for name, size in (("objects_mb", objects), ("arenas_mb", arenas))
            }
        time.sleep(0.05)
    return {}


def main() -> None:
    run = uvloop.run

    def run_watched(work: Coroutine[Any, Any, Any], **more: Any) -> Any:
        async def watched() -> Any:
            signal.signal(signal.SIGUSR2, lambda *_: sys._debugmallocstats())
            return await work

        return run(watched(), **more)

    uvloop.run = run_watched  # type: ignore[assignment]
    runpy.run_module("cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
