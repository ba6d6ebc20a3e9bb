cimport cython
from wire.kernels.metadata cimport _read_metadata
from wire.kernels.octets cimport *
from wire.kernels.delivery_rows cimport (
    AcknowledgementsRow, CandidateRow, ConsumerHandleRow, ConsumerRow, CursorRow, DeliveriesRow, DriverRow, EntrySetRow,
    HolesRow, LevelRow, MachineRow, ReaderRow, ReceiverRow, ReceiversRow, SubscriptionRow, SubscriptionsRow
)
from wire.kernels.rows cimport PartRow, SequenceRow, SpanRow

cdef unsigned int _looked_at_singly
cdef long long _shared
cdef long long _single_active

cdef object _position(long long ledger_id, long long entry_id)

@cython.locals(offsets=counts_out, data=octets_in, fields=words_out, header_bytes="long long", total="long long",
               index=Py_ssize_t, messages="long long")
cdef long long _messages_of(PartRow part, object counts) except -1

@cython.locals(room="long long")
cdef long long _room(ReceiversRow receivers, ReceiverRow receiver) noexcept

@cython.locals(receivers=ReceiversRow, level=LevelRow, members=list, count=Py_ssize_t, step=Py_ssize_t, place=Py_ssize_t,
               receiver=ReceiverRow)
cdef ReceiverRow _in_turn(MachineRow machine, bint has_turn)

@cython.locals(receivers=ReceiversRow, receiver=ReceiverRow)
cdef ReceiverRow _receiver_of(MachineRow machine, long long entries, long long messages, bint has_turn)

@cython.locals(replay=EntrySetRow)
cdef bint _is_clear(MachineRow machine) except -1

@cython.locals(mark_ledger="long long", mark_entry="long long", holes=HolesRow)
cdef bint _is_untouched(AcknowledgementsRow acknowledged, long long ledger_id, long long first, long long last) except -1

@cython.locals(place_ledger="long long", place_entry="long long")
cdef bint _is_before(ReaderRow reader, long long ledger_id, long long first) except -1

cdef bint _reads_itself(DriverRow driver) except -1

@cython.locals(driver=DriverRow, cursor=CursorRow, machine=MachineRow)
cdef bint _takes(SubscriptionRow subscription, PartRow part, long long messages) except -1

@cython.locals(receiver=ReceiverRow, active=CandidateRow)
cdef object _consumer_of(MachineRow machine, long long entries, long long messages)

@cython.locals(consumer=ConsumerRow, handle=ConsumerHandleRow)
cdef bint _is_reachable(object target) except -1

@cython.locals(part=PartRow, messages="long long", taken="long long")
cpdef long long hand_out(SubscriptionsRow topic, object new, long long now_ms, dict deliveries) except -2

@cython.locals(driver=DriverRow, machine=MachineRow, receiver=ReceiverRow, active=CandidateRow, reader=ReaderRow,
               per_entry=double, consumer=ConsumerRow, counters=DeliveriesRow, handle=ConsumerHandleRow)
cdef object _give(SubscriptionRow subscription, PartRow part, long long messages, long long now_ms, dict deliveries)

@cython.locals(pending=EntrySetRow, entry_id="long long")
cdef object _deliver(ReceiversRow receivers, ReceiverRow receiver, PartRow part, long long messages)
