cimport cython
from wire.kernels.octets cimport *

@cython.locals(tag=word, after=Py_ssize_t, value=word, payload=cython.longlong, flags=word)
cdef int _read_single(octets_in data, Py_ssize_t at, Py_ssize_t end, signed_words_out found) noexcept

@cython.locals(batches=Py_ssize_t, total=Py_ssize_t, size=Py_ssize_t, octets=octets_in, firsts=signed_words_out, lasts=signed_words_out,
               sizes=signed_words_out, into=signed_words_out, marks=octets_out, found=signed_words_out, row=Py_ssize_t,
               batch=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t)
cpdef object take_messages(object data, object starts, object ends, object counts, object columns, object flags)

cdef Py_ssize_t _put(octets_out room, Py_ssize_t at, Py_ssize_t size, octets_in data, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(count=Py_ssize_t, total=Py_ssize_t, size=Py_ssize_t, keys_size=Py_ssize_t, values_size=Py_ssize_t, octets=octets_in,
               places=signed_words_out, key_room=octets_out, value_room=octets_out, key_bounds=small_words_out,
               value_bounds=small_words_out, marks=octets_out, found=signed_words_out, keys_at=Py_ssize_t, values_at=Py_ssize_t,
               absent=Py_ssize_t, row=Py_ssize_t, batch=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, start=Py_ssize_t,
               stop=Py_ssize_t, _=Py_ssize_t)
cpdef object take_columns(object data, object batches, object keys, object key_ends, object values, object value_ends, object has_key)

@cython.locals(size=Py_ssize_t, left=Py_ssize_t, octets=octets_in, firsts=signed_words_out, lasts=signed_words_out,
               bounds=small_words_out, into=octets_out, at=Py_ssize_t, row=Py_ssize_t, start=Py_ssize_t, length=Py_ssize_t,
               rows=Py_ssize_t)
cpdef object gather(object data, object starts, object ends, object offsets, object room)
