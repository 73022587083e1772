/* find_key.c — FindKey: where each element of x stands among keys, which ascend; their number where it is none of
 * them. LabelEncoder, OneHotEncoder and CategoryMapper are made of it.
 *
 * Inputs: x of any shape; keys [n] of its type; output: int64, the shape of x. Attribute refuse: an element that is no
 * key is an error. NaN is equal to NaN, and behind all others. */
#include "ops/op.h"

#include "base/lnt_assert.h"
#include "ops/number.h"

enum { GRAIN = 2048 }; /* elements of a slice */

typedef struct find_job {
    const void *x, *keys;
    int64_t *y, n;
    lnt_dtype type;
} find_job;

#define SEARCH(DT, T, C, load, store, comparable)                                                            \
    static int64_t find_##DT(const find_job *j, int64_t i)                                                   \
    {                                                                                                        \
        const T *keys = j->keys, key = ((const T *)j->x)[i];                                                 \
        int64_t low = 0, high = j->n;                                                                        \
        while (low < high) {                                                                                 \
            const int64_t mid = low + (high - low) / 2;                                                      \
            if (keys[mid] < key || (key != key && keys[mid] == keys[mid]))                                   \
                low = mid + 1;                                                                               \
            else                                                                                             \
                high = mid;                                                                                  \
        }                                                                                                    \
        return low < j->n && (keys[low] == key || (key != key && keys[low] != keys[low])) ? low : j->n;      \
    }
LNT_PLAIN_NUMBER_LIST(SEARCH)
#undef SEARCH

typedef int64_t (*find_fn)(const find_job *j, int64_t i);

static const find_fn find[LNT_DTYPE_COUNT] = {
#define X(DT, T, C, load, store, comparable) [LNT_##DT] = find_##DT,
    LNT_PLAIN_NUMBER_LIST(X)
#undef X
        [LNT_BOOL] = find_UINT8,
};

static lnt_status find_slice(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const find_job *j = arg;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++)
        j->y[i] = find[j->type](j, i);
    return LNT_OK;
}

static lnt_status run_find_key(lnt_kernel *k, const lnt_step *s)
{
    const bool refuse = *(const bool *)s->params;
    const int64_t n = lnt_operand_count(s->in[0]);
    find_job job = {lnt_in(k, s, 0), lnt_in(k, s, 1), lnt_out(k, s, 0), s->in[1]->dims[0],
                    (lnt_dtype)s->in[0]->dtype};
    LNT_ASSERT(find[job.type]);
    LNT_TRY(lnt_parallel(k, n, GRAIN, find_slice, &job));
    for (int64_t i = 0; refuse && i < n; i++)
        LNT_REQUIRE(job.y[i] < job.n, k->err, LNT_E_VALUE, "element %lld, %g, is none of the %lld categories",
                    (long long)i, lnt_load_number(job.type, job.x, i), (long long)job.n);
    return LNT_OK;
}

lnt_status lnt_bind_find_key(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *keys = site->in[1];
    if (!find[x->dtype])
        return lnt_bind_unsupported_type(site, (lnt_dtype)x->dtype);
    LNT_REQUIRE(keys->dtype == x->dtype, site->err, LNT_E_TYPE, "keys are %s, x is %s",
                lnt_dtype_text((lnt_dtype)keys->dtype), lnt_dtype_text((lnt_dtype)x->dtype));
    LNT_REQUIRE(keys->rank == 1, site->err, LNT_E_SHAPE, "keys must have rank 1, not %u", keys->rank);
    bool *refuse = lnt_bind_params(site, sizeof *refuse);
    if (!refuse)
        return LNT_E_MEMORY;
    *refuse = lnt_attr_i(site->node, "refuse", 0) != 0;
    site->step->run = run_find_key;
    return LNT_OK;
}
