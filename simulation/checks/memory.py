"""Memory: what a simulated server holds at the end of a seed against its start, when all that was done is done.

Between the two are the plan's messages, consumers, producers and faults; what is kept of each of them is a leak, however small.
Counted are objects and the members of containers, not bytes: so a leak has a name, and the same seed counts the same.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from simulation.checks.census import growth, held_by, reached_from
from simulation.checks.history import Violation
from simulation.world.steps import uncounted

ALLOWED = 12
"""More of one class, or in one kind of container."""
ALLOWED_OF_STORAGE = 100
"""Objects that storage keeps for a while: in caches by their bounds, of each ledger until it is deleted or flushed."""
STORAGE = (
    "bookie.",
    "bookkeeper.",
    "managed_ledger.cache.",
    "metadata.tree.",
    "broker.topic.dispatch.scanned_runs.",
    "wire.run.RunMetadata",
)
_IN_MEMTABLE = "what was stored and is not flushed yet"
KNOWN = {
    "wire.run.EntryRun": _IN_MEMTABLE,
    "wire.run.EntryRun.buffer": _IN_MEMTABLE,
    "wire.run.EntryMix.buffer": _IN_MEMTABLE,
    "bookie.ranges.Ranges._firsts": _IN_MEMTABLE,
    "bookie.ranges.Ranges._parts": _IN_MEMTABLE,
    "bookie.storage.span.Span": "where the entries of open ledgers are",
    "wire.position.Position": "where cursors and caches are",
    "ports.metrics.op_stats.Latencies._recorded": "at most RECORDED_MAX of each kind of operation",
    "managed_ledger.cursor.slowest_cursor.SlowestCursor._heap": "with _old at most three times the cursors of the log",
    "managed_ledger.cursor.slowest_cursor.SlowestCursor._old": "with _heap at most three times the cursors of the log",
    "managed_ledger.cache.places._Place.began": "a position: at most PLACES_MAX of them",
}
"""Left out: how much of it there may be at the end of a seed, the bytes of a buffer say and not its number."""
_WATCH: ContextVar["MemoryWatch | None"] = ContextVar("WATCH", default=None)


class MemoryWatch:
    """The memory of one run at a time. `grown`: by class and container how much more there is at the end."""

    def __init__(self) -> None:
        self.grown: dict[str, int] = {}
        self.checked = 0
        """Machines whose invariants hold at the end."""
        self._before: Mapping[str, int] = {}

    def begin(self, server: Iterable[object]) -> None:
        """`server`: the objects that hold all others of it."""
        self._before = reached_from(server)

    def end(self, server: Iterable[object]) -> None:
        """Violation when there is too much more; AssertionError when a machine of storage is not as it must be."""
        server = list(server)
        with uncounted():
            self.checked = check_storage(server)
        self.grown = growth(self._before, reached_from(server))
        kept = sorted(((count, name) for name, count in self.grown.items() if count > allowed(name)), reverse=True)
        if kept:
            raise Violation("left in memory: " + ", ".join(f"{count} more of {name}" for count, name in kept))


def check_storage(server: Iterable[object]) -> int:
    """Check the invariants of the pure machines of bookies, ledger client and managed ledgers; how many there are."""
    checked = 0
    for thing in held_by(server):
        check = getattr(type(thing), "check_invariants", None)
        if check is not None and type(thing).__module__.startswith(("bookie.", "bookkeeper.", "managed_ledger.")):
            check(thing)
            checked += 1
    return checked


def allowed(name: str) -> float:
    """Growth that is allowed."""
    if name in KNOWN:
        return math.inf
    return ALLOWED_OF_STORAGE if name.startswith(STORAGE) else ALLOWED


@contextmanager
def watched() -> Iterator[MemoryWatch]:
    """Runs within compare what their server holds."""
    watch = MemoryWatch()
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)


def watch_in_force() -> MemoryWatch | None:
    return _WATCH.get()
