cimport cython
from wire.kernels.octets cimport *

@cython.locals(start=Py_ssize_t, after=Py_ssize_t, index=Py_ssize_t, offsets=counts_out)
cdef Py_ssize_t _part_size(object part) except -1

@cython.locals(total=Py_ssize_t, size=Py_ssize_t, is_whole=bint, offsets=counts_out, room=octets_out, data=octets_in,
               index=Py_ssize_t, ledger_id=word, entry_id=word, confirmed="long long", length=word, count=Py_ssize_t,
               at=Py_ssize_t, after=Py_ssize_t)
cpdef object seal_parts(object parts)

@cython.locals(place=Py_ssize_t)
cdef object _moved(object parts, Py_ssize_t total, Py_ssize_t size)

@cython.locals(total=Py_ssize_t, size=Py_ssize_t)
cpdef object mix_of(object parts)

@cython.locals(places=counts_out, place=Py_ssize_t, index=Py_ssize_t, offsets=counts_out, data=octets_in, start=Py_ssize_t,
               after=Py_ssize_t, entry=Py_ssize_t)
cdef object _copy_parts(object parts, octets_out room, object ends)

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

@cython.locals(total=Py_ssize_t, offsets=counts_out, base=Py_ssize_t, place=Py_ssize_t, own=counts_out, count=Py_ssize_t,
               length=Py_ssize_t, index=Py_ssize_t, start=Py_ssize_t)
cpdef object joined(object parts)
