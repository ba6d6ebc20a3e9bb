cimport cython
from wire.kernels.octets cimport *

@cython.locals(index=Py_ssize_t)
cdef Py_ssize_t _first_bad_offset(counts_out offsets, Py_ssize_t count, Py_ssize_t header_bytes, Py_ssize_t size) noexcept

@cython.locals(header_bytes=Py_ssize_t, count=Py_ssize_t, offsets=counts_out, room=octets_out, data=octets_in, length=word,
               index=Py_ssize_t, at=Py_ssize_t, after=Py_ssize_t)
cpdef object seal(object batch, long long ledger_id, long long first_entry_id, long long last_add_confirmed, long long length_before)

@cython.locals(header_bytes=Py_ssize_t, count=Py_ssize_t, offsets=counts_out, bad=Py_ssize_t, ledger_id=word, entry_id=word,
               data=octets_in, index=Py_ssize_t, at=Py_ssize_t, digest=cython.uint)
cpdef object first_damaged(object run)

cpdef object checksum(object buffer, unsigned int seed=*)
