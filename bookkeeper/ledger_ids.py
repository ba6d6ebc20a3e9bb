"""LedgerIds: new ledger ids from the metadata store, in blocks. Owns the block that is not given out yet.

Apache takes one id by making a sequential ephemeral node under `/ledgers/idgen` and deleting it: the id is the node's number.
Here one commit makes many such nodes, so that a thousand new topics cost a handful of commits; the store numbers them, so that
Apache's generator and ours may share a tree. Ids of a block that nobody took are lost with the process. See docs/adr/0005.
"""

import asyncio
import logging
from collections import deque

from bookkeeper.ledger_layouts import SHORT_ID_LIMIT
from bookkeeper.ledgers import LedgerError
from bookkeeper.paths import ID_GENERATOR, LONG_ID_GENERATOR
from metadata.store import MUST_NOT_EXIST, BadVersion, Delete, MetadataError, MetadataStore, OutcomeUnknown, Put, Stat
from ports.logs import line

AHEAD_MIN = 4
AHEAD_MAX = 64
"""Ids taken ahead of need: doubles from the one to the other with each block, so that a broker with few topics wastes few."""
BLOCK_MAX = 1000
"""Ids in one commit, however many wait."""
HIGH_KEPT = 3
"""Counters for the high half of long ids that stay, as in Apache."""
HIGH_PREFIX = "HOB-"
LOST_ANSWERS_MAX = 3
"""Answers of the id generator in a row that may be lost with their connections."""

_log = logging.getLogger(__name__)


class LedgerIds:
    """Gives each id once. MetadataError when the store fails."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._ready: deque[int] = deque()
        self._refill = asyncio.Lock()
        self._waiting = 0
        self._ahead = AHEAD_MIN
        self._returning: dict[asyncio.Task[None], None] = {}

    async def take(self) -> int:
        while not self._ready:
            self._waiting += 1
            try:
                async with self._refill:
                    if not self._ready:
                        await self._take_block(min(max(self._waiting, self._ahead), BLOCK_MAX))
            finally:
                self._waiting -= 1
        return self._ready.popleft()

    async def close(self) -> None:
        """Wait for what runs in the background."""
        await asyncio.gather(*self._returning)

    async def _take_block(self, count: int) -> None:
        """After the last id that fits 31 bits the next half begins, for every client of the tree and for good."""
        for _ in range(2):
            generator, high = await self._generator()
            numbers = await self._take_numbers(generator, count)
            self._ready.extend((high << 32) | number for number in numbers if 0 <= number < SHORT_ID_LIMIT)
            if self._ready:
                self._ahead = min(2 * self._ahead, AHEAD_MAX)
                return
            await self._begin_high(high + 1)
        raise LedgerError(f"{generator} gives no ledger ids: {numbers}")

    async def _generator(self) -> tuple[str, int]:
        """The node whose children are the numbers, and the high half of the ids made of them."""
        highs = [int(name.removeprefix(HIGH_PREFIX)) for name in await self._store.children(LONG_ID_GENERATOR)]
        return (f"{LONG_ID_GENERATOR}/{HIGH_PREFIX}{max(highs):010d}", max(highs)) if highs else (ID_GENERATOR, 0)

    async def _take_numbers(self, generator: str, count: int) -> list[int]:
        node = Put(f"{generator}/ID-", b"", ephemeral=True, sequential=True)
        paths = [stat.path for stat in await self._commit([node] * count) if stat is not None]
        self._in_background([Delete(path) for path in paths])
        return [int(path.rpartition("/ID-")[2]) for path in paths]

    async def _commit(self, nodes: list[Put]) -> list[Stat | None]:
        """Again after a lost connection: numbers that nobody heard of are lost, and their nodes go with the session."""
        for _ in range(LOST_ANSWERS_MAX):
            try:
                return await self._store.commit(nodes)
            except OutcomeUnknown as unknown:
                _log.warning(line("ledger ids may be lost", count=len(nodes), reason=unknown))
        return await self._store.commit(nodes)

    async def _begin_high(self, high: int) -> None:
        try:
            await self._store.put(f"{LONG_ID_GENERATOR}/{HIGH_PREFIX}{high:010d}", b"", MUST_NOT_EXIST)
        except BadVersion:
            return  # another client was faster
        if high > HIGH_KEPT:
            self._in_background([Delete(f"{LONG_ID_GENERATOR}/{HIGH_PREFIX}{high - HIGH_KEPT:010d}")])

    def _in_background(self, deletes: list[Delete]) -> None:
        """Nobody waits for the nodes to go: their numbers are taken."""
        task = asyncio.get_running_loop().create_task(self._delete(deletes))
        self._returning[task] = None
        task.add_done_callback(lambda done: self._returning.pop(done, None))

    async def _delete(self, deletes: list[Delete]) -> None:
        try:
            await self._store.commit(deletes)
        except MetadataError as error:
            _log.warning(line("nodes of the ledger id generator stay", count=len(deletes), first=deletes[0].path, reason=error))
