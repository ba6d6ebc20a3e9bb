"""ExplicitLac: tells the bookies of an open ledger its last add confirmed, so that readers see the last entries of a writer
that rests (BookKeeper's explicitLacInterval; otherwise an entry is known to be confirmed by a later one's header).

A hint that nothing depends on: a bookie that cannot be reached gets it at the next turn. Bounds: one turn at a time, each ended
by the time-out of the bookies' clients; a writer that rests, and one that was released, has no timer. Needs version 3 of the
protocol (`ExtendedBookie`); other bookies are not told.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from bookkeeper.ports import BookieClient, ExtendedBookie
from ports.logs import line
from wire.bookie.codes import BookieError

_log = logging.getLogger(__name__)


class ExplicitLac:
    """Explicit last add confirmed of one writer: `appended` with each append, `stop` at its end. The task ends when all is sent
    or when `bookies` gives none."""

    def __init__(
        self,
        ledger_id: int,
        master_key: bytes,
        interval_seconds: float,
        last_add_confirmed: Callable[[], int],
        bookies: Callable[[], Sequence[BookieClient]],
        record_of: Callable[[int], bytes],
    ) -> None:
        self._ledger_id, self._master_key, self._interval = ledger_id, master_key, interval_seconds
        self._last_add_confirmed, self._bookies, self._record_of = last_add_confirmed, bookies, record_of
        self._appended = self._told = -1
        self._task: asyncio.Task[None] | None = None

    def appended(self, last_entry_id: int) -> None:
        """Readers are to be shown the entries up to this one."""
        self._appended = last_entry_id
        if self._task is None:
            name = f"explicit last add confirmed of ledger {self._ledger_id}"
            self._task = asyncio.create_task(self._tell_again(), name=name)

    def stop(self) -> None:
        """Stopping twice is fine."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _tell_again(self) -> None:
        await asyncio.sleep(self._interval)
        while (bookies := self._bookies()) and self._told < self._appended:
            if self._last_add_confirmed() > self._told:
                await self._tell(self._last_add_confirmed(), bookies)
            await asyncio.sleep(self._interval)
        self._task = None

    async def _tell(self, last: int, ensemble: Sequence[BookieClient]) -> None:
        """All of the ensemble: whichever of them a reader asks knows it."""
        record = self._record_of(last)
        bookies = [bookie for bookie in ensemble if isinstance(bookie, ExtendedBookie)]
        writes = [bookie.write_lac(self._ledger_id, last, self._master_key, record) for bookie in bookies]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        refusals = [answer for answer in answers if answer is not None]
        for refusal in refusals:
            if not isinstance(refusal, BookieError):
                raise refusal
        if refusals:
            _log.warning(line("bookies refused the explicit last add confirmed", ledger=self._ledger_id, reason=refusals[0]))
        else:
            self._told = last
