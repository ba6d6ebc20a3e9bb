"""A paced writer on bookies, some of them killed or stopped: how long each append took, and that all entries are there.

Owns the load and its measurements. A time counts from the moment at which the append was due, so that an append that is held
up distorts no other's time.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from metadata.zookeeper.store import ZooKeeperStore
from ports.rng import RealRng
from tests.clients.bookie_process import BookieProcess
from tests.metadata.conftest import open_on
from wire.run import EntryRun, batch_of

ENSEMBLE = 3
BYTES = 1024
READ_BYTES_MAX = 1 << 20
POLL_SECONDS = 0.05
SECONDS_MAX = 60.0
UNANSWERED_MAX = 20_000


def payload(entry_id: int) -> bytes:
    return entry_id.to_bytes(8) + random.Random(entry_id).randbytes(BYTES - 8)


class Took(NamedTuple):
    """An append that was acknowledged."""

    due: float
    """Loop time."""
    seconds: float


class PacedLoad:
    """One append of one entry at a time that is due, whatever became of those before. `with` ends it."""

    def __init__(self, writer: LedgerWriter, per_second: float) -> None:
        self._writer, self._interval = writer, 1 / per_second
        self._loop = asyncio.get_running_loop()
        self._unanswered = 0
        self._last: asyncio.Future[EntryRun] | None = None
        """Newest append: appends are answered in order."""
        self.took: list[Took] = []
        self.errors: list[BaseException] = []
        self._task = self._loop.create_task(self._send())

    async def _send(self) -> None:
        due = self._loop.time()
        while not self.errors:
            due += self._interval
            if due > self._loop.time():
                await asyncio.sleep(due - self._loop.time())
            assert self._unanswered < UNANSWERED_MAX, "nothing is acknowledged any more"
            self._unanswered += 1
            future = self._writer.append(batch_of((payload(self._writer.next_entry_id),)))
            future.add_done_callback(lambda done, due=due: self._answered(due, done))  # type: ignore[misc]
            self._last = future

    def _answered(self, due: float, done: "asyncio.Future[EntryRun]") -> None:
        self._unanswered -= 1
        error = done.exception()
        if error is None:
            self.took.append(Took(due, self._loop.time() - due))
        else:
            self.errors.append(error)

    async def run_for(self, seconds: float) -> float:
        """The longest that an append took which was due in this time. AssertionError when one failed."""
        begin = self._loop.time()
        await asyncio.sleep(seconds)
        end = self._loop.time()
        await self._all_answered()
        return max(took.seconds for took in self.took if begin <= took.due <= end)

    async def _all_answered(self) -> None:
        """Waits for the answers of all appends sent by now."""
        last = self._last
        if last is not None:
            await asyncio.wait([last], timeout=SECONDS_MAX)
            assert last.done(), f"an append is not answered in {SECONDS_MAX} s"
        assert not self.errors, self.errors

    async def stop(self) -> None:
        """Stopping twice is fine."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._all_answered()

    async def __aenter__(self) -> "PacedLoad":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


@dataclass(slots=True)
class Fire:
    """A client, a ledger under load, and the bookies."""

    store: ZooKeeperStore
    known: NetworkBookies
    ledgers: BookKeeper
    writer: LedgerWriter
    load: PacedLoad
    bookies: Sequence[BookieProcess]
    spikes: list[float] = field(default_factory=list)
    """Seconds, of each kill or stop."""

    async def victim(self, place: int) -> BookieProcess:
        """The one that the ledger is written to at that place of its ensemble."""
        found = await self.store.get(ledger_path(self.writer.ledger_id))
        assert found is not None
        ensemble = decode_ledger_metadata(found.value).segments[-1].bookies
        return next(bookie for bookie in self.bookies if bookie.bookie_id == ensemble[place])

    async def kill_one(self, place: int, seconds: float) -> BookieProcess:
        """kill -9, and so much time without it; which it was."""
        bookie = await self.victim(place)
        killed = asyncio.create_task(asyncio.to_thread(bookie.kill))  # it waits for the end, the load does not
        self.spikes.append(await self.load.run_for(seconds))
        await killed
        return bookie

    async def start(self, bookie: BookieProcess) -> None:
        """Done when it takes entries again."""
        await asyncio.to_thread(bookie.start)
        await self.until_known(bookie)

    async def kill_all(self, seconds: float) -> None:
        """Kills the bookies of the first ensemble, one after the other, then starts them again.

        None of them has the last entries, so that a reader that does not know of the changes of the ensemble finds fewer.
        """
        killed = [await self.kill_one(place, seconds) for place in range(ENSEMBLE)]
        for bookie in killed:
            await self.start(bookie)

    async def stop_one(self, place: int, seconds: float) -> None:
        """SIGSTOP, so much time without it, SIGCONT; done when it takes entries again, though its session may have ended."""
        bookie = await self.victim(place)
        bookie.pause()
        try:
            self.spikes.append(await self.load.run_for(seconds))
        finally:
            bookie.go_on()
        await self.until_known(bookie)

    async def until_known(self, bookie: BookieProcess) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while bookie.bookie_id not in list(self.known):  # noqa: ASYNC110  # another process, which tells when it is there
                await asyncio.sleep(POLL_SECONDS)

    async def check(self) -> int:
        """Ends the load; how many entries were acknowledged. A recovery finds every one, as it was sent."""
        await self.load.stop()
        count = len(self.load.took)
        reader = await self.ledgers.open(self.writer.ledger_id)
        assert reader.last_entry_id >= count - 1, f"ends at {reader.last_entry_id}: {count} were acknowledged"
        at = 0
        while at < count:
            run = await reader.read(at, count - at, READ_BYTES_MAX)
            for entry_id in range(at, at + run.count):
                assert bytes(run.payload(entry_id)) == payload(entry_id), f"entry {entry_id} is another"
            at += run.count
        return count


@contextlib.asynccontextmanager
async def under_fire(
    servers: str,
    bookies: Sequence[BookieProcess],
    *,
    ack: int,
    per_second: float,
    timeout_seconds: float,
    use_version2: bool = True,
) -> AsyncIterator[Fire]:
    """E3 Qw3 on the bookies, which run; the load does, too, until the end."""
    store = await open_on(servers)
    known = NetworkBookies(store, timeout_seconds, use_version2=use_version2)
    ledgers = BookKeeper(known, store, BookKeeperSettings(ENSEMBLE, ENSEMBLE, ack), RealRng())
    try:
        await ledgers.initialise()
        await known.open()
        writer = await ledgers.create({})
        async with PacedLoad(writer, per_second) as load:
            yield Fire(store, known, ledgers, writer, load, bookies)
    finally:
        await known.close()
        await ledgers.close()
        await store.close()
