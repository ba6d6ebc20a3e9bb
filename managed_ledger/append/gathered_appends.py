"""GatheredAppends: entries that are appended one by one, and go to the log together when they come at the same time.

For logs whose writers each have one record. Each append costs a write to every bookie, whatever its size; the records of one
round of the event loop are therefore appended as one run, in the order of the calls. Callers bound the waiting records.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from ports.loop.promise import Promise, listen
from wire.position import Position
from wire.run import EntryRun, batch_of

from ..contract import ManagedLedger

_ENTRIES_MAX = 1000
"""Entries of one run at most."""


class GatheredAppends:
    """Gathered appends of one managed ledger."""

    def __init__(self, ledger: ManagedLedger) -> None:
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[bytes, Promise[Position]]] = []

    def append(self, payload: bytes) -> Promise[Position]:
        """Position of the entry, once it is durable. The errors of `ManagedLedger.append`."""
        promise: Promise[Position] = Promise(loop=self._loop)
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append((payload, promise))
        return promise

    def flush(self) -> None:
        """Append what waits, now."""
        while self._waiting:
            gathered = self._waiting[:_ENTRIES_MAX]
            del self._waiting[:_ENTRIES_MAX]
            promises = [promise for _, promise in gathered]
            stored = self._ledger.append(batch_of([payload for payload, _ in gathered], self._ledger.header_bytes))
            listen(stored, partial(_tell, promises))


def _tell(promises: Sequence[Promise[Position]], stored: "asyncio.Future[EntryRun]") -> None:
    """Notify the waiters; those that wait no more are passed over."""
    waiting = [(index, promise) for index, promise in enumerate(promises) if not promise.done()]
    if stored.cancelled():
        for _, promise in waiting:
            promise.cancel()
    elif (error := stored.exception()) is not None:
        for _, promise in waiting:
            promise.set_exception(error)
    else:
        run = stored.result()
        for index, promise in waiting:
            promise.set_result(Position(run.ledger_id, run.first_entry_id + index))
