/* test_casts.c — every pair of element types at every level of this CPU, against one element at a time. */
#include "base/cpu.h"
#include "base/half.h"
#include "ops/element.h"
#include "ops/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const lnt_dtype types[] = {LNT_FLOAT,  LNT_FLOAT16, LNT_DOUBLE,  LNT_INT8,  LNT_UINT8,
                                  LNT_INT16,  LNT_UINT16,  LNT_INT32,   LNT_INT64, LNT_UINT32,
                                  LNT_UINT64, LNT_BOOL,    LNT_BFLOAT16};
enum { TYPES = sizeof types / sizeof types[0], PART = 512, ELEMENTS = 4 * PART + 41, MOST = ELEMENTS * 8 };

/* ---- one element: a real number, or an integer of 64 bits that is its own sign extension ---- */

typedef struct number {
    bool real;
    double value; /* of a real; of an integer rounded to double */
    uint64_t bits;
} number;

static number integer(int64_t x)
{
    return (number){false, (double)x, (uint64_t)x};
}

static number real(double x)
{
    return (number){true, x, 0};
}

static number load(lnt_dtype dtype, const void *data, int64_t i)
{
    const void *p = lnt_element_at(data, dtype, i);
    switch (dtype) {
    case LNT_FLOAT: return real(*(const float *)p);
    case LNT_FLOAT16: return real(lnt_f16_to_float(*(const uint16_t *)p));
    case LNT_BFLOAT16: return real(lnt_bf16_to_float(*(const uint16_t *)p));
    case LNT_DOUBLE: return real(*(const double *)p);
    case LNT_BOOL: return integer(*(const uint8_t *)p != 0);
    case LNT_INT8: return integer(*(const int8_t *)p);
    case LNT_UINT8: return integer(*(const uint8_t *)p);
    case LNT_INT16: return integer(*(const int16_t *)p);
    case LNT_UINT16: return integer(*(const uint16_t *)p);
    case LNT_INT32: return integer(*(const int32_t *)p);
    case LNT_UINT32: return integer(*(const uint32_t *)p);
    case LNT_INT64: return integer(*(const int64_t *)p);
    default: return (number){false, (double)*(const uint64_t *)p, *(const uint64_t *)p};
    }
}

/* To so many binary digits, the last no lower than 2**least; ties to even. */
static double rounded(double x, int digits, int least, double largest)
{
    if (x == 0 || !isfinite(x))
        return x;
    const int unit = ilogb(x) - digits + 1 > least ? ilogb(x) - digits + 1 : least;
    const double y = copysign(ldexp(rint(ldexp(x, -unit)), unit), x);
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

/* Towards zero; what a signed integer of so many bytes does not hold is the smallest one, but uint64 has its own
 * range. */
static uint64_t cut(double x, lnt_dtype to)
{
    const bool wide = to == LNT_INT64 || to == LNT_UINT32 || to == LNT_UINT64;
    if (to == LNT_UINT64 && x >= 0x1p63 && x < 0x1p64)
        return (uint64_t)x;
    const double y = trunc(x);
    if (wide)
        return y >= -0x1p63 && y < 0x1p63 ? (uint64_t)(int64_t)y : (uint64_t)INT64_MIN;
    return y >= -0x1p31 && y < 0x1p31 ? (uint64_t)(int64_t)y : (uint64_t)(int64_t)INT32_MIN;
}

static double as_float(number x, lnt_dtype from)
{
    if (x.real)
        return (float)x.value;
    return from == LNT_UINT64 ? (double)(float)x.bits : (double)(float)(int64_t)x.bits;
}

static bool is_cast(number x, lnt_dtype from, lnt_dtype to, const void *data, int64_t i)
{
    const number y = load(to, data, i);
    if (to == LNT_BOOL)
        return *(const uint8_t *)lnt_element_at(data, to, i) == (x.real ? x.value != 0 : x.bits != 0);
    if (!y.real) {
        const uint64_t want = x.real ? cut(x.value, to) : x.bits,
                       beyond = UINT64_MAX >> (64 - 8 * lnt_dtype_size(to));
        return ((want ^ y.bits) & beyond) == 0;
    }
    const double want = to == LNT_FLOAT16    ? rounded(x.value, 11, -24, 65504)
                        : to == LNT_BFLOAT16 ? rounded(x.value, 8, -133, 0x1.fep127)
                        : to == LNT_FLOAT    ? as_float(x, from)
                                             : x.value;
    return isnan(want) ? isnan(y.value) : want == y.value && signbit(want) == signbit(y.value);
}

/* ---- all of them ---- */

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Elements of any size, ties of few digits and next to them. The first PART are within int32, the next within uint32:
 * what is converted in parts goes another way where all of one are within int32. */
static void fill(lnt_dtype dtype, void *data, uint64_t seed)
{
    static const double edges[] = {0x1p31,    -0x1p31,        -0x1p31 - 0.5, -0x1p31 - 1, 0x1p32,   0x1p63,
                                   -0x1p63,   0x1p64,         1e300,         NAN,         INFINITY, -INFINITY,
                                   65519.999, 65520,          0x1p-25,       5e-324,      -0.0,     0x1p-134,
                                   256.5,     0x1.fffffffp30, 257.0000001};
    for (int64_t i = 0; i < ELEMENTS; i++) {
        void *p = lnt_element_at(data, dtype, i);
        const uint64_t bits = random_bits(&seed), size = random_bits(&seed) % 64;
        const bool any = i >= 2 * PART;
        const int64_t tie = (int64_t)((bits | 1) << 55 >> size) + (int64_t)(size % 3) - 1;
        const int64_t whole = i < PART        ? (int64_t)bits >> (33 + size % 31)
                              : !any          ? (int64_t)(bits >> (32 + size / 2))
                              : bits % 2 != 0 ? tie
                                              : (int64_t)bits >> size;
        const double odd = (double)whole + (double)(bits % 1024) / 1024;
        const double x = any && size < 40 && size % 2 ? edges[bits % (sizeof edges / sizeof edges[0])] : odd;
        switch (dtype) {
        case LNT_FLOAT: *(float *)p = (float)x; break;
        case LNT_FLOAT16: *(uint16_t *)p = lnt_float_to_f16((float)x); break;
        case LNT_BFLOAT16: *(uint16_t *)p = lnt_float_to_bf16((float)x); break;
        case LNT_DOUBLE: *(double *)p = x; break;
        default: memcpy(p, &whole, lnt_dtype_size(dtype)); break;
        }
    }
}

static void cast(lnt_level level, lnt_dtype from, void *src, lnt_dtype to, void *dst, int64_t n)
{
    lnt_error err;
    const int64_t type = to;
    lnt_attr attr = {.name = "to", .type = LNT_ATTR_INT, .count = 1, .i = &type};
    lnt_node node = {
        .op = lnt_op_by_name("", "Cast"), .name = "cast", .n_in = 1, .n_out = 1, .attr = &attr, .n_attr = 1};
    lnt_operand in = {.dtype = (uint8_t)from, .rank = 1, .dims = {n}, .data = src}, out = {0};
    lnt_operand *ins[1] = {&in}, *outs[1] = {&out};
    out = in;
    out.dtype = (uint8_t)to;
    out.data = NULL;
    assert_int_equal(lnt_evaluate(&lnt_malloc_allocator, &node, ins, outs, (void *[1]){dst}, level, 0, &err),
                     LNT_OK);
}

static void test_all_pairs(void **state)
{
    (void)state;
    _Alignas(8) static unsigned char src[MOST], dst[MOST + 1];
    for (unsigned level = 0; level < LNT_LEVEL_COUNT; level++)
        for (unsigned a = 0; a < TYPES && lnt_cpu_has((lnt_level)level); a++)
            for (unsigned b = 0; b < TYPES; b++) {
                const size_t bytes = ELEMENTS * lnt_dtype_size(types[b]);
                fill(types[a], src, a);
                memset(dst, 0xee, sizeof dst);
                cast((lnt_level)level, types[a], src, types[b], dst, ELEMENTS);
                assert_int_equal(dst[bytes], 0xee);
                for (int64_t i = 0; i < ELEMENTS && a != b; i++)
                    if (!is_cast(load(types[a], src, i), types[a], types[b], dst, i))
                        fail_msg("%s to %s at %s, element %d: %g", lnt_dtype_text(types[a]),
                                 lnt_dtype_text(types[b]), lnt_level_text((lnt_level)level), (int)i,
                                 load(types[a], src, i).value);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
