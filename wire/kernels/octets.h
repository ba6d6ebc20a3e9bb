/* The primitives of the kernels in C: big-endian words, varints and CRC32C. `octets.py` is the same in Python.
 *
 * Nothing here checks a bound except the varint functions; every caller has compared its offsets with the end before.
 */
#ifndef INTERPULSE_OCTETS_H
#define INTERPULSE_OCTETS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned long long octets_word;

static inline unsigned int octets_read_u16(const unsigned char *data, ptrdiff_t at) {
    return ((unsigned int)data[at] << 8) | data[at + 1];
}

static inline unsigned int octets_read_u32(const unsigned char *data, ptrdiff_t at) {
    return ((unsigned int)data[at] << 24) | ((unsigned int)data[at + 1] << 16) | ((unsigned int)data[at + 2] << 8) |
           data[at + 3];
}

static inline octets_word octets_read_u64(const unsigned char *data, ptrdiff_t at) {
    return ((octets_word)octets_read_u32(data, at) << 32) | octets_read_u32(data, at + 4);
}

static inline void octets_write_u32(unsigned char *data, ptrdiff_t at, unsigned int value) {
    data[at] = (unsigned char)(value >> 24);
    data[at + 1] = (unsigned char)(value >> 16);
    data[at + 2] = (unsigned char)(value >> 8);
    data[at + 3] = (unsigned char)value;
}

static inline void octets_write_u64(unsigned char *data, ptrdiff_t at, octets_word value) {
    octets_write_u32(data, at, (unsigned int)(value >> 32));
    octets_write_u32(data, at + 4, (unsigned int)value);
}

/* The position after the varint at `at`, or 0 when it does not end before `end` or does not fit into 64 bits. */
static inline ptrdiff_t octets_varint_end(const unsigned char *data, ptrdiff_t at, ptrdiff_t end) {
    ptrdiff_t last = at;
    while (last < end && last < at + 10) {
        if (data[last] < 128) {
            return (last == at + 9 && data[last] > 1) ? 0 : last + 1;
        }
        last++;
    }
    return 0;
}

/* The value of the varint in [at, after), where octets_varint_end gave `after`. */
static inline octets_word octets_varint_value(const unsigned char *data, ptrdiff_t at, ptrdiff_t after) {
    octets_word value = 0;
    while (after > at) {
        after--;
        value = (value << 7) | (data[after] & 127u);
    }
    return value;
}

/* The end of the protobuf field value at `at`, or 0 when it is malformed or goes beyond `end`. */
static inline ptrdiff_t octets_field_end(const unsigned char *data, ptrdiff_t at, ptrdiff_t end, octets_word wire_type) {
    ptrdiff_t after;
    octets_word size;
    if (wire_type == 0) {
        return octets_varint_end(data, at, end);
    }
    if (wire_type == 1) {
        return end - at >= 8 ? at + 8 : 0;
    }
    if (wire_type == 5) {
        return end - at >= 4 ? at + 4 : 0;
    }
    after = wire_type == 2 ? octets_varint_end(data, at, end) : 0;
    if (after == 0) {
        return 0;
    }
    size = octets_varint_value(data, at, after);
    return size <= (octets_word)(end - after) ? after + (ptrdiff_t)size : 0;
}

static inline ptrdiff_t octets_varint_size(octets_word value) {
    ptrdiff_t size = 1;
    while (value > 127) {
        value >>= 7;
        size++;
    }
    return size;
}

/* Writes a varint and returns the position after it. */
static inline ptrdiff_t octets_write_varint(unsigned char *data, ptrdiff_t at, octets_word value) {
    while (value > 127) {
        data[at++] = (unsigned char)(value | 128);
        value >>= 7;
    }
    data[at++] = (unsigned char)value;
    return at;
}

static inline void octets_copy(unsigned char *target, ptrdiff_t at, const unsigned char *source, ptrdiff_t start,
                               ptrdiff_t end) {
    memcpy(target + at, source + start, (size_t)(end - start));
}

static inline void octets_clear(unsigned char *target, ptrdiff_t start, ptrdiff_t end) {
    memset(target + start, 0, (size_t)(end - start));
}

/* ---- CRC32C, the reflected polynomial 0x82f63b78.
 *
 * With SSE4.2 and PCLMULQDQ three lanes run side by side, because the instruction has a latency of three and a throughput of one;
 * a lane's remainder is moved over the bytes that follow it by a carry-less multiplication with x^(8n - 33) mod P, and reduced
 * by the same instruction. x^31 is the word 1, which is the factor for n = 8; each further eight bytes multiply it by x^64.
 */

#define OCTETS_LANE_BYTES_MAX 1024
#define OCTETS_LANE_BYTES_MIN 32

static uint32_t octets_crc_tables[8][256];
static uint32_t octets_crc_shift[2 * OCTETS_LANE_BYTES_MAX / 8 + 1];
static int octets_crc_kind = 0; /* 0 before the first use, 1 tables, 2 instruction, 3 instruction with lanes */

static void octets_crc_make_tables(void) {
    for (int byte = 0; byte < 256; byte++) {
        uint32_t crc = (uint32_t)byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
        }
        octets_crc_tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = octets_crc_tables[table - 1][byte];
            octets_crc_tables[table][byte] = (crc >> 8) ^ octets_crc_tables[0][crc & 255];
        }
    }
}

static uint32_t octets_crc_by_tables(uint32_t crc, const unsigned char *data, size_t size) {
    while (size >= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = octets_crc_tables[7][low & 255] ^ octets_crc_tables[6][(low >> 8) & 255] ^
              octets_crc_tables[5][(low >> 16) & 255] ^ octets_crc_tables[4][low >> 24] ^ octets_crc_tables[3][data[4]] ^
              octets_crc_tables[2][data[5]] ^ octets_crc_tables[1][data[6]] ^ octets_crc_tables[0][data[7]];
        data += 8;
        size -= 8;
    }
    while (size--) {
        crc = (crc >> 8) ^ octets_crc_tables[0][(crc ^ *data++) & 255];
    }
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>
#include <wmmintrin.h>

static inline uint64_t octets_load(const unsigned char *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t octets_crc_by_instruction(uint32_t crc, const unsigned char *data,
                                                                            size_t size) {
    uint64_t state = crc;
    while (size >= 8) {
        state = _mm_crc32_u64(state, octets_load(data));
        data += 8;
        size -= 8;
    }
    while (size--) {
        state = _mm_crc32_u8((uint32_t)state, *data++);
    }
    return (uint32_t)state;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t octets_crc_by_lanes(uint32_t crc, const unsigned char *data,
                                                                             size_t size) {
    while (size >= 3 * OCTETS_LANE_BYTES_MIN) {
        size_t lane = size / 24 * 8;
        if (lane > OCTETS_LANE_BYTES_MAX) {
            lane = OCTETS_LANE_BYTES_MAX;
        }
        uint64_t first = crc, second = 0, third = 0;
        for (const unsigned char *stop = data + lane; data < stop; data += 8) {
            first = _mm_crc32_u64(first, octets_load(data));
            second = _mm_crc32_u64(second, octets_load(data + lane));
            third = _mm_crc32_u64(third, octets_load(data + 2 * lane));
        }
        __m128i moved_first = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)first),
                                                   _mm_cvtsi32_si128((int)octets_crc_shift[2 * lane / 8]), 0);
        __m128i moved_second =
            _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)second), _mm_cvtsi32_si128((int)octets_crc_shift[lane / 8]), 0);
        uint64_t moved = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(moved_first, moved_second));
        crc = (uint32_t)(_mm_crc32_u64(0, moved) ^ third);
        data += 2 * lane;
        size -= 3 * lane;
    }
    return octets_crc_by_instruction(crc, data, size);
}

static int octets_crc_choose(void) {
    octets_crc_make_tables();
    octets_crc_shift[1] = 1;
    for (size_t words = 2; words <= 2 * OCTETS_LANE_BYTES_MAX / 8; words++) {
        const unsigned char zeros[8] = {0};
        octets_crc_shift[words] = octets_crc_by_tables(octets_crc_shift[words - 1], zeros, 8);
    }
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2")) {
        return 1;
    }
    return __builtin_cpu_supports("pclmul") ? 3 : 2;
}

/* Older clangs offer the instruction only where the whole file may use it. */
#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__)) && \
    (defined(__ARM_FEATURE_CRC32) || (defined(__GNUC__) && !defined(__clang__)))
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

__attribute__((target("+crc"))) static uint32_t octets_crc_by_instruction(uint32_t crc, const unsigned char *data,
                                                                          size_t size) {
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __crc32cd(crc, word);
        data += 8;
        size -= 8;
    }
    while (size--) {
        crc = __crc32cb(crc, *data++);
    }
    return crc;
}

#define octets_crc_by_lanes octets_crc_by_instruction

static int octets_crc_choose(void) {
    octets_crc_make_tables();
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & (1ul << 7)) ? 2 : 1; /* HWCAP_CRC32 */
#else
    return 2;
#endif
}

#else

#define octets_crc_by_lanes octets_crc_by_tables
#define octets_crc_by_instruction octets_crc_by_tables

static int octets_crc_choose(void) {
    octets_crc_make_tables();
    return 1;
}

#endif

/* CRC32C of data[start:end], going on from the CRC32C of what stands before it. */
static inline unsigned int octets_crc32c_of(const unsigned char *data, ptrdiff_t start, ptrdiff_t end, unsigned int seed) {
    uint32_t crc = ~(uint32_t)seed;
    size_t size = (size_t)(end - start);
    if (octets_crc_kind == 0) {
        octets_crc_kind = octets_crc_choose();
    }
    if (octets_crc_kind == 3) {
        crc = octets_crc_by_lanes(crc, data + start, size);
    } else if (octets_crc_kind == 2) {
        crc = octets_crc_by_instruction(crc, data + start, size);
    } else {
        crc = octets_crc_by_tables(crc, data + start, size);
    }
    return ~crc;
}

/* a * b mod P, both reflected. */
static inline uint32_t octets_crc_times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
        if (a & bit) {
            product ^= b;
        }
        b = (b >> 1) ^ ((b & 1) ? 0x82f63b78u : 0u);
    }
    return product;
}

/* The CRC32C of two pieces, one behind the other, from that of each: the first one's, moved over the second's bytes, is added. */
static inline unsigned int octets_crc32c_joined(unsigned int first, unsigned int second, ptrdiff_t second_bytes) {
    uint32_t power = 0x00800000u, moved = first; /* x^8 */
    for (size_t left = (size_t)second_bytes; left; left >>= 1) {
        if (left & 1) {
            moved = octets_crc_times(power, moved);
        }
        power = octets_crc_times(power, power);
    }
    return moved ^ second;
}

#endif
