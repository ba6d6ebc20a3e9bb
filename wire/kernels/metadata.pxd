cimport cython
from wire.kernels.octets cimport *

cdef unsigned int _marker
cdef unsigned int _chunk
cdef unsigned int _encrypted
cdef unsigned int _delayed
cdef unsigned int _transaction
cdef unsigned int _batch
cdef unsigned int _unparseable
cdef word _messages_max
cdef word _no_key_hash
cdef word _low_half
cdef word _all_bits
cdef word _signed_max
cdef word _c1
cdef word _c2
cdef word _add
cdef word _final_1
cdef word _final_2

@cython.locals(after=Py_ssize_t, key=word)
cdef void _read_broker_timestamp(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(size=word)
cdef int _locate(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(place=Py_ssize_t, flags=cython.uint, transaction=cython.uint, after=Py_ssize_t, key=word)
cdef int _read_metadata(octets_in data, Py_ssize_t at, Py_ssize_t end, words_out fields) noexcept

@cython.locals(count=Py_ssize_t, offsets=counts_out, header_bytes=Py_ssize_t, size=Py_ssize_t, index=Py_ssize_t)
cdef int _check(object run) except -1

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               counts=counts_out, flags=octets_out, any_flags=cython.uint, message_count=word, index=Py_ssize_t)
cpdef object scan(object run)

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               found=signed_words_out, index=Py_ssize_t)
cpdef object publish_times(object run)

@cython.locals(size=word, state=word, block=word, shift=cython.int)
cdef word _murmur(octets_in data, Py_ssize_t at, Py_ssize_t end) noexcept

cdef word _mixed(word block) noexcept

cdef int _sextet(int octet) noexcept

@cython.locals(size=Py_ssize_t, bits=cython.uint, pending=cython.int, sextet=cython.int, padding=Py_ssize_t)
cdef Py_ssize_t _decode_base64(octets_in data, Py_ssize_t at, Py_ssize_t end, octets_out room) noexcept

@cython.locals(digits=Py_ssize_t, rest=word, place=Py_ssize_t)
cdef Py_ssize_t _write_decimal(octets_out room, Py_ssize_t at, word value) noexcept

@cython.locals(room=octets_out, size=Py_ssize_t, name_bytes=Py_ssize_t)
cdef long long _key_hash(octets_in data, words_out fields) except -1

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               found=counts_out, index=Py_ssize_t)
cpdef object key_hashes(object run)

@cython.locals(count=Py_ssize_t, header_bytes=Py_ssize_t, offsets=counts_out, data=octets_in, fields=words_out,
               found=octets_out, index=Py_ssize_t)
cpdef object keyed_batches(object run)
