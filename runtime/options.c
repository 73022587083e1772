/* options.c — structs of the caller's that begin with their size, struct_bytes.
 *
 * A caller compiled with an older header gives a shorter struct, one compiled with a newer header a longer one:
 * what either side does not know is left alone. A size of 0 is no struct of any version, but one whose size was
 * forgotten: all that it says would be dropped. */
#include "runtime/internal.h"

lnt_status lnt_check_struct_bytes(size_t struct_bytes, const char *type, lnt_error *err)
{
    LNT_REQUIRE(struct_bytes, err, LNT_E_ARGUMENT, "%s: struct_bytes is 0, set it to sizeof(%s)", type, type);
    return LNT_OK;
}

lnt_status lnt_take_struct(const void *given, void *taken, size_t size, const char *type, lnt_error *err)
{
    size_t struct_bytes;
    memset(taken, 0, size);
    if (!given)
        return LNT_OK;
    memcpy(&struct_bytes, given, sizeof struct_bytes);
    LNT_TRY(lnt_check_struct_bytes(struct_bytes, type, err));
    memcpy(taken, given, struct_bytes < size ? struct_bytes : size);
    return LNT_OK;
}
