cimport cython
from wire.kernels.compaction cimport _next_single
from wire.kernels.octets cimport *

cdef unsigned char _keep
cdef unsigned char _rewrite

@cython.locals(seen=cython.int, size=word, stop=Py_ssize_t, after=Py_ssize_t, key=word)
cdef int _read_id(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(fields=words_out, offsets=counts_out)
cpdef object message_id(object run, Py_ssize_t index)

@cython.locals(data=octets_in, offsets=counts_out, before=Py_ssize_t, count=Py_ssize_t, chosen=octets_out, ledger_id=word,
               first=word, negative=word, fixed=Py_ssize_t, total=Py_ssize_t, entries=Py_ssize_t, index=Py_ssize_t,
               size=Py_ssize_t, room=octets_out, starts=counts_out, at=Py_ssize_t)
cpdef object pack(object run, object verdicts, dict rewritten, long long partition, Py_ssize_t header_bytes)

@cython.locals(fields=words_out, offsets=counts_out, data=octets_in, header_bytes=Py_ssize_t, count=Py_ssize_t, ledger_id=word,
               first=word, last=word, total=Py_ssize_t, stop=Py_ssize_t, index=Py_ssize_t, ids=counts_out, starts=counts_out,
               room=octets_out, at=Py_ssize_t, expected=word)
cpdef object unpack(object run, Py_ssize_t start, word span_max)

@cython.locals(fields=words_out, data=octets_in, size=Py_ssize_t, at=Py_ssize_t, found=cython.longlong, index=cython.longlong)
cpdef object last_index(object payload, long long count)
