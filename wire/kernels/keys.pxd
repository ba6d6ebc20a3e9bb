cimport cython
from cpython cimport array
from wire.kernels.octets cimport *

@cython.locals(count=Py_ssize_t, found=counts_out, source=counts_out, place=Py_ssize_t, slot=cython.uint)
cpdef object slots_of(object hashes, object indexes)

@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
cdef long long _owner(unsigned int slot, counts_out bounds, signed_words_out owners, Py_ssize_t count) noexcept

@cython.locals(given=dict, slot_places=counts_out, bound_places=counts_out, owner_places=signed_words_out, ranges=Py_ssize_t,
               place=Py_ssize_t, slot=cython.uint, owner=cython.longlong, is_free=bint, room=cython.longlong, cost=cython.longlong)
cpdef object deal(object slots, object indexes, object costs, object bounds, object owners, dict rooms, long long room_together,
                  dict held, dict holders, dict waiting, bint is_ordered, bint is_replay)

@cython.locals(count=cython.longlong)
cdef int _lower(dict counts, object slot) except -1

@cython.locals(drained=list)
cpdef object release(dict slots, object entry_ids, dict held, dict holders, dict waiting, bint is_ordered, bint is_acknowledged)

@cython.locals(ready=dict, blocked=list, bound_places=counts_out, owner_places=signed_words_out, ranges=Py_ssize_t,
               owner=cython.longlong)
cpdef object place(dict slots, object entry_ids, object bounds, object owners, dict holders)
