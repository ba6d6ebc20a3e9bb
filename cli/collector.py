"""The cycle collector of a server's process: off while it starts, and later not at work on what was made then."""

import gc

ALLOCATIONS_BETWEEN_RUNS = 50_000
"""Nothing on the way of a message makes cycles."""


def off_while_starting() -> None:
    """Before a server is imported: nothing of that is garbage, and looking for it is a tenth of a start."""
    gc.disable()


def settle() -> None:
    """When the server is ready: what was made until now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_BETWEEN_RUNS, 20, 50)
    gc.enable()
