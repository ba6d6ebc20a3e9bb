cimport cython
from wire.kernels.octets cimport *

@cython.locals(room=octets_out, at=Py_ssize_t, index=Py_ssize_t)
cpdef object plain_responses(unsigned int header, unsigned int code, long long ledger_id, long long first_entry_id,
                             Py_ssize_t count)

@cython.locals(count=Py_ssize_t, offsets=counts_out, data=octets_in, ledger_id=word, entry_id=word, room=octets_out,
               at=Py_ssize_t, index=Py_ssize_t, size=Py_ssize_t)
cpdef object read_responses(object run, unsigned int header)

@cython.locals(count=Py_ssize_t, offsets=counts_out, data=octets_in, room=octets_out, at=Py_ssize_t, index=Py_ssize_t,
               size=Py_ssize_t)
cpdef object batched_entries(object run)

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, ledger_id=word, entry_id=word)
cpdef object take_added(object buffer, Py_ssize_t start, Py_ssize_t end)

@cython.locals(data=octets_in, at=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t, total=Py_ssize_t, offsets=counts_out,
               room=octets_out, place=Py_ssize_t, index=Py_ssize_t, ledger_id=word, entry_id=word)
cpdef object take_read(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t entries_max, Py_ssize_t frame_bytes_max)
