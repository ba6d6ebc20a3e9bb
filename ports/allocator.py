"""The memory of this process, as its C library keeps it: what was freed goes back to the system when somebody says so.

glibc keeps what was freed between what is used; who has copied many megabytes for a moment, next to what grows, leaves
as much behind each time. Other libraries have no such call, and need none: nothing happens.
"""

import ctypes

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back_free_memory() -> None:
    """Takes some milliseconds for each hundred megabytes."""
    if _trim is not None:
        _trim(0)
