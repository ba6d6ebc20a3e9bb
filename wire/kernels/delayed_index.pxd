cimport cython
from cpython cimport array
from wire.kernels.octets cimport *

cdef word _low_half
cdef word _signed_max

@cython.locals(count=Py_ssize_t, at_times=words_out, ledgers=words_out, entries=counts_out, size=Py_ssize_t, inner=Py_ssize_t,
               data=octets_out, at=Py_ssize_t, index=Py_ssize_t)
cpdef object encode_segment(object times, object ledger_ids, object entry_ids)

@cython.locals(end=Py_ssize_t, data=octets_in, room=Py_ssize_t, found_times=signed_words_out, ledgers=words_out,
               entries=counts_out, count=Py_ssize_t, at=Py_ssize_t, tag_after=Py_ssize_t, tag=word, after=Py_ssize_t, seen=int,
               is_cancelled=int, field_after=Py_ssize_t, value_after=Py_ssize_t, value=word)
cpdef object decode_segment(object segment)

@cython.locals(count=Py_ssize_t, given_times=signed_words_out, ledgers=words_out, entries=counts_out, place_of=counts_out,
               known=dict, last=word, place=word, index=Py_ssize_t, start_of=counts_out, out_times=signed_words_out,
               out_entries=counts_out, to=word)
cpdef object by_ledger(object times, object ledger_ids, object entry_ids)

@cython.locals(count=Py_ssize_t, found=words_out, given_times=signed_words_out, entries=counts_out, number_of=counts_out,
               highs=Py_ssize_t, kept=Py_ssize_t, index=Py_ssize_t, high=cython.longlong, time=cython.longlong,
               tick=cython.longlong)
cpdef object items_at(object times, object entry_ids, object numbers, long long first_high, long long base_ms,
                      long long tick_ms, long long tick_max)

@cython.locals(count=Py_ssize_t, values=words_out, wanted=octets_in, kept=Py_ssize_t, index=Py_ssize_t, found=words_out)
cpdef object items_under(object items, object is_wanted)

cpdef object sorted_by_tick(object items)

@cython.locals(count=Py_ssize_t, values=words_out, start_of=counts_out, index=Py_ssize_t, found=words_out, digit=word)
cdef object _sorted_by(object items, int shift)

@cython.locals(count=Py_ssize_t, values=words_out, ledgers=words_out, highs=counts_out, out_times=signed_words_out,
               out_ledgers=words_out, out_entries=counts_out, index=Py_ssize_t, number=word, tick=cython.longlong)
cpdef object facts_of(object items, object ledger_of, object high_of, long long base_ms, long long tick_ms)
