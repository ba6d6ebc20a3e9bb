cimport cython
from cpython cimport array
from wire.kernels.octets cimport *

cdef word _low_half
cdef word _level_1
cdef word _level_2
cdef word _level_3

@cython.locals(values=signed_words_out, index=Py_ssize_t)
cpdef object later_than(object times, long long cutoff_ms)

@cython.locals(found=words_out, values=signed_words_out, places=counts_out, place=Py_ssize_t, time=cython.longlong, tick=cython.longlong)
cpdef object items_of(object times, object indexes, word first_number, long long base_ms, long long tick_ms, long long tick_max)

@cython.locals(buckets=dict, values=words_out, count=Py_ssize_t, start=Py_ssize_t, key=word, index=Py_ssize_t, tick=word, distance=word,
               wanted=word)
cpdef object in_buckets(object items, word now_tick)

cdef int _put(dict buckets, word key, object items) except -1

@cython.locals(count=Py_ssize_t, found=counts_out, values=words_out, index=Py_ssize_t)
cpdef object numbers_of(object items)
