"""Turns: the plain steps of what one read or one answer brought, over all topics, without a Python statement for each message.

Each function takes a list, steps the rows of what is plain (`rows`), and stops before the first that is not: nothing of that
one has changed, and the classes that own the rows take it, one call after the other. What is plain here goes the same way
there: seeds drive both (tests/simulation/standalone/test_turns.py). Nothing that a function calls comes back to it.
"""

from array import array
from collections import deque
from typing import Any

import cython

from wire.kernels.rows import (
    OUTSTANDING_BYTES_MAX,
    OUTSTANDING_ENTRIES_MAX,
    AddsRow,
    AppenderRow,
    CountersRow,
    HandleRow,
    ListenersRow,
    MetersRow,
    PartRow,
    ProducerRow,
    PublishersRow,
    ReceiptsRow,
    SequenceRow,
    SpanRow,
    WriterRow,
)
from wire.run import FLAG_CHUNK, EntryRun, SendMix

if not cython.compiled:
    from wire.kernels.octets import (
        bytes_of,
        copy_octets,
        counts_of,
        doubles_of,
        finished,
        length_of,
        new_octets,
        octets_of,
        words_of,
        writable,
    )

_chunk_flag = FLAG_CHUNK
_COUNT = array("I", [0])
_outstanding_entries_max = OUTSTANDING_ENTRIES_MAX
_outstanding_bytes_max = OUTSTANDING_BYTES_MAX


def _is_full(log: AppenderRow, writer: WriterRow, now: float) -> bool:
    """`RolloverLimits.is_full` of the open ledger."""
    if writer._next_entry_id <= 0:
        return False
    age_s = now - log._opened_at
    if log._age_s_max >= 0 and age_s >= log._age_s_max:
        return True
    return (writer._next_entry_id >= log._entries_max or writer._length >= log._size_bytes_max) and age_s >= log._age_s_min


def _publisher(handles: dict[int, Any], producer_id: int, header_bytes: int) -> ProducerRow | None:
    """The producer, if it publishes and nothing of its own keeps it from publishing parts."""
    found = handles.get(producer_id)
    if not isinstance(found, HandleRow):
        return None
    handle: HandleRow = found
    if handle._refused or handle.header_bytes != header_bytes or not isinstance(handle.producer, ProducerRow):
        return None
    producer: ProducerRow = handle.producer
    if producer._unanswered or producer.is_held or producer._is_broken or producer.is_closed or not producer.is_ready:
        return None
    if producer.is_encryption_required or producer.message_size_max or producer.delay_ms_max:
        return None
    return producer


def _log_of(producer: ProducerRow, now: float) -> AppenderRow | None:
    """Log to which the producer's parts are appended, if only the log is concerned and it takes them."""
    if not isinstance(producer._host, PublishersRow):
        return None
    topic: PublishersRow = producer._host
    if topic._throttles or topic.deduplication.is_active or topic._transactions.is_appending_later:
        return None
    if not isinstance(topic._appends, AppenderRow):
        return None
    log: AppenderRow = topic._appends
    if log._waiting or log._refusal is not None or log._is_broken or log._is_ending or log._is_idle:
        return None
    if not isinstance(log._writer, WriterRow) or _is_full(log, log._writer, now):
        return None
    return log


def _adds_of(writer: WriterRow, header_bytes: int, entries: int, size: int) -> AddsRow | None:
    """Adds that count the writer's parts, if there is room for one of that size."""
    if not writer._takes_parts or writer._closing is not None or writer._header_bytes != header_bytes:
        return None
    if writer._explicit_lac is not None:
        return None
    adds: AddsRow = writer._adds
    if adds.route is None or not adds._counts or (adds._quorum_timeout > 0 and adds._late_timer is None):
        return None
    if adds._outstanding_entries and (
        adds._outstanding_entries + entries > _outstanding_entries_max
        or adds._outstanding_bytes + size > _outstanding_bytes_max
    ):
        return None
    return adds


def take_parts(
    handles: dict[int, Any], sends: SendMix, place: int, now: float, now_ms: int, bytes_max: int, make: Any, parts: list[Any]
) -> int:
    """Publish the parts of `sends` from `place` on, as `ProducerHandle.take_part` does each; where it stopped.

    `make` makes a part without fields. Parts of more than `bytes_max` are left. Which were taken is appended to `parts`.
    """
    producer_ids = words_of(sends.producer_ids)
    starts = counts_of(sends.starts)
    offsets = counts_of(sends.offsets)
    message_counts = counts_of(sends.message_counts)
    flags = bytes_of(sends.flags)
    header_bytes = sends.header_bytes
    total = len(sends.producer_ids)
    while place < total:
        start = starts[place]
        count = starts[place + 1] - start
        size = offsets[start + count] - offsets[start]
        payload = size - count * header_bytes
        producer = _publisher(handles, producer_ids[place], header_bytes)
        if producer is None or payload > bytes_max:
            return place
        log = _log_of(producer, now)
        if log is None:
            return place
        writer: WriterRow = log._writer
        adds = _adds_of(writer, header_bytes, count, size)
        if adds is None:
            return place
        part: PartRow = make()
        part.mix = sends
        part.sends = sends
        part.place = place
        part.start = start
        part.count = count
        part.size_bytes = size
        part.source = producer
        part.began = now
        _append(part, log, writer, adds, payload)
        handle: HandleRow = handles[producer_ids[place]]
        handle._published += count
        producer._parts += 1
        chunks = count if flags[place] & _chunk_flag else 0
        topic: PublishersRow = producer._host
        _count(producer.counters, message_counts[place], payload, chunks)
        _count(topic.counters, message_counts[place], payload, chunks)
        topic.last_publish_ms = now_ms
        parts.append(part)
        place += 1
    return place


def _append(part: PartRow, log: AppenderRow, writer: WriterRow, adds: AddsRow, payload: int) -> None:
    """Give a part its ids: `Appender.take_part`, `BookieLedgerWriter.take_part` and `CountedAdds.take_part`."""
    part.owner = log
    part.error = None
    part.is_done = False
    part.adds = adds
    part.acked = 0
    part.piece = -1
    part.ledger_id = writer.ledger_id
    part.first_entry_id = writer._next_entry_id
    part.last_entry_id = writer._next_entry_id + part.count - 1
    part.last_add_confirmed = adds.last_confirmed
    part.length_before = writer._length
    adds._outstanding_entries += part.count
    adds._outstanding_bytes += part.size_bytes
    if adds._pending is None:
        adds._pending = deque((part,))
    else:
        adds._pending.append(part)
    writer._length += payload
    writer._next_entry_id += part.count
    if log._sent is None:
        log._sent = deque((part,))
    else:
        log._sent.append(part)


def _count(counters: CountersRow, messages: int, payload: int, chunks: int) -> None:
    counters.messages += messages
    counters.payload_bytes += payload
    counters.chunks += chunks


def size_of_parts(parts: list[Any]) -> tuple[int, int]:
    """Their messages and the bytes that clients sent."""
    count = 0
    size = 0
    for each in parts:
        part: PartRow = each
        count += part.count
        size += part.size_bytes - part.count * part.mix.header_bytes
    return count, size


def store_parts(parts: list[Any], place: int, seat: int, now: float, due: list[Any]) -> int:
    """A bookie in that seat has the parts from `place` on: what `CountedAdds.part_stored` does for each, up to the receipts.

    Where it stopped. Who has something to do at the end of the turn is appended to `due`.
    """
    total = len(parts)
    while place < total:
        part: PartRow = parts[place]
        if not isinstance(part.adds, AddsRow):
            return place
        adds: AddsRow = part.adds
        if not adds._counts:
            return place
        pending = adds._pending
        acked = part.acked | (1 << seat)
        if pending is None or pending[0] is not part or _bits(acked) < adds._ack_quorum:
            part.acked = acked
            place += 1
            continue
        if not _is_plain(part, adds, now):
            return place
        part.acked = acked
        adds._pending = _without_first(pending)
        adds.last_confirmed = part.last_entry_id
        adds._outstanding_entries -= part.count
        adds._outstanding_bytes -= part.size_bytes
        _stored(part, now, due)
        place += 1
    return place


def _without_first(queue: "deque[Any]") -> "deque[Any] | None":
    """`ports.loop.queue_on_demand.without_first`."""
    queue.popleft()
    return queue if len(queue) else None


def _bits(acked: int) -> int:
    count = 0
    while acked:
        count += 1
        acked &= acked - 1
    return count


def _is_plain(part: PartRow, adds: AddsRow, now: float) -> bool:
    """Nothing follows from the end of this part but its receipt, and that listeners are told."""
    pending = adds._pending
    assert pending is not None
    if len(pending) > 1:
        following: PartRow = pending[1]
        if _bits(following.acked) >= adds._ack_quorum:
            return False
    elif adds._when_drained:
        return False
    if not isinstance(part.owner, AppenderRow) or not isinstance(part.source, ProducerRow):
        return False
    log: AppenderRow = part.owner
    if log._failure is not None or log._is_broken or log._listeners is None or log._sent is None or log._sent[0] is not part:
        return False
    meters: MetersRow = log._meters
    if not meters.entries:
        return False
    if len(log._sent) == 1:
        writer: WriterRow = log._writer
        if log._heard is not None or log._is_ending or log._is_idle or writer is None or _is_full(log, writer, now):
            return False
    producer: ProducerRow = part.source
    if producer._is_broken or not isinstance(producer._sink, HandleRow):
        return False
    return not (producer._parts == 1 and (producer._parts_answered is not None or producer._unanswered))


def _stored(part: PartRow, now: float, due: list[Any]) -> None:
    """`Appender.part_answered` of a part that is stored."""
    payload = part.size_bytes - part.count * part.mix.header_bytes
    part.is_done = True
    log: AppenderRow = part.owner
    assert log._sent is not None
    log._sent = _without_first(log._sent)
    log._fruitless = 0
    _confirm(log._sequence, part.count, payload)
    _measure(log._meters, now - part.began, part.count, payload)
    listeners: ListenersRow = log._listeners
    if listeners._is_due:
        listeners._more.append(part)
    else:
        listeners._is_due = True
        listeners._new = part
        due.append(listeners)
    producer: ProducerRow = part.source
    producer._parts -= 1
    handle: HandleRow = producer._sink
    receipts: ReceiptsRow = handle._receipts
    if not receipts.parts:
        due.append(receipts)
    receipts.parts.append(part)
    receipts._owners.append(handle)


def _confirm(sequence: SequenceRow, entries: int, size: int) -> None:
    """`LedgerSequence.confirm`."""
    last: SpanRow = sequence._last
    last.entries += entries
    last.size_bytes += size
    sequence.size_bytes += size
    sequence._end_index += entries
    sequence._confirmed_ledger = last.ledger_id
    sequence._confirmed_entry = last.entries - 1


def _measure(meters: MetersRow, seconds: float, entries: int, size: int) -> None:
    """`LedgerMeters.stored`, but for the first time."""
    meters.entries += entries
    meters.payload_bytes += size
    meters.append_seconds += seconds * entries
    bounds = meters._latency_bounds
    words_of(meters.append_latencies)[_place_among(doubles_of(bounds), len(bounds), seconds * 1000)] += entries
    bounds = meters._size_bounds
    words_of(meters.entry_sizes)[_place_among(doubles_of(bounds), len(bounds), size / entries)] += entries
    meters._appends.record(seconds, entries)


def _place_among(bounds: "array[float]", count: int, value: float) -> int:
    """`bisect_left`."""
    place = 0
    while place < count and bounds[place] < value:
        place += 1
    return place


def joined_run(parts: list[Any]) -> EntryRun:
    """A copy of stored parts that follow one another in a ledger, as one run."""
    total = 0
    size = 0
    for each in parts:
        part: PartRow = each
        if counts_of(part.mix.offsets)[part.start + part.count] > length_of(part.mix.buffer):
            raise ValueError(f"entries {part.start}+{part.count} do not fit the buffer")
        total += part.count
        size += part.size_bytes
    ends = _COUNT * (total + 1)
    places = counts_of(ends)
    entries = new_octets(size)
    room = writable(entries)
    place = 0
    index = 0
    for each in parts:
        part = each
        offsets = counts_of(part.mix.offsets)
        copy_octets(room, place, octets_of(part.mix.buffer), offsets[part.start], offsets[part.start + part.count])
        for entry in range(part.start, part.start + part.count):
            place += offsets[entry + 1] - offsets[entry]
            index += 1
            places[index] = place
    part = parts[0]
    return EntryRun(part.ledger_id, part.first_entry_id, finished(entries), ends, part.mix.header_bytes)
