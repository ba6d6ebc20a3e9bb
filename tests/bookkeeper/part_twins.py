"""One schedule of appends, answers, failures and ensemble changes, driven twice: every append a run, or many of them parts.

Both see the same answers in the same order. Both must tell the same, in the same order, and treat failures alike.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from bookkeeper.ledgers import LedgerClosed, LedgerError
from bookkeeper.write.counted_adds import AddRules
from bookkeeper.write.parts import Part
from bookkeeper.write.quorum_tracker import Quorum
from bookkeeper.write.replicated_adds import ReplicatedAdds, WrittenLedger
from ports.loop.promise import listen
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryMix, EntryRun, batch_of

LEDGER = 7
ENTRY = batch_of([b"one"])


class FakeTaker:
    """A bookie that answers when it is told to."""

    def __init__(self, name: str, twin: "Twin") -> None:
        self._name, self._twin = name, twin

    writable_ledgers = None

    def mixing_for(self, ledger_id: int) -> "FakeTaker":
        return self

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._twin.asked.append(((self._name, run.first_entry_id), future))
        return future

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        raise AssertionError("the twin answers parts itself")

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        raise AssertionError

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        raise AssertionError

    async def last_entry_id(self, ledger_id: int) -> int:
        raise AssertionError


class FakeEnsembles:
    """Spare bookies, as long as there are any; metadata that is written when it is told to."""

    def __init__(self, spares: int, told: list[object]) -> None:
        self._spares = [f"spare{number}" for number in range(spares)]
        self._told = told
        self.storing: asyncio.Future[None] | None = None

    def with_replacements(self, first_entry_id: int, ensemble: tuple[str, ...], failed: Sequence[int]) -> tuple[str, ...]:
        names, spares = list(ensemble), [name for name in self._spares if name not in ensemble]
        for index, name in zip(failed, spares, strict=False):
            names[index] = name
        return tuple(names)

    async def store(self, first_entry_id: int, ensemble: tuple[str, ...]) -> None:
        self._told.append(("store", first_entry_id, ensemble))
        self.storing = asyncio.get_running_loop().create_future()
        await self.storing

    def on_failed(self, bookie: str) -> None:
        self._told.append(("failed", bookie))


class Twin:
    """One of the two. `told`: all that was said, in order. `asked`: what bookies have not answered, with whom to tell of it."""

    def __init__(self, sizes: tuple[int, int, int], spares: int, seconds: float, *, delays: bool, takes_parts: bool) -> None:
        self._takes_parts = takes_parts
        self.told: list[object] = []
        self.asked: list[tuple[tuple[str, int], Any]] = []
        names = tuple(f"b{number}" for number in range(sizes[0]))
        bookies = {name: FakeTaker(name, self) for name in (*names, *(f"spare{number}" for number in range(spares)))}
        self.ensembles = FakeEnsembles(spares, self.told)
        ledger = WrittenLedger(LEDGER, Quorum(*sizes), names, b"key")
        self.adds = ReplicatedAdds(ledger, bookies, self.ensembles, AddRules(delays, seconds))
        self.next_entry_id = 0
        self.parts = 0

    def append(self, count: int, *, is_part: bool) -> None:
        first, entries = self.next_entry_id, batch_of([b"x"] * count)
        self.next_entry_id += count
        part = Part(entries, 0, count, self, first, asyncio.get_running_loop().time())
        if is_part and self._takes_parts and self.adds.take_part(part, first):
            self.parts += 1
            for name, seat in zip(self.adds._ensemble, part.adds.route.seats, strict=True):  # type: ignore[union-attr]
                self.asked.append(((name, first), (part, seat)))
            return
        future = self.adds.append(EntryRun(LEDGER, first, entries.buffer, entries.offsets))
        listen(future, lambda done: self._tell(first, done.exception()))

    def part_answered(self, part: Part, error: BaseException | None) -> None:
        assert part.is_done
        assert (part.ledger_id, part.first_entry_id) == (LEDGER, part.source)
        self._tell(part.first_entry_id, error)

    def _tell(self, first: int, error: BaseException | None) -> None:
        self.told.append((first, type(error), str(error)))

    def waits_for(self) -> list[tuple[str, int]]:
        return sorted(place for place, _ in self.asked)

    def answer(self, place: tuple[str, int], code: BookieCode) -> None:
        """The oldest of what this bookie was asked about this entry."""
        index = [asked for asked, _ in self.asked].index(place)
        _, waiting = self.asked.pop(index)
        error = None if code == BookieCode.EOK else BookieError(code, LEDGER, "at add")
        if isinstance(waiting, tuple):
            part, seat = waiting
            if error is None:
                part.adds.part_stored(part, seat)
            else:
                part.adds.part_failed(part, seat, error)
        elif error is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(error)

    def stored(self, error: LedgerError | None) -> None:
        storing, self.ensembles.storing = self.ensembles.storing, None
        if storing is not None and error is None:
            storing.set_result(None)
        elif storing is not None:
            storing.set_exception(error or LedgerClosed())

    def state(self) -> tuple[object, ...]:
        adds = self.adds
        failure = None if adds.failure is None else (type(adds.failure), str(adds.failure))
        return adds.last_confirmed, failure, adds._ensemble, adds._outstanding_entries, adds._outstanding_bytes, self.told
