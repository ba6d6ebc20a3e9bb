cimport cython
from wire.kernels.octets cimport *

@cython.locals(total=Py_ssize_t)
cdef Py_ssize_t _plain_add(octets_in data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t frame_bytes_max) noexcept

cdef int _same_key(octets_in data, Py_ssize_t one, Py_ssize_t other) noexcept

@cython.locals(at=Py_ssize_t, index=Py_ssize_t, after=Py_ssize_t)
cdef int _is_run(octets_in data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frame_bytes_max) noexcept

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t, after=Py_ssize_t, offsets=counts_out,
               room=octets_out, place=Py_ssize_t, index=Py_ssize_t)
cpdef object take_mix(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frame_bytes_max, object writable_ledgers)

@cython.locals(count=Py_ssize_t, offsets=counts_out, index=Py_ssize_t)
cdef object _check(object mix)

@cython.locals(count=Py_ssize_t, offsets=counts_out, data=octets_in, room=octets_out, at=Py_ssize_t, index=Py_ssize_t)
cpdef object mix_responses(object mix, unsigned int header, unsigned int code)

@cython.locals(offsets=counts_out, data=octets_in, index=Py_ssize_t)
cpdef object ledgers_of(object mix)

@cython.locals(total=Py_ssize_t, offsets=counts_out, data=octets_in, nexts=signed_words_out, heads=signed_words_out,
               tails=signed_words_out, ledgers=Py_ssize_t, index=Py_ssize_t, ledger_id=word, place=Py_ssize_t, first=word,
               count=Py_ssize_t, size=Py_ssize_t, after=Py_ssize_t, run_offsets=counts_out, room=octets_out, at=Py_ssize_t)
cpdef object runs_of(object mixes)

@cython.locals(total=Py_ssize_t, offsets=counts_out, base=Py_ssize_t, place=Py_ssize_t, part=counts_out, count=Py_ssize_t,
               index=Py_ssize_t)
cdef object _joined_offsets(object mixes)
