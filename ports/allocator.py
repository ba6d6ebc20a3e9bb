"""The memory of this process, as its C library keeps it: freed memory goes back to the system on request.

glibc keeps freed memory between pieces in use: a process that copies many megabytes for a moment, while other data grow, leaves
as much behind each time. Other libraries have no such call, and need none: nothing happens.
"""

import ctypes

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back_free_memory() -> None:
    """Takes some milliseconds for each hundred megabytes."""
    if _trim is not None:
        _trim(0)
