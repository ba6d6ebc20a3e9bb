"""LedgerHandles: the closed ledgers of one managed ledger that are open for reading, at most HANDLES_MAX of them."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence

from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerStore, LedgerWriter
from ports.loop.side_by_side import take_error

HANDLES_MAX = 512
"""Some kilobytes each. A reader that picks due messages out of a long log reads hundreds of ledgers in turn."""


class LedgerHandles:
    """Opened once for all callers that ask at the same time; one that could not be opened is tried again. `writer_of` gives
    the writer of a ledger that is not closed."""

    def __init__(self, ledgers: LedgerStore, writer_of: Callable[[int], LedgerWriter | None]) -> None:
        self.ledgers = ledgers
        self._writer_of = writer_of
        self._loop = asyncio.get_running_loop()
        self._handles: OrderedDict[int, asyncio.Future[LedgerReader]] = OrderedDict()

    async def source(self, ledger_id: int) -> LedgerReader | LedgerWriter:
        """Reads the entries of a ledger, open or closed. LedgerError."""
        return self._writer_of(ledger_id) or await self.get(ledger_id)

    async def sources(self, ledger_ids: Collection[int]) -> Mapping[int, LedgerReader | LedgerWriter]:
        """Sources of the ledgers that are open, or can be opened."""
        writers = {ledger_id: writer for ledger_id in ledger_ids if (writer := self._writer_of(ledger_id)) is not None}
        return writers | await self.get_all([ledger_id for ledger_id in ledger_ids if ledger_id not in writers])

    async def get(self, ledger_id: int) -> LedgerReader:
        """LedgerError."""
        handle = self._handles.get(ledger_id)
        if handle is None or (handle.done() and (handle.cancelled() or handle.exception() is not None)):
            handle = self._handles[ledger_id] = self._loop.create_task(self._open(ledger_id))
            handle.add_done_callback(take_error)
            if len(self._handles) > HANDLES_MAX:
                self._handles.popitem(last=False)
        else:
            self._handles.move_to_end(ledger_id)
        return await asyncio.shield(handle)

    async def get_all(self, ledger_ids: Sequence[int]) -> dict[int, LedgerReader]:
        """Handles of those ledgers that can be opened."""
        found, opening = dict[int, LedgerReader](), list[int]()
        for ledger_id in ledger_ids:
            handle = self._handles.get(ledger_id)
            if handle is None or not handle.done() or handle.cancelled() or handle.exception() is not None:
                opening.append(ledger_id)
                continue
            self._handles.move_to_end(ledger_id)
            found[ledger_id] = handle.result()
        for ledger_id, opened in zip(
            opening, await asyncio.gather(*map(self.get, opening), return_exceptions=True) if opening else (), strict=True
        ):
            if isinstance(opened, BaseException) and not isinstance(opened, LedgerError):
                raise opened
            if not isinstance(opened, BaseException):
                found[ledger_id] = opened
        return found

    def keep(self, reader: LedgerReader) -> None:
        """A ledger that was just recovered need not be opened again."""
        handle: asyncio.Future[LedgerReader] = self._loop.create_future()
        handle.set_result(reader)
        self._handles[reader.ledger_id] = handle

    def forget(self, ledger_id: int) -> None:
        self._handles.pop(ledger_id, None)

    def take_all(self) -> list["asyncio.Future[LedgerReader]"]:
        """Give up all handles; the caller cancels those that are being opened."""
        handles = list(self._handles.values())
        self._handles.clear()
        return handles

    async def _open(self, ledger_id: int) -> LedgerReader:
        return await self.ledgers.open(ledger_id)
