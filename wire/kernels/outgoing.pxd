cimport cython
from wire.kernels.octets cimport *

cdef bint _fits(Py_ssize_t start, Py_ssize_t end, Py_ssize_t size) noexcept

cdef Py_ssize_t _put_key(octets_out into, Py_ssize_t at, octets_in keys, Py_ssize_t start, Py_ssize_t end) noexcept

cdef Py_ssize_t _put_numbers(octets_out into, Py_ssize_t at, word payload_size, word event_time, word sequence_id, word mark) noexcept

@cython.locals(count=Py_ssize_t, has_keys=bint, has_properties=bint, has_times=bint, value_size=Py_ssize_t, key_size=Py_ssize_t,
               property_size=Py_ssize_t, size=Py_ssize_t, value_octets=octets_in, key_octets=octets_in, property_octets=octets_in,
               value_at=small_words_out, key_at=small_words_out, property_at=small_words_out, times=signed_words_out,
               ids=signed_words_out, flags=octets_out, stops=signed_words_out, into=octets_out, at=Py_ssize_t, row=Py_ssize_t,
               mark=word, start=Py_ssize_t, end=Py_ssize_t, key_start=Py_ssize_t, key_end=Py_ssize_t, first=Py_ssize_t,
               last=Py_ssize_t, head=Py_ssize_t)
cpdef object put_messages(object values, object value_bounds, object keys, object key_bounds, object properties,
                          object property_bounds, object event_times, object sequence_ids, object marks, object ends, object room)
