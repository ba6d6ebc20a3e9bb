"""Output that its reader has closed (`pulsar-admin --version | head -0`): a command ends quietly. Standard library alone."""

import os
import select
import sys
from collections.abc import Callable

EXIT_CODE = 128 + 13
"""Exit code of a program that SIGPIPE has ended, as a shell shows it."""


def exit_status(main: Callable[[], int]) -> int:
    """Exit code of `main`, after its output is written; 141 where the reader of the output is gone.

    A BrokenPipeError of anything else, such as a socket, is raised: it is a failure of the command.
    """
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        closed = [_discard_if_closed(stream.fileno()) for stream in (sys.stdout, sys.stderr)]
        if not any(closed):
            raise
        return EXIT_CODE


def _discard_if_closed(descriptor: int) -> bool:
    """Whether the reader of `descriptor` is gone; then what is still to be written, also at the exit, is discarded."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return True
