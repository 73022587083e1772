/* copy.c — strided copies: see copy.h. */
#include "ops/copy.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/kernels.h"

#include <string.h>

enum {
    PIECE_BYTES = 16 * 1024,   /* of one item of work */
    SLICE_BYTES = 64 * 1024,   /* least work of a thread */
    ALONE_BYTES = 1024 * 1024, /* of one without others */
    TILE = 16                  /* side of the squares a transpose is made of: a cache line of floats */
};

/* Is there room for what fewer models need? */
#if defined(__x86_64__)
enum { ROOM = true };
#else
enum { ROOM = false };
#endif

typedef struct unit16 {
    uint64_t half[2];
} unit16;

/* The same loops for each unit size. Memory is aligned to the tensor's elements, which may be smaller than
 * the unit, hence memcpy: it becomes one load or store. */
#define STRIDED_LOOPS(T)                                                                                     \
    static __attribute__((noinline)) void line_##T(char *dst, int64_t dst_step, const char *src,             \
                                                   int64_t src_step, int64_t n)                              \
    {                                                                                                        \
        T x[4];                                                                                              \
        for (; n >= 4; n -= 4, dst += 4 * dst_step, src += 4 * src_step) {                                   \
            _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                              \
                memcpy(&x[i], src + i * src_step, sizeof(T));                                                \
            _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)                                              \
                memcpy(dst + i * dst_step, &x[i], sizeof(T));                                                \
        }                                                                                                    \
        for (; n > 0; n--, dst += dst_step, src += src_step)                                                 \
            memcpy(dst, src, sizeof(T));                                                                     \
    }                                                                                                        \
    /* dst[r][c] = src[c][r]: rows of dst are dst_step apart, those of src src_step. */                      \
    static void transpose_##T(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,  \
                              int64_t columns)                                                               \
    {                                                                                                        \
        for (int64_t c = 0; c < columns; c++)                                                                \
            line_##T(dst + c * (int64_t)sizeof(T), dst_step, src + c * src_step, sizeof(T), rows);           \
    }

STRIDED_LOOPS(uint8_t)
STRIDED_LOOPS(uint16_t)
STRIDED_LOOPS(uint32_t)
STRIDED_LOOPS(uint64_t)
STRIDED_LOOPS(unit16)

/* Vectors of 16 bytes. LOW interleaves the first halves of a and b, HIGH from the second ones, EVEN
 * every other lane of both, LAST the same where b begins a lane early. */
#define LOW_uint8_t(a, b)                                                                                    \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_uint8_t(a, b)                                                                                   \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define EVEN_uint8_t(a, b)                                                                                   \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define LAST_uint8_t(a, b)                                                                                   \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOW_uint16_t(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_uint16_t(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define EVEN_uint16_t(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define LAST_uint16_t(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#define LOW_uint32_t(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_uint32_t(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define EVEN_uint32_t(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define LAST_uint32_t(a, b) __builtin_shufflevector(a, b, 0, 2, 5, 7)
#define LOW_uint64_t(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH_uint64_t(a, b) __builtin_shufflevector(a, b, 1, 3)
#define EVEN_uint64_t(a, b) __builtin_shufflevector(a, b, 0, 2)
#define LAST_uint64_t(a, b) __builtin_shufflevector(a, b, 0, 3)

#if LNT_TRIMMED
#define FEW_uint8_t(...) transpose_uint8_t(__VA_ARGS__)
#define FEW_uint16_t(...) transpose_uint16_t(__VA_ARGS__)
#define FEW_uint32_t(...) transpose_uint32_t(__VA_ARGS__)
enum { MIXES = false };
#else
static void turn_uint8_t(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                         int64_t columns);
static void turn_uint16_t(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                          int64_t columns);

typedef void (*interleave_fn)(char *dst, const char *src, int64_t half);
static void interleave_uint8_t(char *dst, const char *src, int64_t half);
static void interleave_uint16_t(char *dst, const char *src, int64_t half);

/* A dense matrix of 2, 4, 8 or 16 columns: interleaving the halves of all of it makes the highest bit of the column's
 * number the lowest one of the place, so that after as many rounds as it has bits the columns lie side by side. False
 * where its halves are no vectors, or too many. */
static bool shuffle_dense(interleave_fn interleave, char *dst, const char *src, int64_t bytes,
                          int64_t columns)
{
    enum { MOST = 512 };
    char part[2][MOST];
    if (bytes > MOST || bytes % 32 != 0 || columns < 2 || columns > 16 || (columns & (columns - 1)) != 0)
        return false;
    for (bool odd = false; columns > 1; columns /= 2, odd = !odd) {
        interleave(columns == 2 ? dst : part[odd], src, bytes / 2);
        src = part[odd];
    }
    return true;
}

/* N columns of twice as many rows or more that dst has one behind the other, or so many rows that src has so: in
 * log2(N) rounds of interleaving halves the bits of the column's number become the lowest ones of the place, in one
 * more those of the row's. The last block begins early enough to be whole. */
#define TURN_HALVES(T, N, ROUNDS)                                                                            \
    static __attribute__((noinline)) bool turn_halves_##T(char *dst, int64_t dst_step, const char *src,      \
                                                          int64_t src_step, int64_t rows, int64_t columns)   \
    {                                                                                                        \
        typedef T lanes __attribute__((vector_size(16)));                                                    \
        const bool to_rows = columns == N && dst_step == 8;                                                  \
        const int64_t n = to_rows ? rows : columns, unit = sizeof(T);                                        \
        int64_t from = src_step, to = dst_step, in_step = unit, out_step = unit;                             \
        if (n < 2 * N || !(to_rows || (rows == N && src_step == 8)))                                         \
            return false;                                                                                    \
        *(to_rows ? &to : &from) = 16;                                                                       \
        *(to_rows ? &out_step : &in_step) = 8;                                                               \
        for (int64_t i = 0; i < n; i += 2 * N) {                                                             \
            const int64_t at = lnt_least(i, n - 2 * N);                                                      \
            const char *in = src + at * in_step;                                                             \
            char *out = dst + at * out_step;                                                                 \
            lanes a[N], b[N];                                                                                \
            _Pragma("GCC unroll 8") for (int j = 0; j < N; j++, in += from) memcpy(&a[j], in, 16);           \
            for (int round = to_rows ? ROUNDS : ROUNDS + 1; round > 0; round--) {                            \
                _Pragma("GCC unroll 4") for (int j = 0; j < N / 2; j++)                                      \
                {                                                                                            \
                    b[2 * j] = LOW_##T(a[j], a[j + N / 2]);                                                  \
                    b[2 * j + 1] = HIGH_##T(a[j], a[j + N / 2]);                                             \
                }                                                                                            \
                _Pragma("GCC unroll 8") for (int j = 0; j < N; j++) a[j] = b[j];                             \
            }                                                                                                \
            _Pragma("GCC unroll 8") for (int j = 0; j < N; j++, out += to) memcpy(out, &a[j], 16);           \
        }                                                                                                    \
        return true;                                                                                         \
    }
TURN_HALVES(uint8_t, 8, 3)
TURN_HALVES(uint16_t, 4, 2)

/* Fewer rows or columns than `lanes`, small units, in squares that end in columns to come, or in rows to come where
 * those are one after the other; what is left by `rest`. */
static __attribute__((noinline)) void turn_few(lnt_turn_fn squares, lnt_turn_fn rest,
                                               interleave_fn interleave, int64_t lanes, char *dst,
                                               int64_t dst_step, const char *src, int64_t src_step,
                                               int64_t rows, int64_t columns)
{
    const int64_t unit = 16 / lanes;
    char part[16][16];
    if (ROOM && src_step == rows * unit && dst_step == columns * unit &&
        shuffle_dense(interleave, dst, src, rows * dst_step, columns))
        return;
    if ((lanes == 16 ? turn_halves_uint8_t : turn_halves_uint16_t)(dst, dst_step, src, src_step, rows,
                                                                   columns))
        return;
    if (rows < lanes && src_step >= rows * unit && (columns - lanes) * src_step >= 16 - rows * unit) {
        /* The last square begins early enough to be whole; those whose rows would end behind src have them last. */
        for (int64_t c = 0; c < columns; c += lanes) {
            c = lnt_least(c, columns - lanes);
            const int64_t early = (columns - lanes - c) * src_step < 16 - rows * unit ? lanes - rows : 0;
            squares(part[0], 16, src + c * src_step - early * unit, src_step, lanes, lanes);
            for (int64_t r = 0; r < rows; r++)
                memcpy(dst + r * dst_step + c * unit, part[early + r], 16);
        }
        return;
    }
    if (columns < lanes && dst_step == columns * unit)
        for (; (rows - lanes + 1) * dst_step >= 16; rows -= lanes) {
            for (int64_t c = 0; c < lanes; c++)
                memcpy(part[c], src + lnt_least(c, columns - 1) * src_step, 16);
            squares(dst, dst_step, part[0], 16, lanes, lanes);
            dst += lanes * dst_step;
            src += 16;
        }
    rest(dst, dst_step, src, src_step, rows, columns);
}
static void mix_few(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                    int64_t columns);
#define FEW_uint32_t(...) mix_few(__VA_ARGS__)
enum { MIXES = true };
#define FEW_uint8_t(...) turn_few(turn_uint8_t, transpose_uint8_t, interleave_uint8_t, 16, __VA_ARGS__)
#define FEW_uint16_t(...) turn_few(turn_uint16_t, transpose_uint16_t, interleave_uint16_t, 8, __VA_ARGS__)
#endif
#define FEW_uint64_t(...) transpose_uint64_t(__VA_ARGS__)

/* turn_T transposes as transpose_T, in squares of one vector's lanes: in each round neighbors of the upper and
 * lower half are interleaved, and after log2(lanes) rounds every row is a column. The last squares begin early
 * enough to be whole. every_second_T gathers n units two apart. */
#define VECTOR_LOOPS(T, LANES)                                                                               \
    typedef T vector_##T __attribute__((vector_size(16)));                                                   \
    static inline void square_of_lanes_##T(char *dst, int64_t dst_step, const char *src, int64_t src_step)   \
    {                                                                                                        \
        vector_##T a[LANES], b[LANES];                                                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) memcpy(&a[i], src + i * src_step, 16);      \
        _Pragma("GCC unroll 4") for (int round = 1; round < LANES; round *= 2)                               \
        {                                                                                                    \
            _Pragma("GCC unroll 8") for (int i = 0; i < LANES / 2; i++)                                      \
            {                                                                                                \
                b[2 * i] = LOW_##T(a[i], a[i + LANES / 2]);                                                  \
                b[2 * i + 1] = HIGH_##T(a[i], a[i + LANES / 2]);                                             \
            }                                                                                                \
            _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) a[i] = b[i];                            \
        }                                                                                                    \
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) memcpy(dst + i * dst_step, &a[i], 16);      \
    }                                                                                                        \
    static void turn_##T(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,       \
                         int64_t columns)                                                                    \
    {                                                                                                        \
        if (rows < LANES || columns < LANES) {                                                               \
            FEW_##T(dst, dst_step, src, src_step, rows, columns);                                            \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < rows; i += LANES) {                                                          \
            const int64_t r = i + LANES < rows ? i : rows - LANES;                                           \
            for (int64_t j = 0; j < columns; j += LANES) {                                                   \
                const int64_t c = j + LANES < columns ? j : columns - LANES;                                 \
                square_of_lanes_##T(dst + r * dst_step + c * (int64_t)sizeof(T), dst_step,                   \
                                    src + c * src_step + r * (int64_t)sizeof(T), src_step);                  \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void every_second_##T(char *dst, const char *src, int64_t n)                                      \
    {                                                                                                        \
        vector_##T a, b;                                                                                     \
        if (n < LANES) {                                                                                     \
            line_##T(dst, sizeof(T), src, 2 * sizeof(T), n);                                                 \
            return;                                                                                          \
        }                                                                                                    \
        for (; n > LANES; n -= LANES, src += 32, dst += 16) {                                                \
            memcpy(&a, src, 16);                                                                             \
            memcpy(&b, src + 16, 16);                                                                        \
            a = EVEN_##T(a, b);                                                                              \
            memcpy(dst, &a, 16);                                                                             \
        }                                                                                                    \
        dst += (n - LANES) * (int64_t)sizeof(T);                                                             \
        src += 2 * (n - LANES) * (int64_t)sizeof(T);                                                         \
        memcpy(&a, src, 16);                                                                                 \
        memcpy(&b, src + 16 - sizeof(T), 16);                                                                \
        a = LAST_##T(a, b);                                                                                  \
        memcpy(dst, &a, 16);                                                                                 \
    }                                                                                                        \
    static __attribute__((noinline)) void twice_##T(char *dst, int64_t apart, const char *src, int64_t n)    \
    {                                                                                                        \
        vector_##T a, b;                                                                                     \
        for (; n >= LANES; n -= LANES, src += 16, dst += 32) {                                               \
            memcpy(&a, src, 16);                                                                             \
            b = HIGH_##T(a, a);                                                                              \
            a = LOW_##T(a, a);                                                                               \
            memcpy(dst, &a, 16);                                                                             \
            memcpy(dst + 16, &b, 16);                                                                        \
            if (apart == 0)                                                                                  \
                continue;                                                                                    \
            memcpy(dst + apart, &a, 16);                                                                     \
            memcpy(dst + apart + 16, &b, 16);                                                                \
        }                                                                                                    \
        for (; n > 0; n--, src += sizeof(T), dst += 2 * sizeof(T)) {                                         \
            const T two[2] = {((const T *)(const void *)src)[0], ((const T *)(const void *)src)[0]};         \
            memcpy(dst, two, sizeof two);                                                                    \
            memcpy(dst + apart, two, sizeof two);                                                            \
        }                                                                                                    \
    }                                                                                                        \
    /* Pairs of vectors, as long as what is too much lies in rows to come; how many rows that were. */       \
    static int64_t each_##T(char *dst, const char *src, int64_t src_step, int64_t rows, int64_t bytes)       \
    {                                                                                                        \
        const int64_t whole = (bytes + 31) & -32;                                                            \
        int64_t done = 0;                                                                                    \
        for (int64_t left = rows * bytes; left >= whole && done < rows; done++, left -= bytes) {             \
            T x;                                                                                             \
            memcpy(&x, src + done * src_step, sizeof x);                                                     \
            const vector_##T v = (vector_##T){0} + x;                                                        \
            for (char *to = dst + done * bytes, *end = to + bytes; to < end; to += 32)                       \
                memcpy(to, &v, 16), memcpy(to + 16, &v, 16);                                                 \
        }                                                                                                    \
        return done;                                                                                         \
    }

VECTOR_LOOPS(uint8_t, 16)
VECTOR_LOOPS(uint16_t, 8)
VECTOR_LOOPS(uint32_t, 4)
VECTOR_LOOPS(uint64_t, 2)

#if !LNT_TRIMMED
#define INTERLEAVE(T)                                                                                        \
    static void interleave_##T(char *dst, const char *src, int64_t half)                                     \
    {                                                                                                        \
        for (int64_t i = 0; i < half; i += 16) {                                                             \
            vector_##T a, b;                                                                                 \
            memcpy(&a, src + i, 16);                                                                         \
            memcpy(&b, src + half + i, 16);                                                                  \
            const vector_##T low = LOW_##T(a, b), high = HIGH_##T(a, b);                                     \
            memcpy(dst + 2 * i, &low, 16);                                                                   \
            memcpy(dst + 2 * i + 16, &high, 16);                                                             \
        }                                                                                                    \
    }
INTERLEAVE(uint8_t)
INTERLEAVE(uint16_t)

/* Four rows of 2 or 3 columns, one after the other. */
static inline void mix(char *dst, const char *src, int64_t src_step, int64_t columns)
{
    vector_uint32_t a, b, c;
    memcpy(&a, src, 16);
    memcpy(&b, src + src_step, 16);
    vector_uint32_t low = LOW_uint32_t(a, b), middle = HIGH_uint32_t(a, b);
    if (columns == 3) {
        memcpy(&c, src + 2 * src_step, 16);
        const vector_uint32_t last = __builtin_shufflevector(middle, c, 6, 2, 3, 7);
        memcpy(dst + 32, &last, 16);
        middle = __builtin_shufflevector(LOW_uint32_t(b, c), middle, 2, 3, 4, 5);
        low = __builtin_shufflevector(low, c, 0, 1, 4, 2);
    }
    memcpy(dst, &low, 16);
    memcpy(dst + 16, &middle, 16);
}

/* The last rows begin early enough to be four; fewer are strided lines. */
static __attribute__((noinline)) void mix_few(char *dst, int64_t dst_step, const char *src, int64_t src_step,
                                              int64_t rows, int64_t columns)
{
    if (rows < 4) {
        for (int64_t r = 0; r < rows; r++)
            line_uint32_t(dst + r * dst_step, 4, src + r * 4, src_step, columns);
        return;
    }
    if ((columns != 2 && columns != 3) || dst_step != 4 * columns) {
        transpose_uint32_t(dst, dst_step, src, src_step, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i += 4) {
        const int64_t r = i + 4 < rows ? i : rows - 4;
        mix(dst + r * dst_step, src + 4 * r, src_step, columns);
    }
}
#endif

#define turn_unit16 transpose_unit16

void lnt_turn_scalar(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                     int64_t columns)
{
    turn_uint32_t(dst, dst_step, src, src_step, rows, columns);
}

static void every_second_unit16(char *dst, const char *src, int64_t n)
{
    line_unit16(dst, 16, src, 32, n);
}

static bool is_unit(int64_t bytes)
{
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/* Calls the loop of c's unit. */
#define BY_UNIT(unit, loop, ...)                                                                             \
    do {                                                                                                     \
        switch (unit) {                                                                                      \
        case 1: loop##_uint8_t(__VA_ARGS__); break;                                                          \
        case 2: loop##_uint16_t(__VA_ARGS__); break;                                                         \
        case 4: loop##_uint32_t(__VA_ARGS__); break;                                                         \
        case 8: loop##_uint64_t(__VA_ARGS__); break;                                                         \
        default: loop##_unit16(__VA_ARGS__); break;                                                          \
        }                                                                                                    \
    } while (0)

void lnt_repeat_twice(void *dst, int64_t apart, const void *src, int64_t n, size_t unit)
{
    switch (unit) {
    case 1: twice_uint8_t(dst, apart, src, n); break;
    case 2: twice_uint16_t(dst, apart, src, n); break;
    case 4: twice_uint32_t(dst, apart, src, n); break;
    case 8: twice_uint64_t(dst, apart, src, n); break;
    default: LNT_ASSERT(false);
    }
}

/* The value over and over. */
static void set_pattern(uint64_t pattern[2], const void *value, size_t unit)
{
    memcpy(pattern, value, unit);
    switch (unit) {
    case 1: pattern[0] = (pattern[0] & UINT8_MAX) * (UINT64_MAX / UINT8_MAX); break;
    case 2: pattern[0] = (pattern[0] & UINT16_MAX) * (UINT64_MAX / UINT16_MAX); break;
    case 4: pattern[0] = (pattern[0] & UINT32_MAX) * (UINT64_MAX / UINT32_MAX); break;
    default: break;
    }
    if (unit < 16)
        pattern[1] = pattern[0];
}

void lnt_fill(void *dst, int64_t n, const void *value, size_t unit)
{
    LNT_ASSERT(unit == 1 || unit == 2 || unit == 4 || unit == 8 || unit == 16);
    uint64_t pattern[2] = {0, 0};
    char *to = dst, *const end = to + n * (int64_t)unit;
    set_pattern(pattern, value, unit);
    if (end - to < 16) {
        memcpy(to, pattern, (size_t)(end - to));
        return;
    }
    for (; end - to >= 64; to += 64)
        for (unsigned i = 0; i < 4; i++)
            memcpy(to + 16 * i, pattern, 16);
    for (; end - to >= 16; to += 16)
        memcpy(to, pattern, 16);
    memcpy(end - 16, pattern, 16); /* again, in part: whole units lie before it */
}

static int64_t whole_vectors(char *dst, const char *src, int64_t src_step, int64_t rows, int64_t bytes,
                             size_t unit)
{
    switch (unit) {
    case 1: return each_uint8_t(dst, src, src_step, rows, bytes);
    case 2: return each_uint16_t(dst, src, src_step, rows, bytes);
    case 4: return each_uint32_t(dst, src, src_step, rows, bytes);
    case 8: return each_uint64_t(dst, src, src_step, rows, bytes);
    default: return 0;
    }
}

void lnt_repeat_each(void *dst, const void *src, int64_t src_step, int64_t rows, int64_t n, size_t unit)
{
    const int64_t bytes = n * (int64_t)unit;
    LNT_ASSERT(is_unit((int64_t)unit));
    for (int64_t r = whole_vectors(dst, src, src_step, rows, bytes, unit); r < rows; r++)
        lnt_fill((char *)dst + r * bytes, n, (const char *)src + r * src_step, unit);
}

void lnt_repeat_bytes(void *dst, const void *src, int64_t bytes, int64_t times)
{
    enum { MANY = 64, STORED = 2048, LONG = 4096, NEAR = 128 * 1024 };
    const int64_t total = bytes * times;
    if (is_unit(bytes)) {
        lnt_fill(dst, times, src, (size_t)bytes);
        return;
    }
    if (dst != src)
        memcpy(dst, src, (size_t)bytes);
    for (int64_t done = bytes, n = bytes; done < total; done += n) {
        const bool waits = bytes >= MANY && done < STORED;
        if (!waits && done < (bytes < LONG ? NEAR : 0))
            n = done;
        memcpy((char *)dst + done, waits ? src : dst, (size_t)lnt_least(n, total - done));
    }
}

void lnt_turn_apart(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t rows,
                    int64_t columns, size_t unit)
{
    LNT_ASSERT(is_unit((int64_t)unit));
    BY_UNIT(unit, turn, dst, dst_step, src, src_step, columns, rows);
}

void lnt_turn(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t rows, int64_t columns,
              size_t unit)
{
    const int64_t size = (int64_t)unit;
    lnt_turn_apart(dst, dst_step * size, src, src_step * size, rows, columns, unit);
}

void lnt_turn_by(lnt_turn_fn turn, void *dst, int64_t dst_step, const void *src, int64_t src_step,
                 int64_t rows, int64_t columns, size_t unit)
{
    if (unit == 4)
        turn(dst, dst_step * 4, src, src_step * 4, columns, rows);
    else
        lnt_turn(dst, dst_step, src, src_step, rows, columns, unit);
}

/* ---- at bind ---- */

void lnt_copy_begin(lnt_copy *c, size_t element)
{
    *c = (lnt_copy){.unit = (int64_t)element};
}

void lnt_copy_axis(lnt_copy *c, int64_t n, int64_t dst_step, int64_t src_step)
{
    LNT_ASSERT(c->rank < LNT_COPY_AXES && n >= 0);
    c->n[c->rank] = n;
    c->dst[c->rank] = dst_step;
    c->src[c->rank] = src_step;
    c->rank++;
}

void lnt_copy_box(lnt_copy *c, size_t element, unsigned rank, const int64_t *dims, const int64_t *dst_strides,
                  const int64_t *src_strides)
{
    lnt_copy_begin(c, element);
    for (unsigned i = 0; i < rank; i++)
        lnt_copy_axis(c, dims[i], dst_strides[i] * (int64_t)element, src_strides[i] * (int64_t)element);
    lnt_copy_settle(c);
}

static void set_axis(lnt_copy *c, unsigned i, int64_t n, int64_t dst, int64_t src)
{
    c->n[i] = n;
    c->dst[i] = dst;
    c->src[i] = src;
}

static void move_axis(lnt_copy *c, unsigned from, unsigned to)
{
    const int64_t n = c->n[from], dst = c->dst[from], src = c->src[from];
    for (; from > to; from--)
        set_axis(c, from, c->n[from - 1], c->dst[from - 1], c->src[from - 1]);
    for (; from < to; from++)
        set_axis(c, from, c->n[from + 1], c->dst[from + 1], c->src[from + 1]);
    set_axis(c, to, n, dst, src);
}

/* Drops axes of one element and puts the others in the order of dst, outermost first. */
static void order_axes(lnt_copy *c)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < c->rank; i++)
        if (c->n[i] != 1)
            set_axis(c, rank++, c->n[i], c->dst[i], c->src[i]);
    c->rank = rank;
    for (unsigned i = 1; i < rank; i++) {
        unsigned to = i;
        while (to > 0 && c->dst[to - 1] < c->dst[i])
            to--;
        move_axis(c, i, to);
    }
}

/* Joins axes that are one axis on both sides, and a dense last axis with the unit. */
static void merge_axes(lnt_copy *c)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < c->rank; i++) {
        const int64_t n = c->n[i], dst = c->dst[i], src = c->src[i];
        if (rank > 0 && c->dst[rank - 1] == dst * n && c->src[rank - 1] == src * n)
            set_axis(c, rank - 1, c->n[rank - 1] * n, dst, src);
        else
            set_axis(c, rank++, n, dst, src);
    }
    if (rank > 0 && c->dst[rank - 1] == c->unit && c->src[rank - 1] == c->unit)
        c->unit *= c->n[--rank];
    c->rank = rank;
}

/* Moves the axis that is dense in src beside the last, which is dense in dst; false if there is no such pair, or the
 * last repeats one unit. */
static bool find_transpose(lnt_copy *c)
{
    if (c->rank < 2 || c->dst[c->rank - 1] != c->unit || c->src[c->rank - 1] == 0 ||
        (c->n[c->rank - 1] < 4 && (!MIXES || c->unit != 4)))
        return false;
    const int64_t columns = c->n[c->rank - 1];
    for (unsigned i = 0; i + 1 < c->rank; i++)
        if (c->src[i] == c->unit && c->n[i] >= 4 &&
            (!MIXES || columns >= 4 || c->dst[i] == columns * c->unit)) { /* mix_few */
            move_axis(c, i, c->rank - 2);
            return true;
        }
    return false;
}

/* Does the axis before the last repeat a line of a few vectors, into two or more? */
static bool repeats_vectors(const lnt_copy *c)
{
    const unsigned last = c->rank - 1;
    return ROOM && c->kind == LNT_COPY_BYTES && c->rank > 2 && c->src[last - 1] == 0 &&
           c->dst[last - 1] == c->n[last] && c->n[last] >= 8 && c->n[last] <= 128 && c->dst[last - 2] >= 32 &&
           c->src[last - 2] >= c->n[last] && c->dst[last - 2] == c->n[last] * c->n[last - 1];
}

/* A line of few elements costs more to start than to copy: the axis before it makes a longer one. One item of
 * work has all such lines, so that what it writes is still in the cache when its gaps are filled; and as many other
 * lines as are short together. So does one before a repeat of a line. */
static void join_lines(lnt_copy *c)
{
    const unsigned last = c->rank - 1;
    if (c->rank < 2)
        return;
    const bool short_ones = repeats_vectors(c);
    if (!short_ones && c->kind == LNT_COPY_BYTES && c->rank > 2 && c->src[last - 1] == 0 &&
        c->dst[last - 1] == c->n[last] && c->n[last - 2] > c->n[last - 1] &&
        c->n[last - 2] * c->n[last - 1] * c->n[last] <= SLICE_BYTES)
        move_axis(c, last - 1, last - 2);
    if (!short_ones && c->kind == LNT_COPY_BYTES && c->rank > 2 && c->n[last] <= 64 && c->n[last - 1] < 4 &&
        c->n[last - 2] >= 16)
        move_axis(c, last - 2, last - 1);
    /* Three lines whose elements take turns are taken apart. */
    for (unsigned i = 0; ROOM && i + 2 < c->rank; i++)
        if (c->kind == LNT_COPY_LINE && c->n[i] == 3 && c->src[i] == c->unit && c->src[last] == 3 * c->unit &&
            c->n[last] >= TILE)
            move_axis(c, i, last - 1);
    const bool few = c->kind == LNT_COPY_LINE && c->n[last] < 8 && c->n[last - 1] > c->n[last];
    if (few)
        move_axis(c, last - 1, last);
    const int64_t fitting = PIECE_BYTES / (c->n[last] * c->unit);
    const bool beside = c->src[last - 1] == c->unit && c->n[last - 1] < 4;
    if (few || beside || c->n[last - 1] <= fitting)
        c->rows = c->n[last - 1];
    else if (fitting > 1)
        c->rows = fitting;
}

/* Elements of axis i that one item covers. */
static int64_t span(const lnt_copy *c, unsigned i)
{
    return i + 2 == c->rank ? c->rows : 1;
}

static void cut_into_items(lnt_copy *c)
{
    const unsigned last = c->rank - 1;
    c->piece = PIECE_BYTES / (c->unit * c->rows);
    if (c->piece > c->n[last])
        c->piece = c->n[last];
    c->pieces = (c->n[last] + c->piece - 1) / c->piece;
    c->item_bytes = c->piece * c->unit * c->rows;
    c->items = c->pieces;
    for (unsigned i = 0; i < last; i++)
        c->items *= (c->n[i] + span(c, i) - 1) / span(c, i);
}

void lnt_copy_settle(lnt_copy *c)
{
    c->kind = LNT_COPY_NOTHING;
    c->rows = 1;
    if (c->unit == 0) /* a type without a size: nothing to move */
        return;
    for (unsigned i = 0; i < c->rank; i++)
        if (c->n[i] == 0)
            return;
    order_axes(c);
    merge_axes(c);
    if (c->rank == 0 || !is_unit(c->unit)) {
        c->kind = LNT_COPY_BYTES;
        set_axis(c, c->rank++, c->unit, 1, 1);
        c->unit = 1;
    } else {
        c->kind = find_transpose(c) ? LNT_COPY_TRANSPOSE : LNT_COPY_LINE;
    }
    const int64_t line = c->kind == LNT_COPY_TRANSPOSE ? c->unit * c->n[c->rank - 1] : 0;
    if (c->kind == LNT_COPY_TRANSPOSE)
        c->rows = line <= 64     ? lnt_least(PIECE_BYTES / line, c->n[c->rank - 2])
                  : c->unit == 1 ? 2 * TILE
                                 : TILE;
    else
        join_lines(c);
    cut_into_items(c);
}

bool lnt_copy_is_plain(const lnt_copy *c)
{
    return c->kind == LNT_COPY_NOTHING || (c->kind == LNT_COPY_BYTES && c->rank == 1);
}

/* ---- at run ---- */

typedef struct copy_job {
    const lnt_copy *c;
    char *dst;
    const char *src;
} copy_job;

/* Where a walk over the items stands: piece of the last axis, index along the others. */
typedef struct cursor {
    int64_t at[LNT_COPY_AXES];
    int64_t piece;
    char *dst;
    const char *src;
} cursor;

static __attribute__((noinline)) void seek(const copy_job *job, int64_t item, cursor *w)
{
    const lnt_copy *c = job->c;
    w->dst = job->dst;
    w->src = job->src;
    w->piece = item % c->pieces;
    item /= c->pieces;
    for (unsigned i = c->rank - 1; i-- > 0;) {
        const int64_t step = span(c, i), n = (c->n[i] + step - 1) / step;
        w->at[i] = item % n * step;
        item /= n;
        w->dst += w->at[i] * c->dst[i];
        w->src += w->at[i] * c->src[i];
    }
}

/* A step further along an axis, or where it ends along one before it: which that was. */
static unsigned step_along(const lnt_copy *c, cursor *w, unsigned axis)
{
    for (axis++; axis-- > 0;) {
        const int64_t step = span(c, axis);
        w->at[axis] += step;
        w->dst += step * c->dst[axis];
        w->src += step * c->src[axis];
        if (w->at[axis] < c->n[axis])
            return axis;
        w->dst -= w->at[axis] * c->dst[axis];
        w->src -= w->at[axis] * c->src[axis];
        w->at[axis] = 0;
    }
    return 0;
}

/* To the next item; the axis that it is a step further along. */
static unsigned advance(const lnt_copy *c, cursor *w)
{
    const unsigned last = c->rank - 1;
    if (++w->piece < c->pieces || last == 0)
        return last;
    w->piece = 0;
    return step_along(c, w, last - 1);
}

/* Items of a step along an axis whose other steps repeat it in one piece, while it is in the cache; 0: it is none. Of
 * long lines only what is in a near one: they are copied again as quickly. */
static int64_t repeated_items(const lnt_copy *c, unsigned axis)
{
    enum { CACHED = 4 << 20, OF_LINES = 128 << 20 };
    int64_t items = c->pieces, bytes = c->unit;
    if (c->src[axis] != 0 || c->kind == LNT_COPY_TRANSPOSE || axis + 2 >= c->rank)
        return 0;
    for (unsigned i = c->rank - 1; i > axis; bytes *= c->n[i--])
        items *= i + 1 < c->rank ? (c->n[i] + span(c, i) - 1) / span(c, i) : 1;
    const bool cached = bytes <= CACHED && (bytes - SLICE_BYTES) * (c->n[c->rank - 1] * c->unit) <= OF_LINES;
    return cached && c->dst[axis] == bytes ? items : 0;
}

static void copy_line(const lnt_copy *c, char *dst, const char *src, int64_t n)
{
    const int64_t dst_step = c->dst[c->rank - 1], src_step = c->src[c->rank - 1];
    if (src_step == 0 && dst_step == c->unit)
        lnt_fill(dst, n, src, (size_t)c->unit);
    else if (src_step == 2 * c->unit && dst_step == c->unit)
        BY_UNIT(c->unit, every_second, dst, src, n);
    else
        BY_UNIT(c->unit, line, dst, dst_step, src, src_step, n);
}

/* Lines of one T or two, pixels for instance: two moves that may overlap take less than a call for each. */
#define SHORT_LINES(T)                                                                                       \
    static void short_lines_##T(char *dst, int64_t dst_step, const char *src, int64_t src_step,              \
                                int64_t rows, int64_t bytes)                                                 \
    {                                                                                                        \
        const int64_t behind = bytes - (int64_t)sizeof(T);                                                   \
        for (; rows > 0; rows--, dst += dst_step, src += src_step) {                                         \
            T first, last;                                                                                   \
            memcpy(&first, src, sizeof first);                                                               \
            memcpy(&last, src + behind, sizeof last);                                                        \
            memcpy(dst, &first, sizeof first);                                                               \
            memcpy(dst + behind, &last, sizeof last);                                                        \
        }                                                                                                    \
    }
typedef uint8_t vectors __attribute__((vector_size(32)));
SHORT_LINES(uint32_t)
SHORT_LINES(uint64_t)
SHORT_LINES(vector_uint8_t)
SHORT_LINES(vectors)

static __attribute__((noinline)) void byte_lines(char *dst, int64_t dst_step, const char *src,
                                                 int64_t src_step, int64_t rows, int64_t n)
{
    if (n > 64 || n < 4)
        for (; rows > 0; rows--, dst += dst_step, src += src_step)
            memcpy(dst, src, (size_t)n);
    else if (n > 32)
        short_lines_vectors(dst, dst_step, src, src_step, rows, n);
    else if (n > 16)
        short_lines_vector_uint8_t(dst, dst_step, src, src_step, rows, n);
    else if (n >= 8)
        short_lines_uint64_t(dst, dst_step, src, src_step, rows, n);
    else
        short_lines_uint32_t(dst, dst_step, src, src_step, rows, n);
}

#if defined(__SSE2__) && !LNT_TRIMMED
/* Units that three lines of dst take in turns, in whole vectors; how many of one line that were. A round moves each
 * unit a part of the way: after all there is a vector of each line. */
#define TAKE_APART(T, LANES, ROUNDS)                                                                         \
    static int64_t take_apart_##T(char *dst, int64_t dst_step, const char *src, int64_t n)                   \
    {                                                                                                        \
        vector_##T v[3];                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + LANES <= n; i += LANES) {                                                                 \
            const char *from = src + 3 * i * (int64_t)sizeof(T);                                             \
            _Pragma("GCC unroll 3") for (int j = 0; j < 3; j++) memcpy(&v[j], from + 16 * j, 16);            \
            _Pragma("GCC unroll 4") for (int round = 0; round < ROUNDS; round++)                             \
            {                                                                                                \
                const vector_##T first = v[0], middle = v[1];                                                \
                v[0] = LOW_##T(first, UPPER(middle));                                                        \
                v[1] = LOW_##T(UPPER(first), v[2]);                                                          \
                v[2] = LOW_##T(middle, UPPER(v[2]));                                                         \
            }                                                                                                \
            _Pragma("GCC unroll 3") for (int line = 0; line < 3; line++)                                     \
                memcpy(dst + line * dst_step + i * (int64_t)sizeof(T), &v[line], 16);                        \
        }                                                                                                    \
        return i;                                                                                            \
    }
#define UPPER(x) ((__typeof__(x))__builtin_shufflevector((vector_uint64_t)(x), (vector_uint64_t)(x), 1, 1))
TAKE_APART(uint8_t, 16, 4)
TAKE_APART(uint16_t, 8, 3)
TAKE_APART(uint32_t, 4, 2)
#undef UPPER

static int64_t take_apart_threes(char *dst, int64_t dst_step, const char *src, int64_t n, int64_t unit)
{
    switch (unit) {
    case 1: return take_apart_uint8_t(dst, dst_step, src, n);
    case 2: return take_apart_uint16_t(dst, dst_step, src, n);
    case 4: return take_apart_uint32_t(dst, dst_step, src, n);
    default: return 0;
    }
}
#endif

static void copy_lines(const lnt_copy *c, char *dst, const char *src, int64_t rows, int64_t n)
{
    const bool bytes = c->kind == LNT_COPY_BYTES;
    const int64_t dst_step = rows > 1 ? c->dst[c->rank - 2] : 0,
                  src_step = rows > 1 ? c->src[c->rank - 2] : 0;
    if (bytes && rows > 1 && src_step == 0 && dst_step == n) {
        lnt_repeat_bytes(dst, src, n, rows);
        return;
    }
    if (bytes) {
        byte_lines(dst, dst_step, src, src_step, rows, n);
        return;
    }
    if (rows > 1 && c->src[c->rank - 1] == 0 && c->dst[c->rank - 1] == c->unit && dst_step == n * c->unit) {
        lnt_repeat_each(dst, src, src_step, rows, n, (size_t)c->unit);
        return;
    }
#if defined(__SSE2__) && !LNT_TRIMMED
    if (rows == 3 && src_step == c->unit && c->src[c->rank - 1] == 3 * c->unit &&
        c->dst[c->rank - 1] == c->unit) {
        const int64_t done = take_apart_threes(dst, dst_step, src, n, c->unit);
        dst += done * c->unit;
        src += 3 * done * c->unit;
        n -= done;
    }
#endif
    for (; rows > 0 && n > 0; rows--, dst += dst_step, src += src_step)
        copy_line(c, dst, src, n);
}

/* Is an item all lines of an axis, with others beside it that are no repeats of it? */
static bool has_all_lines(const lnt_copy *c)
{
    const unsigned last = c->rank - 1;
    return ROOM && last > 1 && c->kind != LNT_COPY_TRANSPOSE && c->src[last - 2] != 0 &&
           c->rows == c->n[last - 1] && c->pieces == 1;
}

/* A line of `bytes` so many times, in vectors of which the last may lie in part behind the line and its repeats. */
static void repeat_vectors(char *dst, const char *src, int64_t bytes, int64_t times)
{
    for (; times > 0; times--, dst += bytes)
        for (int64_t i = 0; i < bytes; i += 16)
            memcpy(dst + i, src + i, 16);
}

/* So many such items; the walk stands at the last of them then. What vectors hold too much of a short line lies in
 * lines to come. */
static int64_t copy_all_lines(const lnt_copy *c, cursor *w, int64_t items)
{
    const unsigned axis = c->rank - 3;
    const int64_t n = c->n[axis + 2];
    const bool short_ones = repeats_vectors(c);
    for (int64_t i = 1;; i++) {
        if (short_ones && (items - i) * n >= 16)
            repeat_vectors(w->dst, w->src, n, c->rows);
        else
            copy_lines(c, w->dst, w->src, c->rows, n);
        if (i == items)
            break;
        w->dst += c->dst[axis];
        w->src += c->src[axis];
    }
    w->at[axis] += items - 1;
    return items;
}

static void transpose_tiles(const lnt_kernel *k, const lnt_copy *c, const cursor *w, char *dst,
                            const char *src, int64_t columns)
{
    const unsigned axis = c->rank - 2;
    const int64_t rows = lnt_least(c->n[axis] - w->at[axis], c->rows);
    const int64_t row_step = c->dst[axis], column_step = c->src[axis + 1];
    for (int64_t begin = 0, width; begin < columns; begin += width) {
        const int64_t left = columns - begin;
        /* Lines of src that are read once need not stay in the cache; the last of others takes what is less than a
         * vector, too. */
        width = rows * c->unit <= 16 || left < 2 * TILE ? left : TILE;
        char *to = dst + begin * c->unit;
        const char *from = src + begin * column_step;
        if (c->unit == 4)
            k->kernels->turn(to, row_step, from, column_step, rows, width);
        else
            lnt_turn_apart(to, row_step, from, column_step, width, rows, (size_t)c->unit);
    }
}

static lnt_status copy_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const copy_job *job = arg;
    const lnt_copy *c = job->c;
    const unsigned last = c->rank - 1;
    cursor w = {.piece = 0};
    seek(job, begin, &w);
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = w.piece * c->piece, left = c->n[last] - first;
        const int64_t n = left < c->piece ? left : c->piece;
        char *dst = w.dst + first * c->dst[last];
        const char *src = w.src + first * c->src[last];
        if (c->kind == LNT_COPY_TRANSPOSE)
            transpose_tiles(k, c, &w, dst, src, n);
        else if (has_all_lines(c))
            item += copy_all_lines(c, &w, lnt_least(c->n[last - 2] - w.at[last - 2], end - item)) - 1;
        else
            copy_lines(c, dst, src, last > 0 ? lnt_least(c->rows, c->n[last - 1] - w.at[last - 1]) : 1, n);
        for (unsigned axis = advance(c, &w); ROOM && w.at[axis] > 0;) {
            const int64_t each = repeated_items(c, axis);
            if (each == 0 || each > item + 1 - begin || each >= end - item)
                break;
            int64_t more = c->n[axis] - w.at[axis];
            if (each * more >= end - item)
                more = (end - item - 1) / each;
            char *const once = w.dst - c->dst[axis];
            lnt_repeat_bytes(once, once, c->dst[axis], more + 1);
            item += each * more;
            w.at[axis] += more - 1;
            w.dst = once + more * c->dst[axis];
            axis = step_along(c, &w, axis);
        }
    }
    return LNT_OK;
}

/* All rows of sixteens of columns. */
static lnt_status turn_columns(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const copy_job *job = arg;
    const lnt_copy *c = job->c;
    const int64_t first = begin * TILE, columns = lnt_least(end * TILE, c->n[1]) - first;
    cursor w = {.dst = job->dst + first * c->unit, .src = job->src + first * c->src[1]};
    for (; w.at[0] < c->n[0]; w.at[0] += c->rows, w.dst += c->rows * c->dst[0], w.src += c->rows * c->unit)
        transpose_tiles(k, c, &w, w.dst, w.src, columns);
    return LNT_OK;
}

lnt_status lnt_copy_run(lnt_kernel *k, const lnt_copy *c, void *dst, const void *src)
{
    LNT_ASSERT(c->kind == LNT_COPY_NOTHING || (c->rank > 0 && c->items > 0 && c->item_bytes > 0));
    LNT_ASSERT(c->kind != LNT_COPY_TRANSPOSE || c->rank >= 2);
    if (c->kind == LNT_COPY_NOTHING)
        return LNT_OK;
    copy_job job = {c, dst, src};
    if (!LNT_TRIMMED && c->by_columns && c->kind == LNT_COPY_TRANSPOSE && c->rank == 2 && k->threads > 1)
        return lnt_parallel(k, (c->n[1] + TILE - 1) / TILE, 1 + SLICE_BYTES / (c->n[0] * c->unit * TILE),
                            turn_columns, &job);
    /* What is repeated is copied from its first place, if one slice has both. */
    const int64_t slice = (!ROOM || k->threads > 1 ? SLICE_BYTES : ALONE_BYTES) / c->item_bytes,
                  grain = slice ? slice : 1;
    const bool few = !c->of_images && c->items < 2 * grain;
    return lnt_parallel(k, c->items, few ? c->items : grain, copy_items, &job);
}

lnt_status lnt_copy_bytes(lnt_kernel *k, void *dst, const void *src, int64_t bytes)
{
    enum { SHARED = 1 << 20 };
    if (dst == src || bytes == 0)
        return LNT_OK;
    if (bytes < SHARED) { /* lines that another thread has copied come slowly to the one that changes some */
        memcpy(dst, src, (size_t)bytes);
        return LNT_OK;
    }
    lnt_copy c;
    lnt_copy_begin(&c, 1);
    lnt_copy_axis(&c, bytes, 1, 1);
    lnt_copy_settle(&c);
    return lnt_copy_run(k, &c, dst, src);
}
