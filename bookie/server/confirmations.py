"""Confirmations: explicit last-add-confirmed records, and the readers that wait for a ledger's last add confirmed
to go on.

A record that a writer sent by itself (explicitLacInterval) is a hint for readers that wait; the entries carry the same number.
It is kept in memory alone: after a restart a reader sees the number of the last entry, until the writer's next one.
Bounds: beyond RECORDS_MAX ledgers the oldest record is forgotten; beyond WAITS_MAX waits a further one ends at once.
"""

import asyncio
from collections import OrderedDict
from typing import NamedTuple

RECORDS_MAX = 10_000
WAITS_MAX = 10_000


class LacRecord(NamedTuple):
    """Explicit last-add-confirmed record as the writer sent it, digest included."""

    last_add_confirmed: int
    record: bytes


NO_RECORD = LacRecord(-1, b"")


class Confirmations:
    """Confirmations of all ledgers of a bookie. Belongs to one event loop."""

    def __init__(self) -> None:
        self._records: OrderedDict[int, LacRecord] = OrderedDict()
        self._waiting: dict[int, dict[asyncio.Future[None], int]] = {}
        self._wait_count = 0

    def record(self, ledger_id: int) -> LacRecord:
        return self._records.get(ledger_id, NO_RECORD)

    def remember(self, ledger_id: int, record: LacRecord) -> None:
        """Unless a later one is known: what was confirmed stays so."""
        if record.last_add_confirmed >= self.record(ledger_id).last_add_confirmed:
            self._records[ledger_id] = record
            self._records.move_to_end(ledger_id)
            if len(self._records) > RECORDS_MAX:
                self._records.popitem(last=False)
        self.advanced(ledger_id, record.last_add_confirmed)

    @property
    def are_waited_for(self) -> bool:
        """Whether a reader waits for any ledger."""
        return bool(self._waiting)

    def is_waited_for(self, ledger_id: int) -> bool:
        return ledger_id in self._waiting

    def advanced(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Wake the readers that wait for it."""
        for future, beyond in list(self._waiting.get(ledger_id, {}).items()):
            if last_add_confirmed > beyond and not future.done():
                future.set_result(None)

    async def wait(self, ledger_id: int, beyond: int, timeout_seconds: float) -> None:
        """Until the ledger's last add confirmed is greater than `beyond`, or the time is over."""
        if self._wait_count >= WAITS_MAX:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ledger_id, {})[future] = beyond
        self._wait_count += 1
        try:
            await asyncio.wait([future], timeout=timeout_seconds)
        finally:
            self._wait_count -= 1
            waiting = self._waiting[ledger_id]
            del waiting[future]
            if not waiting:
                del self._waiting[ledger_id]
