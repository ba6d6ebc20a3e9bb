"""Bookies behind links that do nothing by themselves: a schedule says which message goes next, what is synced, what is cut.

A bookie shows an entry to readers as soon as the request arrives, answers after its journal is synced, and forgets in a crash
what was not. A link keeps the order of its requests and of its answers, and may be cut: then all that is on it fails with EIO,
whether the bookie has seen it or not.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bookkeeper.ports import BookieClient
from tests.bookkeeper.fake_bookies import offsets_of
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

T = TypeVar("T")


@dataclass
class Stored:
    entries: dict[int, bytes] = field(default_factory=dict)
    fenced: bool = False


class ScheduledBookie:
    """The state of a bookie: what it shows, what is durable, and the journal between the two."""

    def __init__(self) -> None:
        self.shown: dict[int, Stored] = {}
        self.durable: dict[int, Stored] = {}
        self.sick = False
        """Reads fail with EIO."""
        self.journal: deque[tuple[Callable[[dict[int, Stored]], None], Callable[[], None]]] = deque()

    def write(self, change: Callable[[dict[int, Stored]], None], answer: Callable[[], None]) -> None:
        change(self.shown)
        self.journal.append((change, answer))

    def sync(self) -> None:
        while self.journal:
            change, answer = self.journal.popleft()
            change(self.durable)
            answer()

    def crash(self) -> None:
        """Crash, and start again at once."""
        self.journal.clear()
        self.shown = copy.deepcopy(self.durable)


class Link(BookieClient):
    """A client's connection to a bookie."""

    def __init__(self, bookie: ScheduledBookie) -> None:
        self.bookie = bookie
        self.requests: deque[Callable[[], None]] = deque()
        self.answers: deque[Callable[[], None]] = deque()
        self._open: dict[asyncio.Future[Any], int] = {}

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        entries = {run.first_entry_id + at: bytes(run.buffer[run.offsets[at] : run.offsets[at + 1]]) for at in range(run.count)}

        def store(ledgers: dict[int, Stored]) -> None:
            ledgers.setdefault(run.ledger_id, Stored()).entries.update(entries)

        def arrive(future: "asyncio.Future[None]") -> None:
            if self.bookie.shown.get(run.ledger_id, Stored()).fenced and not recovery:
                self._answer(future, BookieError(BookieCode.EFENCED, run.ledger_id))
            else:
                self.bookie.write(store, lambda: self._answer(future, None))

        return self._request(run.ledger_id, arrive)

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        def fence(ledgers: dict[int, Stored]) -> None:
            ledgers.setdefault(ledger_id, Stored()).fenced = True

        def arrive(future: "asyncio.Future[bytes]") -> None:
            self.bookie.write(fence, lambda: self._answer(future, last_entry()))

        def last_entry() -> bytes:
            entries = self.bookie.shown[ledger_id].entries
            return entries[max(entries)] if entries else b""

        return await self._request(ledger_id, arrive)

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        def arrive(future: "asyncio.Future[EntryRun]") -> None:
            if self.bookie.sick:
                self._answer(future, BookieError(BookieCode.EIO, ledger_id))
                return
            entries = self.bookie.shown.get(ledger_id, Stored()).entries
            found: list[bytes] = []
            while first_entry_id + len(found) in entries and len(found) < count_max:
                found.append(entries[first_entry_id + len(found)])
            if found:
                self._answer(future, EntryRun(ledger_id, first_entry_id, b"".join(found), offsets_of(map(len, found))))
            else:
                self._answer(future, BookieError(BookieCode.ENOENTRY, ledger_id))

        return await self._request(ledger_id, arrive)

    async def last_entry_id(self, ledger_id: int) -> int:
        raise NotImplementedError

    def cut(self) -> None:
        """Cut the connection, and connect again at once."""
        self.requests.clear()
        self.answers.clear()
        lost, self._open = self._open, {}
        for future, ledger_id in lost.items():
            if not future.done():
                future.set_exception(BookieError(BookieCode.EIO, ledger_id, "connection lost"))

    def _request(self, ledger_id: int, arrive: "Callable[[asyncio.Future[T]], None]") -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._open[future] = ledger_id
        self.requests.append(lambda: arrive(future))
        return future

    def _answer(self, future: "asyncio.Future[T]", answer: T | BookieError) -> None:
        def arrive() -> None:
            self._open.pop(future, None)
            if future.done():
                return
            if isinstance(answer, BookieError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        if future in self._open:  # not when the link was cut since
            self.answers.append(arrive)
