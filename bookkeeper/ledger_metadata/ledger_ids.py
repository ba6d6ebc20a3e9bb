"""LedgerIds: new ledger ids from the metadata store, in blocks. Owns the block that is being taken and the one after it.

Apache takes one id by making a sequential ephemeral node under `/ledgers/idgen` and deleting it: the id is the node's number.
Here one commit makes many such nodes, so that a thousand new topics cost a handful of commits; the store numbers them, so that
Apache's generator and ours may share a tree. Nothing is taken ahead of need: a log's next ledger has to have an id above all
that the log ever had, also from another broker, so an id comes from a commit that began after it was asked for. See
docs/adr/0005.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bookkeeper.ledger_metadata.layouts import SHORT_ID_LIMIT
from bookkeeper.ledger_metadata.paths import ID_GENERATOR, LONG_ID_GENERATOR
from bookkeeper.ledgers import LedgerError
from metadata.store import MUST_NOT_EXIST, BadVersion, Delete, MetadataError, MetadataStore, OutcomeUnknown, Put, Stat
from ports.logs import line

BLOCK_MAX = 1000
"""Ids in one commit, however many wait."""
HIGH_KEPT = 3
"""Counters for the high half of long ids that stay, as in Apache."""
HIGH_PREFIX = "HOB-"
LOST_ANSWERS_MAX = 3
"""Answers of the id generator in a row that may be lost with their connections."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Block:
    """Ids for all callers that asked before the block was taken."""

    count: int = 0
    ids: asyncio.Task[list[int]] = field(init=False)


class LedgerIds:
    """Gives each id once, above every id given out before the call. MetadataError when the store fails."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._next: _Block | None = None
        """Block that waits for the end of the one being taken."""
        self._turn = asyncio.Lock()
        self._running: dict[asyncio.Task[Any], None] = {}

    async def take(self) -> int:
        """Take an id. Callers that ask while a block is being taken share the next one; each gets its failure."""
        block = self._next
        if block is None or block.count == BLOCK_MAX:
            block = self._next = _Block()
            block.ids = self._start(self._take_in_turn(block))
            block.ids.add_done_callback(_take_error)
        place = block.count
        block.count += 1
        return (await asyncio.shield(block.ids))[place]

    async def close(self) -> None:
        """Wait for what runs in the background."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _take_in_turn(self, block: _Block) -> list[int]:
        async with self._turn:
            if self._next is block:
                self._next = None  # callers from now on may have seen younger ids than these
            return await self._take_block(block.count)

    async def _take_block(self, count: int) -> list[int]:
        """After the last id that fits 31 bits the next half begins, for every client of the tree and for good."""
        ids: list[int] = []
        for _ in range(2):
            generator, high = await self._generator()
            numbers = await self._take_numbers(generator, count - len(ids))
            ids += [(high << 32) | number for number in numbers if 0 <= number < SHORT_ID_LIMIT]
            if len(ids) == count:
                return ids
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
        """Commit, again after a lost connection: numbers in a lost answer are lost, and their nodes go with the session."""
        for _ in range(LOST_ANSWERS_MAX):
            try:
                return await self._store.commit(nodes)
            except OutcomeUnknown as unknown:
                _log.warning(line("some ledger ids may never be used", count=len(nodes), reason=unknown))
        return await self._store.commit(nodes)

    async def _begin_high(self, high: int) -> None:
        try:
            await self._store.put(f"{LONG_ID_GENERATOR}/{HIGH_PREFIX}{high:010d}", b"", MUST_NOT_EXIST)
        except BadVersion:
            return  # another client was faster
        if high > HIGH_KEPT:
            self._in_background([Delete(f"{LONG_ID_GENERATOR}/{HIGH_PREFIX}{high - HIGH_KEPT:010d}")])

    def _in_background(self, deletes: list[Delete]) -> None:
        """Delete the nodes without a waiter: their numbers are taken."""
        self._start(self._delete(deletes))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = None
        task.add_done_callback(lambda done: self._running.pop(done, None))
        return task

    async def _delete(self, deletes: list[Delete]) -> None:
        try:
            await self._store.commit(deletes)
        except MetadataError as error:
            _log.warning(
                line("nodes of the ledger id generator not removed", count=len(deletes), first=deletes[0].path, reason=error)
            )


def _take_error(done: asyncio.Task[list[int]]) -> None:
    """Retrieve the error of a block that may have no waiter left; waiters get it too."""
    if not done.cancelled():
        done.exception()
