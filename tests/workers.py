"""Shares of a run's tests among its workers (`bin/test` has two: tests of processes mostly wait, others compute).

A worker takes a unit at a time, in one process: a directory whose tests share servers or a session of Spark, else a module.
Units that take long come first, so that short ones fill what is left at the end. With one process (`WORKERS=0`) nothing of
this applies.
"""

import pytest

DIRECTORIES = (
    "tests/pipeline",
    "tests/clients",
    "tests/cli",
    "tests/installation",
    "tests/metadata",
    "tests/interchange",
    "tests/bookie/disk_proofs",
)
"""Units, longest first."""
THEN = "tests/simulation"
"""Directory after the units: its modules compute for long."""


def unit_of(test: str) -> str:
    """Unit of a test by its id, such as `tests/wire/test_frames.py::test_x[1]`."""
    return next((each for each in DIRECTORIES if test.startswith(f"{each}/")), test.partition("::")[0])


def place_of(test: str) -> int:
    """Place of a test in the order of a run; the rest of a place is in random order, as ever."""
    return next((place for place, each in enumerate((*DIRECTORIES, THEN)) if test.startswith(f"{each}/")), len(DIRECTORIES) + 1)


def order(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place_of(item.nodeid))


def scheduler(config: pytest.Config, log: object) -> object:
    """xdist's own, with our units in our order."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        """Cut by `unit_of`."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
