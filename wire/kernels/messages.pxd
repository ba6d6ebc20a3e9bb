cimport cython
from wire.kernels.octets cimport *
from wire.kernels.delivery_rows cimport ConsumerHandleRow
from wire.kernels.rows cimport PartRow

@cython.locals(size=word)
cdef Py_ssize_t _payload_start(octets_in data, Py_ssize_t at, Py_ssize_t end, bint keep_broker_entry_metadata) noexcept

@cython.locals(message_id=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _command_size(word consumer_id, word ledger_id, word entry_id, long long partition, long long redelivery_count,
                              word epoch, bint has_epoch) noexcept

@cython.locals(words=words_out, size=Py_ssize_t, index=Py_ssize_t)
cdef Py_ssize_t _ack_set_size(object ack_set) except -1

@cython.locals(words=words_out, index=Py_ssize_t)
cdef Py_ssize_t _write_ack_set(octets_out room, Py_ssize_t at, object ack_set) except -1

@cython.locals(start=Py_ssize_t)
cdef Py_ssize_t _write_message_id(octets_out room, Py_ssize_t at, word ledger_id, word entry_id, long long partition) noexcept

@cython.locals(count=Py_ssize_t, chosen=signed_words_out, redeliveries=signed_words_out, has_redeliveries=bint, has_epoch=bint,
               epoch=word, header_bytes=Py_ssize_t, ledger_id=word, first_entry_id=word, id_step=word, entry_id=word,
               offsets=counts_out, data=octets_in, size=Py_ssize_t, commands=words_out, total=Py_ssize_t, redelivery_count=cython.longlong, place=Py_ssize_t,
               index=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, command=Py_ssize_t, room=octets_out, position=Py_ssize_t)
cdef object _frames(object run, Py_ssize_t picked, object picks, Py_ssize_t first, Py_ssize_t step, word consumer_id,
                    long long partition, object counts, object ack_sets, object consumer_epoch, bint keep_broker_entry_metadata)

@cython.locals(total=Py_ssize_t, part=PartRow, handle=ConsumerHandleRow, offsets=counts_out, has_epoch=bint,
               epoch=word, header_bytes=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, command=Py_ssize_t,
               room=octets_out, position=Py_ssize_t, data=octets_in, entry_id="long long", size=Py_ssize_t)
cpdef object part_frames(object deliveries)
