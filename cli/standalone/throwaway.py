"""A standalone for the life of another process: it stops when that one has ended, and leaves no data behind.

Owns `--end-with` and `--throwaway`, which `interpulse.testing` uses.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

POLL_SECONDS = 0.5
"""Interval of looks for the end of a process where the system does not report it (no pidfd)."""


class NotEmpty(Exception):
    """A directory that is to be deleted at the end holds something at the start."""


@contextlib.contextmanager
def thrown_away(given: str | None) -> Iterator[Path]:
    """The directory, or a new one, which is deleted at the end with all that is in it. NotEmpty, OSError."""
    directory = Path(given) if given else Path(tempfile.mkdtemp(prefix="interpulse-"))
    if directory.is_dir() and any(directory.iterdir()):
        raise NotEmpty(f"--throwaway deletes {directory} at the end, and it is not empty: give a new or empty --data-dir")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def stop_with(process_id: int, stop: asyncio.Event) -> None:
    """Set `stop` when the process has ended, or now if it has already."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        stop.set()
    except (OSError, AttributeError):  # an old kernel, or another system
        _poll(loop, process_id, stop)
    else:
        loop.add_reader(descriptor, _heard, loop, descriptor, stop)


def _heard(loop: asyncio.AbstractEventLoop, descriptor: int, stop: asyncio.Event) -> None:
    loop.remove_reader(descriptor)
    os.close(descriptor)
    stop.set()


def _poll(loop: asyncio.AbstractEventLoop, process_id: int, stop: asyncio.Event) -> None:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        stop.set()
    except PermissionError:
        loop.call_later(POLL_SECONDS, _poll, loop, process_id, stop)  # it is another user's, and lives
    else:
        loop.call_later(POLL_SECONDS, _poll, loop, process_id, stop)
