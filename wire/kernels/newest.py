"""Newest: an entry that was just stored goes to the consumers whose turn it is.

Steps of rows (`rows`), as in `turns`: where the case is plain, exactly what the dispatchers decide for the same entries
(`Subscriptions.take_newest`), else nothing has changed and they are asked:
tests/broker/dispatchers/test_kernel_newest.py drives both.
"""

from array import array
from typing import Any

import cython
from pyroaring import BitMap

from wire.kernels.delivery_rows import (
    SHARED,
    SINGLE_ACTIVE,
    AcknowledgementsRow,
    CandidateRow,
    ConsumerHandleRow,
    ConsumerRow,
    CursorRow,
    DeliveriesRow,
    DriverRow,
    EntrySetRow,
    HolesRow,
    LevelRow,
    MachineRow,
    ReaderRow,
    ReceiverRow,
    ReceiversRow,
    SubscriptionRow,
    SubscriptionsRow,
)
from wire.kernels.rows import PartRow
from wire.position import Position
from wire.run import FLAG_CHUNK, FLAG_DELAYED, FLAG_MARKER, FLAG_TRANSACTION

if not cython.compiled:
    from wire.kernels.metadata import _read_metadata
    from wire.kernels.octets import counts_of, length_of, octets_of, words_of

_looked_at_singly = FLAG_CHUNK | FLAG_DELAYED | FLAG_MARKER | FLAG_TRANSACTION
_shared = SHARED
_single_active = SINGLE_ACTIVE
_WORD = array("Q", [0])
_FIELDS = 19
"""Number of places that `metadata` fills."""

_new: Any = tuple.__new__


def _position(ledger_id: int, entry_id: int) -> Position:
    """Position, at half the price of a call of `Position`."""
    made: Position = _new(Position, (ledger_id, entry_id))
    return made


def _messages_of(part: PartRow, counts: Any) -> int:
    """Number of messages in a part's entries; each entry's is appended to `counts` unless that is None. An entry that cannot be
    read is one message. 0: one of the entries is looked at singly."""
    mix = part.mix
    offsets = counts_of(mix.offsets)
    if offsets[part.start + part.count] > length_of(mix.buffer):
        return 0
    data = octets_of(mix.buffer)
    parsed = _WORD * _FIELDS
    fields = words_of(parsed)
    header_bytes = mix.header_bytes
    total = 0
    for index in range(part.start, part.start + part.count):
        messages = 1
        if _read_metadata(data, offsets[index] + header_bytes, offsets[index + 1], fields):
            if fields[14] & _looked_at_singly:
                return 0
            messages = fields[15]
        total += messages
        if counts is not None:
            counts.append(messages)
    return total


def _room(receivers: ReceiversRow, receiver: ReceiverRow) -> int:
    """`Receivers.room`."""
    if receivers.is_blocked or receiver.is_blocked or not receiver.is_writable:
        return 0
    room = receiver.permits
    if receivers._limit - receiver.unacked_messages < room:
        room = receivers._limit - receiver.unacked_messages
    if receivers._limit_together - receivers.unacked_messages < room:
        room = receivers._limit_together - receivers.unacked_messages
    return room if room > 0 else 0


def _in_turn(machine: MachineRow, has_turn: bool) -> ReceiverRow | None:
    """`Turns.take`: whose turn it is. `has_turn`: it has it now."""
    receivers: ReceiversRow = machine._receivers
    for each in machine._turns._levels:
        level: LevelRow = each
        members = level.members
        count = len(members)
        for step in range(count):
            place = (level.next + step) % count
            receiver: ReceiverRow = members[place]
            if _room(receivers, receiver):
                if has_turn:
                    level.next = (place + 1) % count
                return receiver
    return None


def _receiver_of(machine: MachineRow, entries: int, messages: int, has_turn: bool) -> ReceiverRow | None:
    """`SharedDispatcher._receiver_of_all`."""
    if entries == 1:
        return _in_turn(machine, has_turn)
    receivers: ReceiversRow = machine._receivers
    if len(receivers._by_id) != 1:
        return None
    for each in receivers._by_id.values():
        receiver: ReceiverRow = each
        return receiver if messages <= _room(receivers, receiver) else None
    return None


def _is_clear(machine: MachineRow) -> bool:
    """A Shared dispatcher holds nothing that would come before the newest entries."""
    replay: EntrySetRow = machine._replay
    if replay._by_ledger or machine._chunked._uuids or machine._held_back.delays._count:
        return False
    return not machine._is_loading and machine._picked_to is None


def _is_untouched(acknowledged: AcknowledgementsRow, ledger_id: int, first: int, last: int) -> bool:
    """`Acknowledgements.is_untouched`."""
    mark = acknowledged._mark_delete
    mark_ledger = mark[0]
    mark_entry = mark[1]
    if ledger_id < mark_ledger or (ledger_id == mark_ledger and first <= mark_entry):
        return False
    holes: HolesRow = acknowledged._holes
    if holes.pages is not None or acknowledged._batches._unacknowledged:
        return False
    return not holes.count or not acknowledged._holes.may_have(ledger_id, first, last)


def _is_before(reader: ReaderRow, ledger_id: int, first: int) -> bool:
    """`Reader.is_before`."""
    if not reader.is_at_end or reader._outstanding is not None or reader.retry_at_ms is not None or reader.position is None:
        return False
    place = reader.position
    place_ledger = place[0]
    place_entry = place[1]
    return bool(place_entry == first and place_ledger == ledger_id)


def _reads_itself(driver: DriverRow) -> bool:
    """Something is under way or waits, or there are rates."""
    if driver._events or driver._is_handling or driver._is_closed or driver._reading is not None:
        return True
    return (
        driver._held is not None
        or driver._throttle is not None
        or driver.compacted is not None
        or driver.on_unacked is not None
    )


def _takes(subscription: SubscriptionRow, part: PartRow, messages: int) -> bool:
    """Whether the part can be given to a consumer of it at once; without one there is nothing to give."""
    if not subscription._consumers or subscription._driver is None:
        return True
    if not isinstance(subscription._driver, DriverRow):
        return False
    driver: DriverRow = subscription._driver
    if _reads_itself(driver) or driver._cursor._pending._open or not isinstance(driver._cursor._cursor, CursorRow):
        return False
    cursor: CursorRow = driver._cursor._cursor
    machine: MachineRow = driver.dispatcher
    if not _is_untouched(cursor.acknowledgements, part.ledger_id, part.first_entry_id, part.last_entry_id):
        return False
    if not _is_before(machine._reader, part.ledger_id, part.first_entry_id):
        return False
    consumer = _consumer_of(machine, part.count, messages)
    return consumer is not None and _is_reachable(driver.targets.get(consumer))


def _consumer_of(machine: MachineRow, entries: int, messages: int) -> Any:
    """Consumer that gets them, by the dispatcher; None: nobody does, or the dispatcher has to be asked."""
    if machine.deals == _shared:
        receiver = _receiver_of(machine, entries, messages, False) if _is_clear(machine) else None
        return None if receiver is None else receiver.consumer
    if machine.deals != _single_active or machine._active is None or machine._successor is not None:
        return None
    active: CandidateRow = machine._active
    return active.consumer if active.is_writable and active.slots is None and active.permits >= messages else None


def _is_reachable(target: Any) -> bool:
    """A consumer whose connection takes frames."""
    if not isinstance(target, ConsumerRow):
        return False
    consumer: ConsumerRow = target
    if not consumer._was_writable or not isinstance(consumer._sink, ConsumerHandleRow):
        return False
    handle: ConsumerHandleRow = consumer._sink
    return handle._is_plain


def hand_out(topic: SubscriptionsRow, new: Any, now_ms: int, deliveries: dict[Any, list[Any]]) -> int:
    """Give a part, the one new one of its log, to all subscriptions; to how many, or -1: nothing has changed.

    What is to be sent is appended to `deliveries`, by connection: consumer (as that knows it), part, epoch, consumer.
    """
    if not isinstance(new, PartRow) or topic._transactions.buffer._open:
        return -1
    part: PartRow = new
    messages = _messages_of(part, None)
    if not messages:
        return -1
    for each in topic._by_name.values():
        if not _takes(each, part, messages):
            return -1
    taken = 0
    for each in topic._by_name.values():
        _give(each, part, messages, now_ms, deliveries)
        taken += 1
    return taken


def _give(subscription: SubscriptionRow, part: PartRow, messages: int, now_ms: int, deliveries: dict[Any, list[Any]]) -> None:
    """Give the entries that `_takes` allows."""
    if not subscription._consumers or subscription._driver is None:
        return
    driver: DriverRow = subscription._driver
    machine: MachineRow = driver.dispatcher
    epoch = None
    if machine.deals == _shared:
        machine._reads_far = False
        receiver = _receiver_of(machine, part.count, messages, True)
        assert receiver is not None, "`_takes` found one"
        target = receiver.consumer
        _deliver(machine._receivers, receiver, part, messages)
    else:
        active: CandidateRow = machine._active
        target = active.consumer
        epoch = active.consumer_epoch
        active.permits -= messages
        machine._last_delivered = _position(part.ledger_id, part.last_entry_id)
    reader: ReaderRow = machine._reader
    reader._backoff_ms = 0
    per_entry = reader._messages_per_entry + (messages / part.count - reader._messages_per_entry) / 4
    reader._messages_per_entry = per_entry if per_entry > 1.0 else 1.0
    reader.position = _position(part.ledger_id, part.first_entry_id + part.count)
    consumer: ConsumerRow = driver.targets[target]
    counters: DeliveriesRow = consumer.counters
    counters.messages += messages
    counters.entries += part.count
    counters.payload_bytes += part.size_bytes - part.count * part.mix.header_bytes
    consumer.last_delivery_ms = now_ms
    handle: ConsumerHandleRow = consumer._sink
    waiting = deliveries.get(handle._link)
    if waiting is None:
        waiting = []
        deliveries[handle._link] = waiting
    waiting.append((handle, part, epoch, consumer))


def _deliver(receivers: ReceiversRow, receiver: ReceiverRow, part: PartRow, messages: int) -> None:
    """`Receivers.delivered_run`."""
    if part.count == 1:
        pending: EntrySetRow = receiver.pending
        known = pending._by_ledger.get(part.ledger_id)
        if known is not None:
            known.add(part.first_entry_id)
        elif len(pending._by_ledger) < 16:
            bitmap = pending._spare
            pending._spare = None
            if bitmap is None:
                bitmap = BitMap()
            bitmap.add(part.first_entry_id)
            pending._by_ledger[part.ledger_id] = bitmap
        else:
            receiver.pending.add_range(part.ledger_id, part.first_entry_id, part.last_entry_id + 1)
    else:
        receiver.pending.add_range(part.ledger_id, part.first_entry_id, part.last_entry_id + 1)
    receiver.permits -= messages
    receiver.unacked_messages += messages
    receivers.unacked_messages += messages
    if messages != part.count:
        costs: list[int] = []
        _messages_of(part, costs)
        counts = receivers._message_counts.setdefault(part.ledger_id, {})
        entry_id = part.first_entry_id
        for cost in costs:
            counts[entry_id] = cost
            entry_id += 1
    receiver.is_blocked = receiver.is_blocked or receiver.unacked_messages >= receivers._limit
    receivers.is_blocked = receivers.is_blocked or receivers.unacked_messages >= receivers._limit_together
