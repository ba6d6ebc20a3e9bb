"""Acknowledgements of one subscription: from clients' commands to the cursor, and from its changes to the dispatcher.

Runs are acknowledged in bulk: one bitmap per ledger, no Python statement per message. Ids that cannot be acknowledged (an entry
that does not exist yet, an id out of range) are refused, with one log line for the whole command, and the rest goes through. A
command costs time linear in its ids, in any number of ledgers: test_acknowledging_costs.py.
"""

import logging
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress

from pyroaring import BitMap

from broker.dispatchers.contract import BatchIndexesAcknowledged, ConsumerId, EntriesAcknowledged, Event, MarkDeleteMoved
from managed_ledger.contract import InvalidCursorPosition, ManagedCursor, ManagedLedger
from wire.kernels.sends import MESSAGES_PER_ENTRY_MAX
from wire.position import Position
from wire.run import AckRun

from .contract import Acknowledgement

_log = logging.getLogger(__name__)

REPLICATED_SUBSCRIPTION_PROPERTY = "pulsar.replicated.subscription"

_ENTRY_ID_MAX = (1 << 32) - 1
_PICKED_LEDGERS_MAX = 8
"""Entries of up to so many ledgers are picked in a pass for each, which is faster than a Python statement for each entry."""
ACK_SET_WORDS_MAX = MESSAGES_PER_ENTRY_MAX // 64


class Acknowledging:
    """Acknowledges on a cursor; `moved` is called after each command that changed something."""

    def __init__(
        self,
        ledger: ManagedLedger,
        cursor: ManagedCursor,
        label: str,
        handle: Callable[[Event], None],
        moved: Callable[[], None],
        *,
        batch_indexes: bool,
    ) -> None:
        self._ledger = ledger
        self._cursor = cursor
        self._label = label
        self._handle = handle
        self._moved = moved
        self._batch_indexes = batch_indexes
        self._refused: list[str] = []
        """Why, of the command under way: one reason for each ledger or part of a batch."""

    def run(self, consumer: ConsumerId, run: AckRun) -> int:
        """Individual acknowledgements of whole entries; the number of entries that were not acknowledged before."""
        count = sum(self._entries(consumer, ledger, entries) for ledger, entries in by_ledger(run.ledger_ids, run.entry_ids))
        self._finish()
        return count

    def command(self, consumer: ConsumerId | None, acknowledgement: Acknowledgement) -> int:
        """Any other acknowledgement; the number of entries that were not wholly acknowledged before."""
        if acknowledgement.is_cumulative:
            count = self._cumulative(acknowledgement)
        else:
            count = self._individual(consumer, acknowledgement)
        self._finish()
        return count

    def _finish(self) -> None:
        """Logs the refused ids of the command, and notifies waiters for the cursor's place."""
        refused, self._refused = self._refused, []
        if refused:
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            _log.warning("%s: acknowledgement refused: %s%s", self._label, refused[0], more)
        self._moved()

    def _individual(self, consumer: ConsumerId | None, command: Acknowledgement) -> int:
        whole: dict[int, array[int]] = {}
        count = 0
        for position, ack_set, batch_size in zip(command.positions, command.ack_sets, command.batch_sizes, strict=True):
            if any(ack_set):
                count += self._batch(consumer, position, ack_set, batch_size)
            else:
                whole.setdefault(position.ledger_id, array("Q")).append(position.entry_id & 0xFFFF_FFFF_FFFF_FFFF)
        return count + sum(self._entries(consumer, ledger_id, entries) for ledger_id, entries in whole.items())

    def _entries(self, consumer: ConsumerId | None, ledger_id: int, entries: "array[int]") -> int:
        if not 0 <= ledger_id <= self._ledger.last_confirmed.ledger_id:
            self._refused.append(f"there is no ledger {ledger_id} yet")
            return 0
        entry_ids = self._bitmap(ledger_id, entries)
        if not entry_ids:
            return 0
        try:
            acknowledged = self._cursor.acknowledge_entries(ledger_id, entry_ids)
        except InvalidCursorPosition as error:
            acknowledged = self._existing(ledger_id, entry_ids, error)
        if acknowledged:
            self._handle(EntriesAcknowledged(ledger_id, acknowledged, consumer))
        return len(acknowledged)

    def _bitmap(self, ledger_id: int, entries: "array[int]") -> BitMap:
        try:
            return BitMap(array("I", entries))
        except OverflowError:
            self._refused.append(f"entry {ledger_id}:{max(entries)} cannot be")
            return BitMap(array("I", [entry for entry in entries if entry <= _ENTRY_ID_MAX]))

    def _existing(self, ledger_id: int, entry_ids: BitMap, error: InvalidCursorPosition) -> BitMap:
        """Some do not exist yet: acknowledge those that do, so that a client's one wrong id costs it nothing else."""
        self._refused.append(str(error))
        last = self._ledger.last_confirmed
        existing = entry_ids.copy() if ledger_id == last.ledger_id else BitMap()
        existing.remove_range(max(last.entry_id + 1, 0), _ENTRY_ID_MAX + 1)
        if not existing:
            return existing
        try:
            return self._cursor.acknowledge_entries(ledger_id, existing)
        except InvalidCursorPosition as still:
            self._refused.append(str(still))
            return BitMap()

    def _batch(self, consumer: ConsumerId | None, position: Position, ack_set: Sequence[int], batch_size: int) -> int:
        """Part of a batch. 1 when that made it whole."""
        if (reason := impossible(position, ack_set, batch_size)) is not None:
            self._refused.append(reason)
            return 0
        cursor = self._cursor
        if not self._batch_indexes or cursor.is_acknowledged(position):
            return 0
        size = batch_size if batch_size > 0 else 64 * len(ack_set)
        before = _unacknowledged(cursor.unacknowledged_batch_indexes(position), size)
        try:
            is_whole = cursor.acknowledge_batch_indexes(position, ack_set, size)
        except InvalidCursorPosition as error:
            self._refused.append(str(error))
            return 0
        if is_whole:
            self._handle(EntriesAcknowledged(position.ledger_id, BitMap([position.entry_id]), consumer))
            return 1
        count = before - _unacknowledged(cursor.unacknowledged_batch_indexes(position), size)
        if count:
            self._handle(BatchIndexesAcknowledged(position, count))
        return 0

    def _cumulative(self, command: Acknowledgement) -> int:
        if len(command.positions) != 1:
            self._refused.append(f"a cumulative acknowledgement of {len(command.positions)} positions")
            return 0
        position, ack_set, size = command.positions[0], command.ack_sets[0], command.batch_sizes[0]
        is_partial = any(ack_set)
        if is_partial and (reason := impossible(position, ack_set, size)) is not None:
            self._refused.append(reason)
            return 0
        if is_partial and not self._batch_indexes:
            position, is_partial = self._ledger.previous_position(position), False
        cursor, old, backlog = self._cursor, self._cursor.mark_delete, self._cursor.backlog_entries()
        size = size if size > 0 else 64 * len(ack_set)
        before = _unacknowledged(cursor.unacknowledged_batch_indexes(position), size) if is_partial else 0
        try:
            properties = _properties_of_mark(cursor.properties, command.properties)
            cursor.acknowledge_cumulative(position, ack_set if is_partial else (), size if is_partial else 0, properties)
        except InvalidCursorPosition as error:
            self._refused.append(str(error))
            return 0
        if cursor.mark_delete != old:
            self._handle(MarkDeleteMoved(cursor.mark_delete))
        if is_partial and not cursor.is_acknowledged(position):
            count = before - _unacknowledged(cursor.unacknowledged_batch_indexes(position), size)
            if count > 0:
                self._handle(BatchIndexesAcknowledged(position, count))
        return max(backlog - cursor.backlog_entries(), 0)


def by_ledger(ledger_ids: "array[int]", entry_ids: "array[int]") -> Iterator[tuple[int, "array[int]"]]:
    """The entries of each ledger, ascending; nearly always there is one ledger only."""
    if not ledger_ids:
        return
    first = ledger_ids[0]
    if ledger_ids.count(first) == len(ledger_ids):
        yield first, entry_ids
        return
    named = sorted(set(ledger_ids))
    if len(named) <= _PICKED_LEDGERS_MAX:
        for ledger_id in named:
            yield ledger_id, array("Q", compress(entry_ids, map(ledger_id.__eq__, ledger_ids)))
        return
    entries: dict[int, list[int]] = {ledger_id: [] for ledger_id in named}
    for ledger_id, entry_id in zip(ledger_ids, entry_ids, strict=True):
        entries[ledger_id].append(entry_id)
    for ledger_id, found in entries.items():
        yield ledger_id, array("Q", found)


def impossible(position: Position, ack_set: Sequence[int], batch_size: int) -> str | None:
    """Why there can be no such entry, nor a batch of that size: it is kept as so many bits. Apache makes room for any."""
    if not (0 <= position.entry_id <= _ENTRY_ID_MAX and position.ledger_id >= 0):
        return f"entry {position} cannot be"
    if batch_size > MESSAGES_PER_ENTRY_MAX or len(ack_set) > ACK_SET_WORDS_MAX:
        return f"a batch of {max(batch_size, 64 * len(ack_set))} messages cannot be; {MESSAGES_PER_ENTRY_MAX} is the most"
    return None


def is_replicated(properties: Mapping[str, int]) -> bool:
    """Whether a subscription is, by the properties of its mark (PersistentSubscription.isCursorFromReplicatedSubscription)."""
    return properties.get(REPLICATED_SUBSCRIPTION_PROPERTY) == 1


def _properties_of_mark(old: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """A client's, and the subscription's own, which stays (PersistentSubscription.mergeCursorProperties)."""
    own = {REPLICATED_SUBSCRIPTION_PROPERTY} & old.keys()
    return {**{name: old[name] for name in own}, **given}


def _unacknowledged(ack_set: Sequence[int] | None, batch_size: int) -> int:
    """Number of unacknowledged messages of a batch; None: all."""
    return batch_size if ack_set is None else sum((word & 0xFFFF_FFFF_FFFF_FFFF).bit_count() for word in ack_set)
