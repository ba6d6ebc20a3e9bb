"""Plain acknowledgements: of the entry right after mark-delete, by the consumer that has it.

Steps of rows (`rows`), as in `turns`: what `TopicConsumer.acknowledge_entry` does, from the cursor to the dispatcher, else
nothing has changed and that is to be called: tests/broker/dispatchers/test_kernel_newest.py drives both.
"""

from array import array
from typing import Any

import cython

from wire.kernels.delivery_rows import (
    SHARED,
    SINGLE_ACTIVE,
    AcknowledgementsRow,
    ConsumerHandleRow,
    ConsumerRow,
    CursorRow,
    DeliveriesRow,
    DriverRow,
    EntrySetRow,
    HolesRow,
    MachineRow,
    ReaderRow,
    ReceiverRow,
    ReceiversRow,
    SubscriptionRow,
)
from wire.kernels.rows import SequenceRow, SpanRow
from wire.run import AckMix

if not cython.compiled:
    from wire.kernels.newest import _is_clear, _position
    from wire.kernels.octets import words_of

_shared = SHARED
_single_active = SINGLE_ACTIVE


def acknowledge_each(handles: dict[int, Any], mix: AckMix, place: int, now: float, now_ms: int) -> int:
    """Acknowledge from `place` on, each one entry of one consumer, as `TopicConsumer.acknowledge_entry`; where it stopped."""
    consumer_ids = words_of(mix.consumer_ids)
    ledger_ids = words_of(mix.ledger_ids)
    entry_ids = words_of(mix.entry_ids)
    total = len(mix.consumer_ids)
    while place < total:
        found = handles.get(consumer_ids[place])
        if not isinstance(found, ConsumerHandleRow):
            return place
        handle: ConsumerHandleRow = found
        if not isinstance(handle.consumer, ConsumerRow):
            return place
        if not _acknowledge(handle.consumer, ledger_ids[place], entry_ids[place], now, now_ms):
            return place
        place += 1
    return place


def acknowledge_run(consumer: Any, ledger_ids: "array[int]", entry_ids: "array[int]", now: float, now_ms: int) -> int:
    """Acknowledge entries of one consumer, one after the other, as far as they are plain; how many."""
    if not isinstance(consumer, ConsumerRow):
        return 0
    ledgers = words_of(ledger_ids)
    entries = words_of(entry_ids)
    for place in range(len(ledger_ids)):
        if not _acknowledge(consumer, ledgers[place], entries[place], now, now_ms):
            return place
    return len(ledger_ids)


def _is_next(acknowledged: AcknowledgementsRow, ledger_id: int, entry_id: int) -> bool:
    """The entry right after mark-delete, in the open ledger, and nothing is acknowledged beyond it."""
    mark = acknowledged._mark_delete
    mark_ledger = mark[0]
    mark_entry = mark[1]
    if ledger_id != mark_ledger or entry_id != mark_entry + 1:
        return False
    holes: HolesRow = acknowledged._holes
    if holes.count or holes.pages is not None or acknowledged._batches._unacknowledged:
        return False
    ledgers: SequenceRow = acknowledged._ledgers
    if ledgers._last is None:
        return False
    last: SpanRow = ledgers._last
    return last.ledger_id == ledger_id and last.is_open and entry_id < last.entries


def _acknowledge(consumer: ConsumerRow, ledger_id: int, entry_id: int, now: float, now_ms: int) -> bool:
    """False: nothing has changed."""
    if consumer.is_closed or not isinstance(consumer._subscription, SubscriptionRow):
        return False
    subscription: SubscriptionRow = consumer._subscription
    if subscription.is_fenced or not isinstance(subscription.cursor, CursorRow):
        return False
    if not isinstance(subscription._driver, DriverRow):
        return False
    cursor: CursorRow = subscription.cursor
    acknowledged: AcknowledgementsRow = cursor.acknowledgements
    if cursor._planned is None or not _is_next(acknowledged, ledger_id, entry_id):
        return False
    driver: DriverRow = subscription._driver
    if driver._is_handling or driver._is_closed or driver.on_unacked is not None:
        return False
    if not _forget(driver.dispatcher, consumer, ledger_id, entry_id):
        return False
    mark = _position(ledger_id, entry_id)
    acknowledged._mark_delete = mark
    acknowledged.version += 1
    counters: DeliveriesRow = consumer.counters
    counters.acknowledged += counters.messages // counters.entries if counters.entries else counters.messages
    consumer.last_acknowledgement_ms = now_ms
    subscription._last_mark_delete = mark
    subscription.mark_delete_advanced_ms = now_ms
    subscription.last_active_s = now
    return True


def _forget(machine: MachineRow, consumer: ConsumerRow, ledger_id: int, entry_id: int) -> bool:
    """`entry_acknowledged` of the dispatcher; False: it has to be asked."""
    reader: ReaderRow = machine._reader
    if reader.retry_at_ms is not None or not (reader.is_at_end or reader._outstanding is not None):
        return False
    if machine.deals == _single_active:
        return machine._switch_at_ms is None
    if machine.deals != _shared or not _is_clear(machine) or machine._redeliveries._by_ledger:
        return False
    receivers: ReceiversRow = machine._receivers
    found = receivers._by_id.get(consumer.key)
    if found is None:
        return False
    receiver: ReceiverRow = found
    pending: EntrySetRow = receiver.pending
    known = pending._by_ledger.get(ledger_id)
    if known is None or entry_id not in known:
        return False
    known.remove(entry_id)
    if not known:
        del pending._by_ledger[ledger_id]
        pending._spare = known
    messages = 1
    if receivers._message_counts:
        counts = receivers._message_counts.get(ledger_id)
        if counts is not None:
            messages = counts.pop(entry_id, 1)
            if not counts:
                del receivers._message_counts[ledger_id]
    receiver.unacked_messages -= messages
    receivers.unacked_messages -= messages
    receiver.is_blocked = receiver.is_blocked and receiver.unacked_messages > receivers._limit // 2
    receivers.is_blocked = receivers.is_blocked and receivers.unacked_messages > receivers._limit_together // 2
    return True
