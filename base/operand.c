/* operand.c — how many elements and bytes a tensor has, if that can be said, and where they lie. */
#include "base/operand.h"

int64_t lnt_operand_count(const lnt_operand *o)
{
    int64_t n = 1;
    if (o->rank > LNT_MAX_RANK)
        return -1;
    for (unsigned i = 0; i < o->rank; i++)
        if (o->dims[i] < 0 || __builtin_mul_overflow(n, o->dims[i], &n))
            return -1;
    return n;
}

bool lnt_shape_bytes(const int64_t *dims, unsigned rank, size_t element, size_t *bytes)
{
    int64_t count;
    if (!lnt_extents_fit(dims, rank, element) || !lnt_count(dims, rank, &count))
        return false;
    *bytes = (size_t)count * element;
    return true;
}

bool lnt_operand_bytes(const lnt_operand *o, size_t *bytes)
{
    const size_t element = lnt_dtype_size((lnt_dtype)o->dtype);
    return element && o->rank <= LNT_MAX_RANK && lnt_shape_bytes(o->dims, o->rank, element, bytes);
}

size_t lnt_known_bytes(const lnt_operand *o)
{
    size_t bytes;
    return lnt_operand_bytes(o, &bytes) ? bytes : 0;
}

size_t lnt_float_bytes(const lnt_operand *o)
{
    size_t bytes;
    return o->rank <= LNT_MAX_RANK && lnt_shape_bytes(o->dims, o->rank, sizeof(float), &bytes) ? bytes : 0;
}

void lnt_operand_strides(const lnt_operand *o, int64_t strides[LNT_MAX_RANK])
{
    LNT_ASSERT(o->rank <= LNT_MAX_RANK);
    if (o->rank == 0)
        return;
    const unsigned row = o->order == LNT_ORDER_CHANNELS_LAST ? 1 : o->rank - 1u;
    int64_t step = lnt_operand_pitch(o);
    strides[row] = 1;
    for (unsigned i = o->rank; i-- > 0;) {
        if (i == row)
            continue;
        strides[i] = step;
        step *= o->dims[i];
    }
}
