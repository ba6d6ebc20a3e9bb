# The types of the columns in C. Objects are `object` where they may be of more than one class.
from wire.kernels.rows cimport Row

cdef class SubscriptionsRow(Row):
    cdef public object _by_name, _transactions

cdef class SubscriptionRow(Row):
    cdef public object cursor, _consumers, _driver, _last_mark_delete
    cdef public long long mark_delete_advanced_ms
    cdef public double last_active_s
    cdef public bint is_fenced

cdef class DriverRow(Row):
    cdef public object compacted, dispatcher, on_unacked, targets, _cursor, _events, _held, _reading, _throttle
    cdef public bint _is_closed, _is_handling

cdef class CursorRow(Row):
    cdef public object acknowledgements, _planned

cdef class AcknowledgementsRow(Row):
    cdef public object _batches, _holes, _ledgers, _mark_delete
    cdef public long long version

cdef class HolesRow(Row):
    cdef public object pages
    cdef public long long count

cdef class MachineRow(Row):
    cdef public object _active, _chunked, _held_back, _last_delivered, _picked_to, _reader, _receivers, _redeliveries
    cdef public object _replay, _successor, _switch_at_ms, _turns
    cdef public long long deals
    cdef public bint _is_loading, _reads_far

cdef class ReaderRow(Row):
    cdef public object position, retry_at_ms, _outstanding
    cdef public long long _backoff_ms
    cdef public double _messages_per_entry
    cdef public bint is_at_end

cdef class EntrySetRow(Row):
    cdef public object _by_ledger, _spare

cdef class ReceiverRow(Row):
    cdef public object consumer, name, pending
    cdef public long long permits, priority_level, unacked_messages
    cdef public bint is_blocked, is_writable

cdef class ReceiversRow(Row):
    cdef public object _by_id, _message_counts
    cdef public long long unacked_messages, _limit, _limit_together
    cdef public bint is_blocked

cdef class LevelRow(Row):
    cdef public object members
    cdef public long long next

cdef class CandidateRow(Row):
    cdef public object consumer, consumer_epoch, slots
    cdef public long long permits
    cdef public bint is_writable

cdef class DeliveriesRow(Row):
    cdef public long long acknowledged, entries, messages, payload_bytes, redelivered

cdef class ConsumerRow(Row):
    cdef public object counters, key, _sink, _subscription
    cdef public long long last_acknowledgement_ms, last_delivery_ms
    cdef public bint is_closed, _was_writable

cdef class ConsumerHandleRow(Row):
    cdef public object consumer, _link
    cdef public long long consumer_id, _partition
    cdef public bint _is_plain
