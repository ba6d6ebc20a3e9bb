"""Changes of a subscription's cursor besides acknowledging: skip, expire, look ahead, count.

Each moves mark-delete forward as a cumulative acknowledgement does, so that the dispatcher is notified and consumers stay
connected (Apache: PersistentSubscription.skipMessages, clearBacklog, PersistentMessageExpiryMonitor). Going back is a reset,
which is `Subscription`'s own. Owns nothing.
"""

from collections.abc import Callable

from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedger, ManagedLedgerError
from wire.kernels.metadata import publish_times, scan
from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun

from ..errors import broker_error
from ..operations_contract import BacklogAnalysis
from ..subscription.subscription import Subscription
from .backlog import closed_before, entries_after, nth_in

_SCAN_ENTRIES = 100
_SCAN_BYTES = 1 << 20


class CursorOperations:
    """On the subscriptions of one topic. Counts are of entries. BrokerError when the log cannot be read."""

    def __init__(self, ledger: ManagedLedger) -> None:
        self._ledger = ledger

    def clear(self, subscription: Subscription) -> int:
        """Acknowledges all present entries; returns the number of newly acknowledged ones."""
        return subscription.acknowledge_through(self._ledger.last_confirmed)

    async def skip(self, subscription: Subscription, count: int) -> int:
        """The oldest `count` entries that are not acknowledged yet."""
        target = await self._nth(subscription, count)
        return 0 if target is None else subscription.acknowledge_through(target)

    async def expire(self, subscription: Subscription, older_than_ms: int) -> int:
        """Acknowledges messages published before that time, from the first on: an older message behind a younger one stays.

        A ledger that was closed before is skipped without reading it. The oldest entry is read first: mostly it is all there is
        to see.
        """
        cursor = subscription.cursor
        target = closed_before(self._ledger.ledgers(), cursor.mark_delete, older_than_ms)
        start = cursor.first_unacknowledged() if target is None else self._ledger.next_position(target)
        try:
            if await self.is_published_before(start, older_than_ms):
                found = await self._ledger.find_first(
                    lambda run: [not 0 <= time < older_than_ms for time in publish_times(run)]
                )
                target = self._ledger.last_confirmed if found is None else self._ledger.previous_position(found)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        return 0 if target is None else subscription.expire_through(target)

    async def is_published_before(self, position: Position, time_ms: int) -> bool:
        """Whether the entry at `position`, or the first one after it, was; not where it does not say."""
        run = await self._ledger.read(position, 1, 1)
        return run is not None and 0 <= publish_times(run)[0] < time_ms

    async def published_ms(self, position: Position) -> int | None:
        """Publish time of the entry at `position`, or the first one after it; None: there is none, or it gives no time."""
        try:
            run = await self._ledger.read(position, 1, 1)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        found_ms = -1 if run is None else publish_times(run)[0]
        return None if found_ms < 0 else found_ms

    def expire_through(self, subscription: Subscription, position: Position) -> int:
        """Expires entries up to and including the position; none when that is beyond the end. Returns their number."""
        return 0 if position > self._ledger.last_confirmed else subscription.expire_through(position)

    async def peek(self, subscription: Subscription, number: int) -> EntryRun | None:
        """The entry (a run of one) that is the `number`-th, from 1, of those not acknowledged; None: there are not so many."""
        if number > subscription.cursor.backlog_entries():
            return None
        target = await self._nth(subscription, number)
        return None if target is None else await self.read(target)

    async def read(self, position: Position) -> EntryRun | None:
        """Exactly the entry at that position; None when it is not there."""
        if position.entry_id < 0:
            return None
        try:
            run = await self._ledger.read(position, 1, 1)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        if run is None or Position(run.ledger_id, run.first_entry_id) != position:
            return None
        return run

    async def analyze(
        self, subscription: Subscription, start: Position | None, entries_max: int, is_late: Callable[[], bool]
    ) -> BacklogAnalysis:
        """Count the backlog from `start` on by reading it: at most `entries_max` entries, and nothing more once `is_late`."""
        cursor, ledger = subscription.cursor, self._ledger
        position, end = max(start or EARLIEST, cursor.first_unacknowledged()), ledger.last_confirmed
        found: list[Position] = []
        entries = messages = markers = 0
        while entries < entries_max and position <= end and not is_late():
            run = await self._read_some(position, entries_max - entries)
            if run is None:
                break
            await _load(cursor, run.ledger_id, run.first_entry_id, run.last_entry_id)
            metadata, acknowledged = scan(run), cursor.acknowledged_in(run.ledger_id)
            here = [index for index in range(run.count) if run.first_entry_id + index not in acknowledged]
            found = [*found[:1], *(Position(run.ledger_id, run.first_entry_id + index) for index in here)]
            entries += len(here)
            messages += sum(metadata.message_counts[index] for index in here)
            markers += sum(metadata.flags[index] & FLAG_MARKER != 0 for index in here)
            position = ledger.next_position(Position(run.ledger_id, run.last_entry_id))
        first, last = (found[0], found[-1]) if found else (None, None)
        return BacklogAnalysis(first, last, entries, messages, markers, position > end)

    async def _read_some(self, position: Position, entries_max: int) -> EntryRun | None:
        try:
            return await self._ledger.read(position, min(_SCAN_ENTRIES, entries_max), _SCAN_BYTES)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    async def _nth(self, subscription: Subscription, number: int) -> Position | None:
        """The `number`-th unacknowledged entry; with fewer the last. Ledger by ledger, as not all holes fit in memory."""
        cursor, found = subscription.cursor, None
        for ledger, first in entries_after(self._ledger.ledgers(), cursor.mark_delete):
            await _load(cursor, ledger.ledger_id, first, ledger.entries - 1)
            place, number = nth_in(ledger, first, cursor.acknowledged_in(ledger.ledger_id), number)
            found = place or found
            if number <= 0:
                break
        return found


async def _load(cursor: ManagedCursor, ledger_id: int, first: int, last: int) -> None:
    try:
        await cursor.load_acknowledged(ledger_id, first, last)
    except ManagedLedgerError as error:
        raise broker_error(error) from error
