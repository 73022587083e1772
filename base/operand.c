/* operand.c — how many bytes a tensor has, if that can be said. */
#include "base/operand.h"

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
