/* random_range.c — random elements between two bounds. */
#include "cli/data/random_range.h"

#include "base/half.h"
#include "base/kernel.h"
#include "base/small.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WHOLE = 9007199254740992; /* 2^53: whole numbers up to here are exact */

static bool read_range(const char *text, lnt_range *range)
{
    char *end, *last;
    range->low = strtod(text, &end);
    if (end == text || *end != ':')
        return false;
    range->high = strtod(end + 1, &last);
    return last != end + 1 && !*last && isfinite(range->low) && isfinite(range->high) &&
           range->low < range->high;
}

lnt_status lnt_range_of(const lnt_texts *ranges, const char *name, lnt_range *range, bool *found,
                        lnt_error *err)
{
    *found = false;
    for (size_t i = 0; ranges && i < ranges->n; i++) {
        const char *key, *rest;
        lnt_range one;
        LNT_REQUIRE(lnt_split_pair(ranges->item[i], true, &key, &rest) && read_range(rest, &one), err,
                    LNT_E_ARGUMENT, "--range NAME=LOW:HIGH, LOW below HIGH, not '%s'", ranges->item[i]);
        if (strcmp(key, name) == 0) {
            *range = one;
            *found = true;
        }
    }
    return LNT_OK;
}

/* The elements that types of whole numbers can hold, HIGH not included; false for other types. */
static bool limits_of(lnt_dtype dtype, lnt_range *most)
{
    switch (dtype) {
    case LNT_BOOL: *most = (lnt_range){0, 2}; return true;
    case LNT_UINT2: *most = (lnt_range){0, 4}; return true;
    case LNT_INT2: *most = (lnt_range){-2, 2}; return true;
    case LNT_UINT4: *most = (lnt_range){0, 16}; return true;
    case LNT_INT4: *most = (lnt_range){-8, 8}; return true;
    case LNT_UINT8: *most = (lnt_range){0, 256}; return true;
    case LNT_INT8: *most = (lnt_range){-128, 128}; return true;
    case LNT_UINT16: *most = (lnt_range){0, 65536}; return true;
    case LNT_INT16: *most = (lnt_range){-32768, 32768}; return true;
    case LNT_UINT32: *most = (lnt_range){0, 4294967296}; return true;
    case LNT_INT32: *most = (lnt_range){-2147483648., 2147483648.}; return true;
    case LNT_UINT64: *most = (lnt_range){0, WHOLE}; return true;
    case LNT_INT64: *most = (lnt_range){-WHOLE, WHOLE}; return true;
    default: return false;
    }
}

/* In [0, 1). */
static double uniform(uint64_t seed, uint64_t element)
{
    return (double)(lnt_mix_seed(lnt_mix_seed(seed) ^ element) >> 11) / WHOLE;
}

static void put(lnt_dtype dtype, double x, size_t i, void *data)
{
    const lnt_dtype as_byte = lnt_small_as_byte(dtype);
    if (lnt_is_small(as_byte)) {
        ((uint8_t *)data)[i] = lnt_small_nearest(as_byte, (float)x);
        return;
    }
    switch (as_byte) {
    case LNT_BOOL:
    case LNT_UINT8: ((uint8_t *)data)[i] = (uint8_t)x; break;
    case LNT_INT8: ((int8_t *)data)[i] = (int8_t)x; break;
    case LNT_UINT16: ((uint16_t *)data)[i] = (uint16_t)x; break;
    case LNT_INT16: ((int16_t *)data)[i] = (int16_t)x; break;
    case LNT_UINT32: ((uint32_t *)data)[i] = (uint32_t)x; break;
    case LNT_INT32: ((int32_t *)data)[i] = (int32_t)x; break;
    case LNT_UINT64: ((uint64_t *)data)[i] = (uint64_t)x; break;
    case LNT_INT64: ((int64_t *)data)[i] = (int64_t)x; break;
    case LNT_DOUBLE: ((double *)data)[i] = x; break;
    case LNT_FLOAT16: ((uint16_t *)data)[i] = lnt_float_to_f16((float)x); break;
    case LNT_BFLOAT16: ((uint16_t *)data)[i] = lnt_float_to_bf16((float)x); break;
    default: ((float *)data)[i] = (float)x; break;
    }
}

lnt_status lnt_range_fill(const lnt_range *range, uint64_t seed, lnt_dtype dtype, const char *name,
                          size_t count, void *data, lnt_error *err)
{
    lnt_range most;
    const bool whole = limits_of(dtype, &most);
    LNT_REQUIRE(!whole || (range->low >= most.low && range->high <= most.high &&
                           range->low == floor(range->low) && range->high == floor(range->high)),
                err, LNT_E_ARGUMENT,
                "--range %s=%g:%g: input %s is %s, which takes whole numbers from %.0f to below %.0f", name,
                range->low, range->high, name, lnt_dtype_text(dtype), most.low, most.high);
    for (size_t i = 0; i < count; i++) {
        const double x = range->low + (range->high - range->low) * uniform(seed, i);
        put(dtype, whole ? fmin(floor(x), range->high - 1) : x, i, data);
    }
    return LNT_OK;
}
