/* stored.c — sizes of constants in the file, and the way there and back. */
#include "formats/stored.h"

#include "base/checked.h"

enum { GROWS_MOST = 128 }; /* panels of one column with one term: that a small file cannot ask for much */

const char *lnt_stored_bytes(uint32_t stored, const lnt_operand *o, size_t *bytes)
{
    size_t ready = 0;
    const int64_t count = lnt_operand_count(o);
    if (count < 0 || !lnt_mul_size((size_t)count, lnt_dtype_size((lnt_dtype)o->dtype), bytes))
        return "its extents are not known";
    if (o->packed && !lnt_packed_bytes(o->packed, &ready))
        return "its packed record is nonsense";
    if (stored == LNT_STORED_READY) {
        *bytes = o->packed ? ready : *bytes;
        return NULL;
    }
    if (stored != LNT_STORED_PLAIN || !o->packed)
        return "it is stored in a way that is unknown or does not go with it";
    return ready / GROWS_MOST > *bytes ? "it would grow too much" : NULL;
}

void lnt_stored_restore(const lnt_operand *o, const void *src, void *dst)
{
    lnt_pack(o->packed, (lnt_dtype)o->dtype, src, dst);
}

void lnt_stored_put(const lnt_operand *o, void *dst)
{
    lnt_unpack(o->packed, (lnt_dtype)o->dtype, o->data, dst);
}
