# The types of the columns in C. Objects are `object` where they may be of more than one class.

cdef class Row:
    pass

cdef class PartRow(Row):
    cdef public object mix, owner, source, error, adds, sends
    cdef public long long start, count, size_bytes, ledger_id, first_entry_id, last_entry_id, acked, piece
    cdef public long long last_add_confirmed, length_before, place
    cdef public double began
    cdef public bint is_done

cdef class AddsRow(Row):
    cdef public object route, _late_timer, _pending, _when_drained
    cdef public long long last_confirmed, _ack_quorum, _outstanding_bytes, _outstanding_entries
    cdef public double _quorum_timeout
    cdef public bint _counts

cdef class WriterRow(Row):
    cdef public object _adds, _closing, _explicit_lac
    cdef public long long ledger_id, _header_bytes, _length, _next_entry_id
    cdef public bint _takes_parts

cdef class SpanRow(Row):
    cdef public long long ledger_id, first_index, entries, size_bytes, closed_at_ms
    cdef public bint is_open

cdef class SequenceRow(Row):
    cdef public object _last
    cdef public long long size_bytes, _confirmed_entry, _confirmed_ledger, _end_index

cdef class MetersRow(Row):
    cdef public object append_latencies, entry_sizes, _appends, _latency_bounds, _size_bounds
    cdef public long long entries, payload_bytes
    cdef public double append_seconds

cdef class ListenersRow(Row):
    cdef public object _more, _new
    cdef public bint _is_due

cdef class AppenderRow(Row):
    cdef public object _failure, _heard, _listeners, _meters, _refusal, _sent, _sequence, _waiting, _writer
    cdef public long long _entries_max, _fruitless, _size_bytes_max
    cdef public double _age_s_max, _age_s_min, _opened_at
    cdef public bint _is_broken, _is_ending, _is_idle

cdef class CountersRow(Row):
    cdef public long long messages, payload_bytes, chunks, dropped

cdef class PublishersRow(Row):
    cdef public object _appends, _throttles, _transactions, counters, deduplication
    cdef public long long last_publish_ms

cdef class ProducerRow(Row):
    cdef public object counters, _host, _parts_answered, _sink, _unanswered
    cdef public long long delay_ms_max, message_size_max, _parts
    cdef public bint is_closed, is_encryption_required, is_held, is_ready, _is_broken

cdef class ReceiptsRow(Row):
    cdef public object parts, _owners

cdef class HandleRow(Row):
    cdef public object producer, _on_drained, _receipts, _refused
    cdef public long long header_bytes, _done, _published
