cimport cython
from wire.kernels.octets cimport *

@cython.locals(seen=cython.uint, tag=cython.uint, after=Py_ssize_t)
cdef int _read_message_id(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out ledger_ids, words_out entry_ids,
                          Py_ssize_t index) noexcept

@cython.locals(after=Py_ssize_t, size=word)
cdef Py_ssize_t _message_id_end(octets_in data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(total=Py_ssize_t, frame_end=Py_ssize_t, position=Py_ssize_t, after=Py_ssize_t, seen=cython.uint,
               tag=cython.uint)
cdef Py_ssize_t _read_ack(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(position=Py_ssize_t, after=Py_ssize_t)
cdef Py_ssize_t _read_message_ids(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out ledger_ids, words_out entry_ids,
                                  Py_ssize_t index) noexcept

@cython.locals(data=octets_in, fields=words_out, at=Py_ssize_t, ids=Py_ssize_t, consumer_id=word, after=Py_ssize_t)
cpdef object take_acks(object buffer, Py_ssize_t start, Py_ssize_t end)

@cython.locals(ledger_ids=words_out, entry_ids=words_out, at=Py_ssize_t, count=Py_ssize_t, after=Py_ssize_t,
               filled=Py_ssize_t)
cdef object _collected(octets_in data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t ids, word consumer_id)

@cython.locals(data=octets_in, fields=words_out, at=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t, consumer_id=word,
               after=Py_ssize_t)
cpdef object take_ack_mix(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frames_max)

@cython.locals(consumer_ids=words_out, ledger_ids=words_out, entry_ids=words_out, fields=words_out, at=Py_ssize_t,
               count=Py_ssize_t, after=Py_ssize_t)
cdef object _mixed(octets_in data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t frames)
