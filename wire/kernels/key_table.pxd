cimport cython
from wire.kernels.octets cimport *

cdef word _all_bits
cdef word _v0
cdef word _v1
cdef word _v2
cdef word _v3
cdef word _removed

cdef word _rotated(word value, int bits) noexcept

@cython.locals(v0=word, v1=word, v2=word, v3=word, size=word, block=word, value=word, shift=cython.int, rounds=cython.int,
               _round=cython.int, done=cython.int)
cdef void _hash(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out found) noexcept

@cython.locals(place=word)
cdef Py_ssize_t _slot(words_out slots, word capacity, word first, word second) noexcept

@cython.locals(place=Py_ssize_t, before=word)
cdef void _note(words_out slots, word capacity, words_out counts, octets_in data, Py_ssize_t at, Py_ssize_t end, word mark,
                words_out scratch) noexcept

cdef int _is_newest(words_out slots, word capacity, octets_in data, Py_ssize_t at, Py_ssize_t end, word mark,
                    words_out scratch) noexcept

@cython.locals(capacity=word, fresh=word, source=words_out, target=words_out, count=word, index=word, place=Py_ssize_t)
cpdef object rehash(object old, object new)

@cython.locals(scratch=words_out, slots=words_out, found=word)
cpdef object newest(object table, object key)

cpdef object note_key(object table, object counts, object key, word mark)
