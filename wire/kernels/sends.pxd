cimport cython
from wire.kernels.octets cimport *

cdef unsigned int _chunk_flag
cdef unsigned int _marker_flag
cdef word _messages_max
cdef word _all_bits

@cython.locals(total=Py_ssize_t, command=Py_ssize_t, command_end=Py_ssize_t, position=Py_ssize_t, after=Py_ssize_t,
               seen=cython.uint, chunk=cython.uint, marker=cython.uint, tag=cython.uint, value=word)
cdef Py_ssize_t _read_send(octets_in data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t frame_bytes_max, words_out fields) noexcept

@cython.locals(magic=cython.uint)
cdef int _payload_kind(octets_in data, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(data=octets_in, fields=words_out, at=Py_ssize_t, count=Py_ssize_t, size=Py_ssize_t, message_count=word,
               flags=cython.uint, producer_id=word, bad_checksum_index=cython.int, after=Py_ssize_t, kind=cython.int)
cpdef object take_sends(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t header_bytes,
                        Py_ssize_t entries_max, Py_ssize_t frame_bytes_max=*)

@cython.locals(fields=words_out, sequence_ids=words_out, highest_sequence_ids=words_out, offsets=counts_out, room=octets_out,
               at=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t, after=Py_ssize_t)
cdef object _copied(octets_in data, Py_ssize_t start, Py_ssize_t count, Py_ssize_t size, Py_ssize_t header_bytes,
                    word message_count, unsigned int flags, int bad_checksum_index)

@cython.locals(data=octets_in, fields=words_out, at=Py_ssize_t, count=Py_ssize_t, parts=Py_ssize_t, size=Py_ssize_t,
               producer_id=word, after=Py_ssize_t)
cpdef object take_mix(object buffer, Py_ssize_t start, Py_ssize_t end, Py_ssize_t header_bytes, Py_ssize_t parts_max,
                      Py_ssize_t entries_max, Py_ssize_t frame_bytes_max)

@cython.locals(fields=words_out, producer_ids=words_out, starts=counts_out, message_counts=counts_out, flags=octets_out,
               frames=words_out, sequence_ids=words_out, highest_sequence_ids=words_out, offsets=counts_out, room=octets_out,
               at=Py_ssize_t, place=Py_ssize_t, part=Py_ssize_t, index=Py_ssize_t, after=Py_ssize_t)
cdef object _copied_mix(octets_in data, Py_ssize_t start, Py_ssize_t count, Py_ssize_t parts, Py_ssize_t size,
                        Py_ssize_t header_bytes)

@cython.locals(total=Py_ssize_t, starts=counts_out, place=Py_ssize_t, room=octets_out, at=Py_ssize_t, producer_id=word,
               sequence_ids=words_out, highest_sequence_ids=words_out, ledger_id=cython.longlong, entry_id=cython.longlong,
               index=Py_ssize_t)
cpdef object part_receipts(object parts)

@cython.locals(count=Py_ssize_t, producer_id=word, sequence_ids=words_out, highest_sequence_ids=words_out, room=octets_out,
               at=Py_ssize_t, index=Py_ssize_t, step=Py_ssize_t, entry_id=cython.longlong)
cpdef object send_receipts(object run, long long ledger_id, long long first_entry_id, bint have_one_id=*)

@cython.locals(at=Py_ssize_t, message_id=Py_ssize_t)
cdef Py_ssize_t _write_receipt(octets_out room, Py_ssize_t frame, word producer_id, word sequence_id, word highest,
                               long long ledger_id, long long entry_id) noexcept
