"""StoredAgain: whether entries that a recovery adds are here already, so that a bookie without room can acknowledge them.

A recovery reads the last entries of a ledger and adds them again. Most of its bookies have them all, and need no
room: a topic whose bookie is full can be opened all the same. The bytes after the header are compared: a recovery writes a
later last add confirmed into the header.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bookie.adds.flusher import Flusher
from bookie.journal.journal import Journal
from wire.bookie.codes import BookieError
from wire.run import EntryRun

Read = Callable[[int, int, int, int], Awaitable[EntryRun]]


class StoredAgain:
    """The entries that one bookie has already. `read` is `BookieClient.read`."""

    def __init__(self, read: Read, flusher: Flusher, journal: Journal) -> None:
        self._read, self._flusher, self._journal = read, flusher, journal
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, run: EntryRun, future: "asyncio.Future[None]", otherwise: Callable[[], None]) -> None:
        """`future` is done when the entries are stored; where they are not here, `otherwise` answers it."""
        task = asyncio.get_running_loop().create_task(self._answer(run, future, otherwise), name="bookie recovery add")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, run: EntryRun, future: "asyncio.Future[None]", otherwise: Callable[[], None]) -> None:
        is_stored = await self.is_stored(run)
        if future.done():
            return  # nobody waits any more
        if is_stored:
            future.set_result(None)
        else:
            otherwise()

    async def is_stored(self, run: EntryRun) -> bool:
        """Whether all entries of `run` are durable here. Never raises BookieError or OSError."""
        try:
            return await self._is_here(run) and await self._is_durable(run)
        except (BookieError, OSError):
            return False  # what cannot be read, or not be made durable, is refused as if it were not here

    async def _is_here(self, run: EntryRun) -> bool:
        entry_id = run.first_entry_id
        while entry_id <= run.last_entry_id:
            found = await self._read(run.ledger_id, entry_id, run.last_entry_id + 1 - entry_id, run.size_bytes)
            if any(found.payload(each) != run.payload(each) for each in range(entry_id, found.last_entry_id + 1)):
                return False
            entry_id = found.last_entry_id + 1
        return True

    async def _is_durable(self, run: EntryRun) -> bool:
        """Entries in entry logs are stored; those in a memtable are, once the journal has written its earlier records."""
        if all(table.last_entry_id(run.ledger_id) < run.first_entry_id for table in self._flusher.tables):
            return True
        if not self._journal.has_lost:
            await self._journal.written()
        if self._journal.has_lost:
            await self._journal_again(run)
        return True

    async def _journal_again(self, run: EntryRun) -> None:
        """A memtable has it and the journal perhaps not: there is room for little, and this is little. BookieError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._journal.append(run, run.size_bytes, future)
        await future
