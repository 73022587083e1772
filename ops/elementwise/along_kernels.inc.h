/* along_kernels.inc.h — rows of elements of one type down to an element each, for the table that typed_kernels.inc.h
 * defines. */

#define ALONG_ARGS void *out, const void *in, int64_t rows, int64_t n, int64_t columns
#define NOT_TWICE __attribute__((noinline)) /* what two functions call is not in both */

/* Integers, of which the compiler makes vectors: a loop over a row that is any order of operations. From the first
 * element on where that makes no difference, for the sake of rows of whole vectors. */
#define ALONG(how, head, type, first, load, result, store)                                                   \
    how static void head                                                                                     \
    {                                                                                                        \
        const type *p = in;                                                                                  \
        (void)columns;                                                                                       \
        for (int64_t r = 0; r < rows; r++, p += n) {                                                         \
            type x = load(p[0]);                                                                             \
            for (int64_t i = first; i < n; i++) {                                                            \
                const type y = load(p[i]);                                                                   \
                x = (type)(result);                                                                          \
            }                                                                                                \
            ((type *)out)[r] = store(x);                                                                     \
        }                                                                                                    \
    }

/* What it leaves as numbers one by one: four vectors of the level at a time. */
#if defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif
enum { LANES = VECTOR_BYTES / 8, VECTORS = 4 };
typedef double real_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef int64_t whole_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define ALONG_VECTORS(head, type, vector, load, load_one, join, join_one)                                    \
    static NOT_TWICE void head                                                                               \
    {                                                                                                        \
        const type *p = in;                                                                                  \
        for (int64_t r = 0; r < rows; r++, p += n) {                                                         \
            const vector *v = (const vector *)p;                                                             \
            const int64_t whole = n / LANES;                                                                 \
            int64_t i = 0;                                                                                   \
            vector acc[VECTORS];                                                                             \
            if (whole >= VECTORS) {                                                                          \
                _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) acc[j] = load(v[j]);               \
                for (i = VECTORS; i + VECTORS <= whole; i += VECTORS)                                        \
                    _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) acc[j] =                       \
                        join(acc[j], load(v[i + j]));                                                        \
                for (; i < whole; i++)                                                                       \
                    acc[0] = join(acc[0], load(v[i]));                                                       \
                acc[0] = join(join(acc[0], acc[1]), join(acc[2], acc[3]));                                   \
                i *= LANES;                                                                                  \
            }                                                                                                \
            for (int64_t c = 0; c < columns; c++) {                                                          \
                type x = i > 0 ? acc[0][c] : load_one(p[c]);                                                 \
                for (int64_t j = columns; i > 0 && j < LANES; j += columns)                                  \
                    x = join_one(x, acc[0][c + j]);                                                          \
                for (int64_t j = i > 0 ? i : columns; j < n; j += columns)                                   \
                    x = join_one(x, load_one(p[c + j]));                                                     \
                ((type *)out)[r * columns + c] = load_one(x);                                                \
            }                                                                                                \
        }                                                                                                    \
    }

#define AS_IS(x) (x)
#define SUM(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
ALONG_VECTORS(along_Add_DOUBLE(ALONG_ARGS), double, real_vector, AS_IS, AS_IS, SUM, SUM)
ALONG_VECTORS(along_Mul_DOUBLE(ALONG_ARGS), double, real_vector, AS_IS, AS_IS, TIMES, TIMES)

/* The largest of numbers some bits of which are turned over by flip, and back: of a double its sign. NaN is larger than
 * any. */
#define FLIPPED(x) ((x) ^ flip)
#define SIGNED_REALS(x) ((real_vector)((whole_vector)(x) ^ flip))
#define SIGNED_REAL(x) (flip ? -(x) : (x))
#define CHOICE(take, x, y) (((whole_vector)(y) & (take)) | ((whole_vector)(x) & ~(take)))
#if defined(__AVX2__)
/* Its instruction has the second one where either is NaN; all bits set are one, too. */
#define LARGER_REALS(x, y) ((real_vector)_mm256_or_pd(_mm256_max_pd(x, y), _mm256_cmp_pd(x, x, _CMP_UNORD_Q)))
#elif defined(__SSE2__)
#define LARGER_REALS(x, y) ((real_vector)_mm_or_pd(_mm_max_pd(x, y), _mm_cmpunord_pd(x, x)))
#else
#define LARGER_REALS(x, y) ((real_vector)CHOICE(((y) > (x)) | ((y) != (y)), x, y))
#endif
#define LARGER_WHOLES(x, y) CHOICE((y) > (x), x, y)
#define LARGER(x, y) ((y) > (x) || (y) != (y) ? (y) : (x))
ALONG_VECTORS(largest_DOUBLE(ALONG_ARGS, int64_t flip), double, real_vector, SIGNED_REALS, SIGNED_REAL,
              LARGER_REALS, LARGER)
ALONG_VECTORS(largest_INT64(ALONG_ARGS, int64_t flip), int64_t, whole_vector, FLIPPED, FLIPPED, LARGER_WHOLES,
              LARGER)
#define LARGEST(type, dtype)                                                                                 \
    ALONG(HOW_##dtype NOT_TWICE, largest_##dtype(ALONG_ARGS, type flip), type, 0, (type)FLIPPED,             \
          y > x ? y : x, FLIPPED)
LARGEST(int8_t, INT8)
LARGEST(int16_t, INT16)
LARGEST(int32_t, INT32)

#define EXTREME(name, dtype, of, flip)                                                                       \
    static void along_##name##_##dtype(ALONG_ARGS)                                                           \
    {                                                                                                        \
        largest_##of(out, in, rows, n, columns, flip);                                                       \
    }
#define SUMS_INT8 RARE
#define SUMS_INT16 RARE
#define SUMS_INT32
#define SUMS_INT64
/* Unsigned integers are compared as signed ones with the highest bit turned over. */
#define ALONG_INTEGERS(type, dtype, utype, udtype, real)                                                     \
    ALONG(SUMS_##dtype, along_Add_##dtype(ALONG_ARGS), utype, 1, AS_IS, WRAP(utype, +), AS_IS)               \
    ALONG(SUMS_##dtype, along_Mul_##dtype(ALONG_ARGS), utype, 1, AS_IS, WRAP(utype, *), AS_IS)               \
    EXTREME(Max, dtype, dtype, 0)                                                                            \
    EXTREME(Min, dtype, dtype, -1)                                                                           \
    EXTREME(Max, udtype, dtype, (type)((utype)1 << (sizeof(type) * 8 - 1)))                                  \
    EXTREME(Min, udtype, dtype, (type)(((utype)1 << (sizeof(type) * 8 - 1)) - 1))
SIGNED_TYPES(ALONG_INTEGERS)
EXTREME(Max, DOUBLE, DOUBLE, 0)
EXTREME(Min, DOUBLE, DOUBLE, INT64_MIN)
