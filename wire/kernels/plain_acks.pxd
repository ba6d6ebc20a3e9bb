cimport cython
from wire.kernels.delivery_rows cimport (
    AcknowledgementsRow, ConsumerHandleRow, ConsumerRow, CursorRow, DeliveriesRow, DriverRow, EntrySetRow, HolesRow, MachineRow,
    ReaderRow, ReceiverRow, ReceiversRow, SubscriptionRow
)
from wire.kernels.newest cimport _is_clear, _position
from wire.kernels.octets cimport *
from wire.kernels.rows cimport SequenceRow, SpanRow

cdef long long _shared
cdef long long _single_active

@cython.locals(consumer_ids=words_out, ledger_ids=words_out, entry_ids=words_out, total=Py_ssize_t, handle=ConsumerHandleRow)
cpdef Py_ssize_t acknowledge_each(dict handles, object mix, Py_ssize_t place, double now, long long now_ms) except -1

@cython.locals(ledgers=words_out, entries=words_out, place=Py_ssize_t)
cpdef Py_ssize_t acknowledge_run(object consumer, object ledger_ids, object entry_ids, double now, long long now_ms) except -1

@cython.locals(mark_ledger="long long", mark_entry="long long", holes=HolesRow, ledgers=SequenceRow, last=SpanRow)
cdef bint _is_next(AcknowledgementsRow acknowledged, long long ledger_id, long long entry_id) except -1

@cython.locals(subscription=SubscriptionRow, cursor=CursorRow, acknowledged=AcknowledgementsRow, driver=DriverRow,
               counters=DeliveriesRow)
cdef bint _acknowledge(ConsumerRow consumer, long long ledger_id, long long entry_id, double now, long long now_ms) except -1

@cython.locals(reader=ReaderRow, receivers=ReceiversRow, receiver=ReceiverRow, pending=EntrySetRow, messages="long long")
cdef bint _forget(MachineRow machine, ConsumerRow consumer, long long ledger_id, long long entry_id) except -1
