"""TracedTree: a metadata tree whose changes are lines of the trace, so that a crash can come right after any one of them."""

from collections.abc import Sequence

from metadata.store import Operation
from metadata.tree import Applied, Tree
from simulation.world.trace import Trace

COMMIT = "commit"
"""How such a line begins."""


class TracedTree(Tree):
    """Outlives the processes that use it, as a disk does."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def apply(self, operations: Sequence[Operation], session: int, now_ms: int) -> Applied:
        applied = super().apply(operations, session, now_ms)
        paths = " ".join(f"{type(operation).__name__.lower()} {operation.path}" for operation in operations)
        self._trace.record("metadata", f"{COMMIT} {paths}")
        return applied
