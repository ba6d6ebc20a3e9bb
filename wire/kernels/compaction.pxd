cimport cython
from wire.kernels.key_table cimport _is_newest, _note
from wire.kernels.octets cimport *

cdef word _messages_max
cdef unsigned char _keep
cdef unsigned char _rewrite
cdef unsigned char _decompress
cdef unsigned char _chunk
cdef unsigned int _compacted_out

@cython.locals(place=Py_ssize_t, size=word, after=Py_ssize_t, key=word)
cdef int _read(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(size=word, stop=Py_ssize_t, after=Py_ssize_t, key=word)
cdef Py_ssize_t _next_single(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(_index=word)
cdef int _is_batch(octets_in data, Py_ssize_t at, Py_ssize_t end, word count, words_out fields) noexcept

@cython.locals(index=word)
cdef void _note_singles(octets_in data, Py_ssize_t at, Py_ssize_t end, word count, words_out slots, word capacity,
                        words_out counts, word number, int retains, words_out fields, words_out scratch) noexcept

@cython.locals(fields=words_out, data=octets_in, size=Py_ssize_t, slots=words_out)
cpdef object note_batch(object payload, word count, object table, object counts, word number, int retains_null_key)

@cython.locals(fields=words_out, data=octets_in, offsets=counts_out, header_bytes=Py_ssize_t, found=word, index=Py_ssize_t,
               at=Py_ssize_t, end=Py_ssize_t)
cpdef object messages_in(object run)

@cython.locals(fields=words_out, scratch=words_out, data=octets_in, offsets=counts_out, skips=octets_in, slots=words_out,
               capacity=word, found=words_out, header_bytes=Py_ssize_t, count=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t,
               end=Py_ssize_t, number=word, size=word, messages=word)
cpdef object note_run(object run, Py_ssize_t start, object skipped, object table, object counts, word first_number,
                      int retains_null_key)

@cython.locals(kept=word, index=word)
cdef word _kept_singles(octets_in data, Py_ssize_t at, Py_ssize_t end, word count, words_out slots, word capacity, word number,
                        int retains, words_out fields, words_out scratch) noexcept

@cython.locals(fields=words_out, scratch=words_out, data=octets_in, offsets=counts_out, skips=octets_in, slots=words_out,
               capacity=word, header_bytes=Py_ssize_t, count=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t,
               number=word, messages=word, kept=word, verdicts=octets_out)
cpdef object choose(object run, object skipped, object table, word first_number, int retains_null_key)

@cython.locals(fields=words_out, scratch=words_out, data=octets_in, size=Py_ssize_t, slots=words_out, capacity=word,
               room=octets_out, at=Py_ssize_t, place=Py_ssize_t, kept=word, index=word, after=Py_ssize_t, stays=cython.int)
cpdef object rebatch(object payload, word count, object table, word number, int retains_null_key)
