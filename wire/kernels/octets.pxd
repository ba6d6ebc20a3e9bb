# The C side of the kernels' primitives, for the .pxd files of the kernels; `octets.py` is their Python side.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython cimport array

ctypedef const unsigned char* octets_in
ctypedef unsigned char* octets_out
ctypedef unsigned long long word
ctypedef unsigned long long* words_out
ctypedef long long* signed_words_out
ctypedef unsigned int* counts_out
ctypedef int* small_words_out

# The names in C have a prefix: since 3.12 Python's own headers, which Cython includes, define write_u32 and others.
cdef extern from "octets.h" nogil:
    unsigned int read_u16 "octets_read_u16"(octets_in data, Py_ssize_t at) noexcept
    unsigned int read_u32 "octets_read_u32"(octets_in data, Py_ssize_t at) noexcept
    word read_u64 "octets_read_u64"(octets_in data, Py_ssize_t at) noexcept
    void write_u32 "octets_write_u32"(octets_out data, Py_ssize_t at, unsigned int value) noexcept
    void write_u64 "octets_write_u64"(octets_out data, Py_ssize_t at, word value) noexcept
    Py_ssize_t varint_end "octets_varint_end"(octets_in data, Py_ssize_t at, Py_ssize_t end) noexcept
    word varint_value "octets_varint_value"(octets_in data, Py_ssize_t at, Py_ssize_t after) noexcept
    Py_ssize_t field_end "octets_field_end"(octets_in data, Py_ssize_t at, Py_ssize_t end, word wire_type) noexcept
    Py_ssize_t varint_size "octets_varint_size"(word value) noexcept
    Py_ssize_t write_varint "octets_write_varint"(octets_out data, Py_ssize_t at, word value) noexcept
    void copy_octets "octets_copy"(octets_out target, Py_ssize_t at, octets_in source, Py_ssize_t start, Py_ssize_t end) noexcept
    void clear_octets "octets_clear"(octets_out target, Py_ssize_t start, Py_ssize_t end) noexcept
    unsigned int crc32c_of "octets_crc32c_of"(octets_in data, Py_ssize_t start, Py_ssize_t end, unsigned int seed) noexcept
    unsigned int crc32c_joined "octets_crc32c_joined"(unsigned int first, unsigned int second, Py_ssize_t second_bytes) noexcept

# The pointer is used after the buffer is released. That is right because the caller holds the object, and nothing can resize it
# while a kernel runs: kernels keep the GIL and call no code of others.
cdef inline octets_in octets_of(object buffer) except? NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    cdef octets_in data = <octets_in>view.buf
    PyBuffer_Release(&view)
    return data

cdef inline Py_ssize_t length_of(object buffer) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    cdef Py_ssize_t size = view.len
    PyBuffer_Release(&view)
    return size

cdef inline octets_out octets_in_room(object room) except? NULL:
    return <octets_out>octets_of(room)

cdef inline signed_words_out signed_words_in(object room) except? NULL:
    return <signed_words_out>octets_of(room)

cdef inline small_words_out small_words_in(object room) except? NULL:
    return <small_words_out>octets_of(room)

cdef inline object new_octets(Py_ssize_t size):
    return PyBytes_FromStringAndSize(NULL, size)

cdef inline octets_out writable(object octets) noexcept:
    return <octets_out>PyBytes_AS_STRING(octets)

cdef inline object finished(object octets):
    return octets

cdef inline object new_room(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)

cdef inline octets_out room_in(object buffer) noexcept:
    return <octets_out>PyByteArray_AS_STRING(buffer)

cdef inline words_out words_of(object values) noexcept:
    return (<array.array>values).data.as_ulonglongs

cdef inline counts_out counts_of(object values) noexcept:
    return (<array.array>values).data.as_uints

cdef inline octets_out bytes_of(object values) noexcept:
    return (<array.array>values).data.as_uchars

cdef inline signed_words_out signed_words_of(object values) noexcept:
    return (<array.array>values).data.as_longlongs

cdef inline double* doubles_of(object values) noexcept:
    return (<array.array>values).data.as_doubles
