cimport cython
from wire.kernels.octets cimport *
from wire.kernels.rows cimport (
    AddsRow, AppenderRow, CountersRow, HandleRow, ListenersRow, MetersRow, PartRow, ProducerRow, PublishersRow,
    ReceiptsRow, SequenceRow, SpanRow, WriterRow
)

cdef unsigned int _chunk_flag
cdef long long _outstanding_entries_max
cdef long long _outstanding_bytes_max

@cython.locals(age_s=double)
cdef bint _is_full(AppenderRow log, WriterRow writer, double now) except -1

@cython.locals(handle=HandleRow, producer=ProducerRow)
cdef ProducerRow _publisher(dict handles, word producer_id, long long header_bytes)

@cython.locals(topic=PublishersRow, log=AppenderRow)
cdef AppenderRow _log_of(ProducerRow producer, double now)

@cython.locals(adds=AddsRow)
cdef AddsRow _adds_of(WriterRow writer, long long header_bytes, long long entries, long long size)

@cython.locals(producer_ids=words_out, starts=counts_out, offsets=counts_out, message_counts=counts_out, flags=octets_out,
               header_bytes="long long", total=Py_ssize_t, start="long long", count="long long", size="long long",
               payload="long long", producer=ProducerRow, log=AppenderRow, writer=WriterRow, adds=AddsRow,
               part=PartRow, handle=HandleRow, chunks="long long", topic=PublishersRow)
cpdef Py_ssize_t take_parts(dict handles, object sends, Py_ssize_t place, double now, long long now_ms, long long bytes_max,
                            object make, list parts) except -1

cdef object _append(PartRow part, AppenderRow log, WriterRow writer, AddsRow adds, long long payload)

cdef void _count(CountersRow counters, long long messages, long long payload, long long chunks) noexcept

@cython.locals(count="long long", size="long long", part=PartRow)
cpdef tuple size_of_parts(list parts)

@cython.locals(total=Py_ssize_t, part=PartRow, adds=AddsRow, acked="long long")
cpdef Py_ssize_t store_parts(list parts, Py_ssize_t place, long long seat, double now, list due) except -1

cdef object _without_first(object queue)

@cython.locals(count="long long")
cdef long long _bits(long long acked) noexcept

@cython.locals(following=PartRow, log=AppenderRow, meters=MetersRow, writer=WriterRow,
               producer=ProducerRow)
cdef bint _is_plain(PartRow part, AddsRow adds, double now) except -1

@cython.locals(payload="long long", log=AppenderRow, listeners=ListenersRow, producer=ProducerRow, handle=HandleRow,
               receipts=ReceiptsRow)
cdef object _stored(PartRow part, double now, list due)

@cython.locals(last=SpanRow)
cdef object _confirm(SequenceRow sequence, long long entries, long long size)

cdef object _measure(MetersRow meters, double seconds, long long entries, long long size)

@cython.locals(place=Py_ssize_t)
cdef Py_ssize_t _place_among(double* bounds, Py_ssize_t count, double value) noexcept

@cython.locals(total=Py_ssize_t, size=Py_ssize_t, part=PartRow, places=counts_out, room=octets_out, place=Py_ssize_t,
               index=Py_ssize_t, offsets=counts_out, entry=Py_ssize_t)
cpdef object joined_run(list parts)
