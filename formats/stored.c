/* stored.c — sizes of constants in the file, and the way there and back. */
#include "formats/stored.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"

enum { GROWS_MOST = 128 }; /* panels of one column with one term: that a small file cannot ask for much */

lnt_stored lnt_stored_unpacked(const lnt_packed *p)
{
    const lnt_dtype element = lnt_packed_element(p);
    return element == LNT_FLOAT16    ? LNT_STORED_HALF
           : element == LNT_BFLOAT16 ? LNT_STORED_BFLOAT16
                                     : LNT_STORED_PLAIN;
}

/* Bytes before the scales. */
static size_t scales_at(const lnt_operand *o)
{
    return lnt_round_up((size_t)lnt_operand_count(o), sizeof(float));
}

/* Bytes of floats in that form. */
static bool narrow_bytes(uint32_t stored, const lnt_operand *o, size_t *bytes)
{
    if (o->dtype != LNT_FLOAT)
        return false;
    *bytes /= 2;
    return stored == LNT_STORED_HALF || stored == LNT_STORED_BFLOAT16 ||
           (stored == LNT_STORED_INT8 && o->rank > 0 &&
            lnt_mul_size((size_t)o->dims[0], sizeof(float), bytes) &&
            lnt_add_size(*bytes, scales_at(o), bytes));
}

const char *lnt_stored_bytes(uint32_t stored, const lnt_operand *o, size_t *bytes)
{
    size_t plain, ready;
    if (!lnt_operand_bytes(o, &plain))
        return "its extents are not known";
    ready = *bytes = plain;
    if (o->packed && !lnt_packed_bytes(o->packed, &ready))
        return "its packed record is nonsense";
    if (stored == LNT_STORED_READY)
        *bytes = ready;
    else if (stored == LNT_STORED_PLAIN ? !o->packed : !narrow_bytes(stored, o, bytes))
        return "it is stored in a way that is unknown or does not go with it";
    return ready / GROWS_MOST > *bytes ? "it would grow too much" : NULL;
}

void lnt_stored_widen(const lnt_operand *o, const int8_t *bytes, const float *scale, float *to)
{
    LNT_ASSERT(lnt_operand_count(o) >= 0 && o->dtype == LNT_FLOAT);
    const int64_t count = lnt_operand_count(o), run = count > 0 ? count / o->dims[0] : 1;
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)bytes[i] * scale[i / run];
}

static void widen_halves(uint32_t stored, const uint16_t *half, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = stored == LNT_STORED_HALF ? lnt_f16_to_float(half[i]) : lnt_bf16_to_float(half[i]);
}

size_t lnt_stored_room(uint32_t stored, const lnt_operand *o)
{
    size_t bytes = 0;
    if (stored >= LNT_STORED_INT8 && o->packed)
        (void)lnt_shape_bytes(o->dims, o->rank, sizeof(float), &bytes); /* the verifier found that they fit */
    return bytes;
}

void lnt_stored_restore(uint32_t stored, const lnt_operand *o, const void *src, void *room, void *dst)
{
    float *floats = o->packed ? room : dst;
    if (stored == LNT_STORED_INT8)
        lnt_stored_widen(o, src, (const float *)(const void *)((const int8_t *)src + scales_at(o)), floats);
    if (stored == LNT_STORED_HALF || stored == LNT_STORED_BFLOAT16)
        widen_halves(stored, src, lnt_operand_count(o), floats);
    if (o->packed)
        lnt_pack(o->packed, (lnt_dtype)o->dtype, stored == LNT_STORED_PLAIN ? src : room, dst);
}
