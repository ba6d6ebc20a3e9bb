"""The kernels that the pipeline uses, where they are compiled: without, everything here is numpy's, and slower."""

import importlib
from types import ModuleType


def compiled(name: str) -> ModuleType | None:
    """None also where it is there as plain Python: that is slower than numpy."""
    try:
        found = importlib.import_module(f"wire.kernels.{name}")
    except ImportError:
        return None  # a wheel that was built without them
    return found if found.IS_COMPILED else None


kernel = compiled("columns")
"""`wire.kernels.columns`, for what is read."""
entries_kernel = compiled("plain_entries")
