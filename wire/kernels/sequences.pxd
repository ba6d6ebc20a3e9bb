cimport cython
from wire.kernels.octets cimport *

cdef word _signed_max

@cython.locals(count=Py_ssize_t, firsts=words_out, lasts=words_out, index=Py_ssize_t, first=word, end=word)
cpdef object highest_if_ascending(object sequence_ids, object highest_sequence_ids)
