cimport cython
from wire.kernels.metadata cimport _check, _read_metadata
from wire.kernels.octets cimport *

cdef word _signed_max

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               found=signed_words_out, index=Py_ssize_t)
cpdef object deliver_times(object run)

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               index=Py_ssize_t, longest=cython.longlong, time=cython.longlong)
cpdef object longest_delay(object run)

@cython.locals(value=word)
cdef long long _deliver_time(octets_in data, words_out fields, Py_ssize_t at, Py_ssize_t end) noexcept
