cimport cython
from wire.kernels.octets cimport *

cdef word _signed_max

@cython.locals(count=Py_ssize_t, firsts=words_out, lasts=words_out, index=Py_ssize_t, first=word, end=word)
cpdef object highest_if_ascending(object sequence_ids, object highest_sequence_ids)

@cython.locals(count=Py_ssize_t, firsts=words_out, highests=words_out, messages=counts_out, lasts=words_out, index=Py_ssize_t,
               last=word)
cpdef object last_sequence_ids(object sequence_ids, object highest_sequence_ids, object message_counts)
