cimport cython
from wire.kernels.octets cimport *

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _section_size(long long broker_timestamp, long long index) noexcept

cdef Py_ssize_t _write_section(octets_out room, Py_ssize_t at, long long broker_timestamp, long long index, Py_ssize_t size) noexcept

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, messages=counts_out, size=Py_ssize_t,
               total=Py_ssize_t, last=cython.longlong, place=Py_ssize_t, stamped=counts_out, data=octets_in, room=octets_out,
               at=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, section=cython.longlong)
cpdef object stamp(object batch, object message_counts, long long broker_timestamp, long long index, bint has_index)
