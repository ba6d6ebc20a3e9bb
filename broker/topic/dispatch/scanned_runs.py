"""Metadata of the runs read lately, so that many subscriptions at the tail scan each run once.

Entries never change, so that the metadata stay true; the number of kept runs is bounded.
"""

from array import array
from collections.abc import Callable
from typing import Generic, TypeVar

from ports.loop.owner import ask
from wire.kernels.delivery_times import deliver_times
from wire.kernels.metadata import key_hashes, scan
from wire.run import FLAG_TRANSACTION, EntryRun, RunMetadata

T = TypeVar("T")

_RUNS_MAX = 16


class ScannedRuns:
    """Scanned runs of one topic. `decided` has the last word on runs with messages of transactions, all of them decided."""

    __slots__ = ("__weakref__", "_decided", "_deliver_times", "_key_hashes", "_metadata", "unremembered")

    def __init__(self, decided: Callable[[EntryRun, RunMetadata], RunMetadata] | None = None) -> None:
        self._decided = decided
        self.unremembered = UnrememberedRuns(ask(self._scan))
        """Scan for runs of picked entries: another pick may begin and end where this one does."""
        self._metadata = _Memo[RunMetadata](ask(self._scan))
        self._key_hashes = _Memo["array[int]"](key_hashes)
        self._deliver_times = _Memo["array[int]"](deliver_times)

    def deliver_times(self, run: EntryRun) -> "array[int]":
        return self._deliver_times.of(run)

    def metadata(self, run: EntryRun) -> RunMetadata:
        return self._metadata.of(run)

    def _scan(self, run: EntryRun) -> RunMetadata:
        found = scan(run)
        if found.any_flags & FLAG_TRANSACTION and self._decided is not None:
            return self._decided(run, found)
        return found

    def key_hashes(self, run: EntryRun) -> "array[int]":
        return self._key_hashes.of(run)


class UnrememberedRuns:
    """Same as `ScannedRuns`, without a memory."""

    __slots__ = ("metadata",)

    def __init__(self, metadata: Callable[[EntryRun], RunMetadata]) -> None:
        self.metadata = metadata

    def key_hashes(self, run: EntryRun) -> "array[int]":
        return key_hashes(run)

    def deliver_times(self, run: EntryRun) -> "array[int]":
        return deliver_times(run)


class _Memo(Generic[T]):
    __slots__ = ("_compute", "_known")

    def __init__(self, compute: Callable[[EntryRun], T]) -> None:
        self._compute = compute
        self._known: dict[tuple[int, int, int], T] = {}

    def of(self, run: EntryRun) -> T:
        key = (run.ledger_id, run.first_entry_id, run.count)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _RUNS_MAX:
                del self._known[next(iter(self._known))]
            found = self._known[key] = self._compute(run)
        return found
