"""Requests to a bookie over the network that are not answered yet. Pure. Version 2 names ledger and entry, not the request.

Adds of a ledger are done in the order in which they were sent, however the answers come; a mix is done when all of it is, and
its answers are recognised without looking at each where they come in its order. Reads are given their entries as runs;
a run of answers may be for several of them, in parts anywhere in it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from wire.bookie.codes import BookieCode
from wire.run import EntryMix, EntryRun
from wire.run_parts import join

ANSWER_BYTES = 28
"""Size of the answer to an add."""
T = TypeVar("T")


class Awaited:
    """Consecutive entry ids, and which of them have not been answered."""

    __slots__ = ("_parts",)

    def __init__(self, first: int, count: int) -> None:
        self._parts = [(first, first + count)]

    def __bool__(self) -> bool:
        return bool(self._parts)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert all(low < high for low, high in self._parts)
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(self._parts))), "an entry is awaited once"

    def count_in(self, first: int, end: int) -> int:
        """Number of entries in [first, end) that are awaited."""
        return sum(max(0, min(high, end) - max(low, first)) for low, high in self._parts)

    def take(self, first: int, end: int) -> list[tuple[int, int]]:
        """Remove the awaited parts of [first, end), and return them as (first, end)."""
        taken, kept = [], []
        for low, high in self._parts:
            start, stop = max(low, first), min(high, end)
            if start >= stop:
                kept.append((low, high))
                continue
            taken.append((start, stop))
            kept += [part for part in ((low, start), (stop, high)) if part[0] < part[1]]
        self._parts = kept
        return taken


@dataclass(slots=True)
class PendingAdd(Generic[T]):
    """One run that was sent; `owner` waits for its end. `code` is the first failure's, 0 for none."""

    first: int
    count: int
    deadline: float
    owner: T
    code: int = 0
    parts: Awaited | None = None
    """Entries that are still awaited, if some were answered by themselves; None: all are."""

    @property
    def awaited(self) -> Awaited:
        if self.parts is None:
            self.parts = Awaited(self.first, self.count)
        return self.parts

    def is_next_of(self, first: int, count: int) -> bool:
        """Whether all entries are awaited, and answered by the first of these."""
        return first == self.first and self.count <= count and self.parts is None

    def count_in(self, first: int, end: int) -> int:
        """Number of entries in [first, end) that are awaited."""
        if self.parts is None:
            return max(0, min(self.first + self.count, end) - max(self.first, first))
        return self.parts.count_in(first, end)

    @property
    def is_done(self) -> bool:
        return self.parts is not None and not self.parts


class PendingAdds(Generic[T]):
    """Pending adds of one connection, by ledger."""

    def __init__(self) -> None:
        self._ledgers: dict[int, deque[PendingAdd[T]]] = {}

    def __iter__(self) -> Iterator[PendingAdd[T]]:
        for adds in self._ledgers.values():
            yield from adds

    def sent(self, ledger_id: int, add: PendingAdd[T]) -> None:
        adds = self._ledgers.get(ledger_id)
        if adds is None:
            adds = self._ledgers[ledger_id] = deque()
        adds.append(add)

    def awaits(self, ledger_id: int, first: int, count: int) -> bool:
        """Somebody waits for each of these entries."""
        adds = self._ledgers.get(ledger_id, ())
        return sum(add.count_in(first, first + count) for add in adds) >= count

    def answered(self, ledger_id: int, first: int, count: int, code: int) -> list[PendingAdd[T]]:
        """The adds that are done now, in order. An answer that no add waits for is dropped, as by Apache's client."""
        adds = self._ledgers.get(ledger_id)
        if adds is None:
            return []
        done: list[PendingAdd[T]] = []
        while adds and adds[0].is_next_of(first, count):  # as it nearly always is: whole runs, in the order of the adds
            oldest = adds.popleft()
            oldest.code = oldest.code or code
            done.append(oldest)
            first, count = first + oldest.count, count - oldest.count
        rest = [(first, first + count)] if count else []
        for add in adds:
            if not rest:
                break
            taken = [part for start, stop in rest for part in add.awaited.take(start, stop)]
            if taken:
                add.code = add.code or code
                rest = _without(rest, taken)
        return self._with_done(ledger_id, adds, done)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        for ledger_id, adds in self._ledgers.items():
            assert adds, f"ledger {ledger_id} has no pending add"
            assert not adds[0].is_done, f"an add of ledger {ledger_id} is done and was not told"
            for add in adds:
                if add.parts is not None:
                    add.parts.check_invariants()

    def _with_done(self, ledger_id: int, adds: "deque[PendingAdd[T]]", done: "list[PendingAdd[T]]") -> "list[PendingAdd[T]]":
        while adds and adds[0].is_done:
            done.append(adds.popleft())
        if not adds:
            del self._ledgers[ledger_id]
        return done


class PendingMix(Generic[T]):
    """Mix that was sent; `owner` waits for the end. `answers`: those of a bookie that stores all of it and keeps its order."""

    __slots__ = ("_codes", "_matched", "answers", "deadline", "left", "mix", "owner")

    def __init__(self, mix: EntryMix, answers: bytes, deadline: float, owner: T) -> None:
        self.mix, self.answers, self.deadline, self.owner = mix, memoryview(answers), deadline, owner
        self.left = mix.count
        """Entries that are not answered."""
        self._matched = 0
        self._codes: set[int] = set()

    def match(self, buffer: memoryview, at: int, end: int) -> int:
        """Number of answers from `at` on that are the next ones, and good."""
        size = min(end - at, len(self.answers) - self._matched)
        size -= size % ANSWER_BYTES
        expected = self.answers[self._matched : self._matched + size]
        if buffer[at : at + size] != expected:
            size = next(
                place
                for place in range(0, size, ANSWER_BYTES)
                if buffer[at + place : at + place + ANSWER_BYTES] != expected[place : place + ANSWER_BYTES]
            )
        self._matched += size
        self.left -= size // ANSWER_BYTES
        return size // ANSWER_BYTES

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self._matched % ANSWER_BYTES == 0
        assert 0 <= self.left <= self.mix.count - self._matched // ANSWER_BYTES

    def rest(self) -> Iterator[tuple[int, int]]:
        """Ledger and entry id of those that are not answered, as long as all answers were matched."""
        buffer = self.mix.buffer
        for at in self.mix.offsets[self._matched // ANSWER_BYTES : -1]:
            yield int.from_bytes(buffer[at : at + 8], signed=True), int.from_bytes(buffer[at + 8 : at + 16], signed=True)

    def answered(self, code: int) -> None:
        """One entry, apart from the others."""
        self.left -= 1
        self._codes.add(code)

    @property
    def code(self) -> int | None:
        """Code of the whole, when nothing is left; None: some were stored and others not, or they failed in several ways."""
        codes = self._codes | {int(BookieCode.EOK)} if self._matched else self._codes
        return next(iter(codes)) if len(codes) == 1 else None


def _without(parts: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rest of `parts` without those in `taken`: one answer is for one request."""
    left = list(parts)
    for first, end in taken:
        left = [part for low, high in left for part in ((low, min(high, first)), (max(low, end), high)) if part[0] < part[1]]
    return left


@dataclass(slots=True)
class PendingRead(Generic[T]):
    """Entries that were asked for, one read each, and their answers so far."""

    ledger_id: int
    first_entry_id: int
    awaited: Awaited
    deadline: float
    owner: T
    runs: dict[int, EntryRun] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)

    def read(self, run: EntryRun) -> list[EntryRun]:
        """Take the awaited entries; returns the rest of the run, which other reads have asked for."""
        left, at = list[EntryRun](), run.first_entry_id
        for start, stop in self.awaited.take(run.first_entry_id, run.last_entry_id + 1):
            self.runs[start] = run.entries(start, stop - start)
            if at < start:
                left.append(run.entries(at, start - at))
            at = stop
        if at <= run.last_entry_id:
            left.append(run.entries(at, run.last_entry_id + 1 - at))
        return left

    def refused(self, entry_id: int, code: int) -> bool:
        """Whether the refused read was one of these."""
        if not self.awaited.take(entry_id, entry_id + 1):
            return False
        self.codes[entry_id] = code
        return True

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        self.awaited.check_invariants()
        runs = sorted((run.first_entry_id, run.last_entry_id + 1) for run in self.runs.values())
        assert all(self.runs[first].first_entry_id == first for first, _ in runs)
        assert all(one[1] <= other[0] for one, other in pairwise(runs)), "an entry came once"
        assert not any(self.awaited.count_in(first, end) for first, end in runs), "an entry that came is awaited"
        assert not any(self.awaited.count_in(entry_id, entry_id + 1) for entry_id in self.codes)

    def result(self) -> EntryRun | int:
        """All that is unbroken from the first entry on, or the code of the first."""
        parts, at = [], self.first_entry_id
        while at in self.runs:
            parts.append(self.runs[at])
            at = parts[-1].last_entry_id + 1
        if len(parts) > 1:
            return join(parts)
        return parts[0] if parts else self.codes[self.first_entry_id]
