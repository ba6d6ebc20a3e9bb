"""Entries that one bookie acknowledged, kept by its only writer, and looked for afterwards, byte for byte.

Owns the record. A run that was sent and not answered may be there or not; what is there must be what was sent.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

from bookkeeper.network.network_bookie import NetworkBookie
from ports.network.read_buffer import SharedRoom
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

LEDGERS = 5
WINDOW = 16
READ_BYTES_MAX = 1 << 20
SECONDS_MAX = 60.0
POLL_SECONDS = 0.05


class Sent(NamedTuple):
    """A run, so that it can be made again."""

    ledger_id: int
    first_entry_id: int
    entry_count: int
    size: int

    def run(self) -> EntryRun:
        return sealed(self.ledger_id, self.first_entry_id, self.entry_count, self.size)


@contextlib.asynccontextmanager
async def connected(port: int, timeout_seconds: float = 20.0) -> AsyncIterator[NetworkBookie]:
    """Connection to the bookie that listens there on this machine."""
    client = NetworkBookie(f"127.0.0.1:{port}", "127.0.0.1", port, SharedRoom(), timeout_seconds)
    try:
        yield client
    finally:
        await client.close()


@dataclass(slots=True)
class Record:
    """Everything that was sent so far, over all starts of the bookie."""

    acknowledged: list[Sent] = field(default_factory=list)
    unanswered: list[Sent] = field(default_factory=list)
    next_entry_ids: dict[int, int] = field(default_factory=dict)

    @property
    def entry_count(self) -> int:
        return sum(sent.entry_count for sent in self.acknowledged)


class Load:
    """Adds to some ledgers of a bookie, a window of them under way, until one fails or `stop`; `with` stops it."""

    def __init__(self, bookie: NetworkBookie, record: Record, chance: random.Random, *, size_max: int = 3000) -> None:
        self._bookie, self._record, self._chance, self._size_max = bookie, record, chance, size_max
        self._is_stopped = False
        self._progress = asyncio.Condition()
        self.refusals: list[BookieError] = []
        self._tasks = [asyncio.create_task(self._add()) for _ in range(WINDOW)]

    async def _add(self) -> None:
        while not self._is_stopped:
            sent = self._next()
            try:
                await self._bookie.add(sent.run(), KEY)
            except BookieError as error:
                self.refusals.append(error)
                self._record.unanswered.append(sent)
                self._is_stopped = True
            else:
                self._record.acknowledged.append(sent)
            async with self._progress:
                self._progress.notify_all()

    def _next(self) -> Sent:
        chance, ids = self._chance, self._record.next_entry_ids
        ledger_id = chance.randrange(1, LEDGERS + 1)
        sent = Sent(ledger_id, ids.get(ledger_id, 0), chance.randrange(1, 10), chance.randrange(1, self._size_max))
        ids[ledger_id] = sent.first_entry_id + sent.entry_count
        return sent

    async def more(self, runs: int) -> None:
        """Waits until so many more runs are acknowledged. AssertionError when one is refused."""
        goal = len(self._record.acknowledged) + runs
        await self._until(lambda: len(self._record.acknowledged) >= goal or bool(self.refusals))
        assert not self.refusals, self.refusals

    async def refused(self) -> BookieCode:
        """Waits until an add fails; returns its code."""
        await self._until(lambda: bool(self.refusals))
        await self.stop()
        return self.refusals[0].code

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS_MAX), self._progress:
            await self._progress.wait_for(is_so)

    async def stop(self) -> None:
        """Stop; adds under way are answered, or fail when their connection does."""
        self._is_stopped = True
        async with asyncio.timeout(SECONDS_MAX):
            await asyncio.gather(*self._tasks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class Loss(AssertionError):
    """Something acknowledged is not there, or is another."""


async def check(bookie: NetworkBookie, record: Record) -> None:
    """Loss unless all of the record is there."""
    for sent in record.acknowledged:
        await _check_run(bookie, sent, may_be_missing=False)
    for sent in record.unanswered:
        await _check_run(bookie, sent, may_be_missing=True)


async def _check_run(bookie: NetworkBookie, sent: Sent, *, may_be_missing: bool) -> None:
    wanted = entries_of(sent.run())
    at, end = sent.first_entry_id, sent.first_entry_id + sent.entry_count
    while at < end:
        try:
            found = entries_of(await bookie.read(sent.ledger_id, at, end - at, READ_BYTES_MAX))
        except BookieError as error:
            if may_be_missing and error.code in (BookieCode.ENOENTRY, BookieCode.ENOLEDGER):
                at += 1
                continue
            raise Loss(f"ledger {sent.ledger_id} entry {at}: {error}") from error
        for entry_id, data in found.items():
            if data != wanted[entry_id]:
                raise Loss(f"ledger {sent.ledger_id} entry {entry_id} is another")
        at += len(found)


async def writable_again(bookie: NetworkBookie, record: Record) -> None:
    """Waits until the bookie takes an add; only an attempt shows that it does."""
    ledger_id = LEDGERS + 1
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            sent = Sent(ledger_id, record.next_entry_ids.get(ledger_id, 0), 1, 10)
            record.next_entry_ids[ledger_id] = sent.first_entry_id + 1
            try:
                await bookie.add(sent.run(), KEY)
            except BookieError as error:
                if error.code is not BookieCode.EREADONLY:
                    raise
                record.unanswered.append(sent)
            else:
                record.acknowledged.append(sent)
                return
            await asyncio.sleep(POLL_SECONDS)
