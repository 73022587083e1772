/* declared.c — what is computed of a value is held against what the file declares of it.
 *
 * Shape rules work from the operands they are given, whatever the file says of the result: a tampered file, or
 * a branch whose condition only a run knows, may compute something else than its readers were prepared for.
 * Every value passes here before memory is made for it: an operator's outputs, a branch's, what a loop feeds
 * its body and gives back, a state on its way to the next run. */
#include "runtime/internal.h"

static lnt_status check_extents(const lnt_operand *declared, const lnt_operand *computed, const char *name,
                                lnt_error *err)
{
    LNT_REQUIRE(declared->rank == LNT_RANK_UNKNOWN || declared->rank == computed->rank, err, LNT_E_MODEL,
                "%s has rank %u where the file declares %u", name, computed->rank, declared->rank);
    for (unsigned d = 0; declared->rank != LNT_RANK_UNKNOWN && d < declared->rank; d++)
        LNT_REQUIRE(declared->dims[d] < 0 || declared->dims[d] == computed->dims[d], err, LNT_E_MODEL,
                    "%s has %lld along axis %u where the file declares %lld", name,
                    (long long)computed->dims[d], d, (long long)declared->dims[d]);
    LNT_REQUIRE(declared->order == computed->order, err, LNT_E_MODEL,
                "%s is in another storage order than the file declares", name);
    return LNT_OK;
}

lnt_status lnt_check_value(const lnt_session *s, uint32_t value, const lnt_operand *computed, size_t *bytes,
                           lnt_error *err)
{
    const lnt_operand *declared = &s->model->value[value];
    const char *name = lnt_value_name(s->model, value);
    const lnt_dtype dtype = (lnt_dtype)computed->dtype;
    LNT_REQUIRE(lnt_dtype_size(dtype), err, LNT_E_TYPE, "%s has type %s", name, lnt_dtype_text(dtype));
    const lnt_dtype stored = s->binding.half[value] ? LNT_FLOAT16 : (lnt_dtype)declared->dtype;
    LNT_REQUIRE(stored == dtype || declared->dtype == LNT_UNDEFINED, err, LNT_E_TYPE,
                "%s is %s where the file declares %s", name, lnt_dtype_text(dtype),
                lnt_dtype_text((lnt_dtype)declared->dtype));
    LNT_TRY(check_extents(declared, computed, name, err));
    LNT_REQUIRE(lnt_operand_bytes(computed, bytes), err, LNT_E_LIMIT, "%s is larger than the address space",
                name);
    return LNT_OK;
}
