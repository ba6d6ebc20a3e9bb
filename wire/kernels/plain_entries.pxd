cimport cython
from wire.kernels.octets cimport *

@cython.locals(size=word)
cdef Py_ssize_t _after_broker_metadata(octets_in data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(count=Py_ssize_t, size=Py_ssize_t, octets=octets_in, firsts=signed_words_out, lasts=signed_words_out,
               ids=signed_words_out, marks=octets_out, fits=cython.int, index=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t,
               digest=cython.uint, inside=cython.uint, at=Py_ssize_t)
cpdef object check_stored(object data, object starts, object ends, long long ledger_id, object entry_ids, object is_sound)

cdef int _is_passed_over(word tag) noexcept

@cython.locals(count=cython.longlong, time=cython.longlong, is_named=cython.int, after=Py_ssize_t, tag=word, value=word)
cdef int _read_batch(octets_in data, Py_ssize_t at, Py_ssize_t end, signed_words_out into, Py_ssize_t row, Py_ssize_t total) noexcept

@cython.locals(total=Py_ssize_t, size=Py_ssize_t, octets=octets_in, firsts=signed_words_out, lasts=signed_words_out,
               into=signed_words_out, row=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, length=Py_ssize_t)
cpdef object take_batches(object data, object starts, object ends, bint verifies, object columns)
