cimport cython
from wire.kernels.octets cimport *

@cython.locals(index=Py_ssize_t)
cdef int _same_octets(octets_in data, Py_ssize_t one, Py_ssize_t other, Py_ssize_t size) noexcept

@cython.locals(total=Py_ssize_t)
cdef Py_ssize_t _read_add(octets_in data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t frame_bytes_max) noexcept

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t, first=word, after=Py_ssize_t,
               ledger_id=word, header=cython.uint)
cpdef object take_adds(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t entries_max, Py_ssize_t frame_bytes_max)

@cython.locals(offsets=counts_out, room=octets_out, at=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t, after=Py_ssize_t)
cdef object _copied(octets_in data, Py_ssize_t start, Py_ssize_t count, Py_ssize_t size)

@cython.locals(at=Py_ssize_t, index=Py_ssize_t, after=Py_ssize_t)
cdef int _begins_a_run(octets_in data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frame_bytes_max) noexcept

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t, after=Py_ssize_t, header=cython.uint)
cpdef object take_mix(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frame_bytes_max, object writable_ledgers)

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, first=word, total=Py_ssize_t, ledger_id=word)
cpdef object take_reads(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t entries_max)

@cython.locals(count=Py_ssize_t, offsets=counts_out, data=octets_in, key=octets_in, room=octets_out, at=Py_ssize_t,
               index=Py_ssize_t, size=Py_ssize_t)
cpdef object add_requests(object run, unsigned int header, object master_key)

@cython.locals(room=octets_out, at=Py_ssize_t, index=Py_ssize_t)
cpdef object read_requests(unsigned int header, long long ledger_id, long long first_entry_id, Py_ssize_t count)
