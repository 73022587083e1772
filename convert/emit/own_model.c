/* own_model.c — loading a model of our own making, and inputs for one that is not known. */
#include "convert/emit/own_model.h"

#include "formats/golden.h"
#include "formats/tensor_file.h"
#include "runtime/internal.h"

#include <string.h>

lnt_status lnt_load_own(const lnt_allocator *heap, const void *image, size_t size, lnt_model **m,
                        lnt_error *err)
{
    const lnt_host host = {.struct_bytes = sizeof host,
                           .allocate = heap->allocate,
                           .release = heap->release,
                           .user = heap->host};
    const lnt_model_options options = {.struct_bytes = sizeof options, .host = &host};
    return lnt_model_create_from_memory(image, size, &options, m, err);
}

/* The constant that node n compares `value` with. */
static bool compared_with(const lnt_graph *g, const lnt_gnode *n, uint32_t value, int64_t *number)
{
    if (n->op->id != LNT_ID_Equal)
        return false;
    return (n->in[0] == value && lnt_graph_known_int(g, n->in[1], number)) ||
           (n->in[1] == value && lnt_graph_known_int(g, n->in[0], number));
}

/* What the integers of an input are: valid as an index, a length, a mask; where one of them decides which
 * branch is taken (a sample rate), it must be one that the model knows. */
static int64_t number_for(const lnt_graph *g, const char *input, size_t count)
{
    int64_t number = 1;
    const uint32_t value = count == 1 ? lnt_names_find(&g->names, input) : LNT_NAMES_NONE;
    for (size_t s = 0; value != LNT_NAMES_NONE && s < g->n_subs; s++)
        for (size_t k = 0; k < g->sub[s].n_nodes; k++)
            if (compared_with(g, g->sub[s].node[k], value, &number))
                return number;
    return number;
}

static void fill_integers(lnt_tensor *t, int64_t number)
{
    const size_t size = lnt_dtype_size(t->dtype);
    const uint8_t *low = (const uint8_t *)&number;
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        low += sizeof number - size;
    for (size_t at = 0; at + size <= t->bytes; at += size)
        memcpy((uint8_t *)t->data + at, low, size);
}

const int64_t lnt_trial_extents[LNT_TRIAL_EXTENTS] = {16, 128, 1024, 1};

lnt_status lnt_seeded_input(const lnt_graph *g, const lnt_model *m, uint32_t i, int64_t extent, lnt_tensor *t,
                            lnt_error *err)
{
    lnt_value_info described, *info = &described;
    LNT_TRY(lnt_model_input(m, i, info));
    LNT_REQUIRE(info->rank <= LNT_MAX_RANK, err, LNT_E_SHAPE, "input '%s' has no rank", info->name);
    LNT_REQUIRE(lnt_dtype_size(info->dtype), err, LNT_E_UNSUPPORTED,
                "input '%s' is %s, which cannot be made up", info->name, lnt_dtype_text(info->dtype));
    int64_t dims[LNT_MAX_RANK];
    for (unsigned d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] >= 0 ? info->dims[d] : d == 0 && info->rank > 1 ? 1 : extent;
    int64_t count = 0;
    LNT_REQUIRE(lnt_count(dims, info->rank, &count) &&
                    (uint64_t)count <= LNT_TRIAL_MEMORY / lnt_dtype_size(info->dtype),
                err, LNT_E_LIMIT, "input '%s' has %lld elements, too many to be made up", info->name,
                (long long)count);
    LNT_TRY(lnt_tensor_alloc(g->memory.allocator, info->dtype, info->rank, dims, t, err));
    if (!lnt_golden_fill(i + 1, t->dtype, (size_t)count, t->data))
        fill_integers(t, number_for(g, info->name, (size_t)count));
    return LNT_OK;
}

static bool may_never_end(const lnt_gnode *n)
{
    return n->op->id == LNT_ID_Loop;
}

uint64_t lnt_trial_deadline(const lnt_graph *g)
{
    enum { MOST = 20000000, WITH_LOOPS = 1000000 };
    return lnt_graph_any(g, may_never_end) ? WITH_LOOPS : MOST;
}
