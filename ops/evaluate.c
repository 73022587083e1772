/* evaluate.c — one operator on the spot, for constant folding and for values that shapes depend on. */
#include "ops/op.h"

#include "base/lnt_assert.h"
#include "base/small.h"
#include "ops/kernels.h"

#include <string.h>

void lnt_site_begin_bind(lnt_site *site, lnt_step *step, lnt_bump *memory, lnt_level level, unsigned threads)
{
    *step = (lnt_step){.in = site->in,
                       .out = site->out,
                       .n_in = (uint16_t)site->n_in,
                       .n_out = (uint16_t)site->n_out,
                       .n_held = (uint16_t)site->n_in,
                       .node = site->node->index,
                       .scratch_slot = LNT_NO_STORAGE};
    site->step = step;
    site->memory = memory;
    site->level = level;
    site->kernels = lnt_kernels_of(level);
    site->threads = threads;
    site->half = false;
    site->producer = NULL;
    for (unsigned i = 0; i < site->n_out && i < LNT_MAX_VIEWS; i++) {
        site->view_of[i] = -1;
        site->view_offset[i] = 0;
    }
}

static lnt_status run_nothing(lnt_kernel *k, const lnt_step *step)
{
    (void)k, (void)step;
    return LNT_OK;
}

static bool makes_elements(const lnt_site *site)
{
    for (unsigned i = 0; i < site->n_out; i++)
        if (site->out[i] && lnt_operand_count(site->out[i]) != 0)
            return true;
    return false;
}

/* ---- storage orders ---- */

/* Reads and writes by strides, or passes bytes on: any operand may be in any order. */
static bool takes_any_order(const lnt_op *op)
{
    return op->flags & (LNT_OP_ANY_ORDER | LNT_OP_ELEMENTWISE | LNT_OP_EXTENTS);
}

/* Is input i, or output i if it is one, in a storage order that the operator, which takes channels-last, expects? */
static bool order_fits(const lnt_site *site, unsigned i, bool is_output)
{
    const lnt_op *op = site->node->op;
    const lnt_operand *o = is_output ? site->out[i] : site->in[i], *y = site->out[0];
    if (is_output)
        return o->order == (i == 0 || op->flags & LNT_OP_PARTS ? y->order : LNT_ORDER_PLAIN);
    if (i + site->node->n_program_in >= site->n_in)
        return true;
    if (lnt_op_is_image(op, i))
        return o->order == y->order || lnt_order_free(y) || op->flags & LNT_OP_CONVOLVES;
    return o->order == LNT_ORDER_PLAIN;
}

/* An operator that takes operands channels-last takes its image, and gives its result, so; others none at all. */
static lnt_status check_orders(const lnt_site *site)
{
    const lnt_op *op = site->node->op;
    const bool channels_last = op->flags & LNT_OP_CL && site->out[0];
    for (unsigned i = 0; i < site->n_in + site->n_out && !takes_any_order(op); i++) {
        const bool is_output = i >= site->n_in;
        const unsigned k = is_output ? i - site->n_in : i;
        const lnt_operand *o = is_output ? site->out[k] : site->in[k];
        LNT_REQUIRE(!o || (channels_last ? order_fits(site, k, is_output) : o->order == LNT_ORDER_PLAIN),
                    site->err, LNT_E_MODEL, "%s %u is in a storage order that the operator does not take",
                    is_output ? "output" : "input", k);
    }
    return LNT_OK;
}

/* Types that most operators know nothing of are refused here for all of them. */
static lnt_status check_small(lnt_site *site)
{
    if (site->node->op->flags & LNT_OP_TAKES_SMALL)
        return LNT_OK;
    for (unsigned i = 0; i < site->n_in + site->n_out; i++) {
        const lnt_operand *o = i < site->n_in ? site->in[i] : site->out[i - site->n_in];
        if (o && lnt_is_small((lnt_dtype)o->dtype))
            return lnt_bind_unsupported_type(site, (lnt_dtype)o->dtype);
    }
    return LNT_OK;
}

lnt_status lnt_site_bind(lnt_site *site)
{
    LNT_ASSERT(site->step && site->kernels && site->threads > 0);
    LNT_TRY(check_small(site));
    LNT_TRY(check_orders(site));
    /* Extents beside one of 0 may be any: tables and scratch memory by them would wrap. */
    if (!site->node->custom && !makes_elements(site)) {
        site->step->run = run_nothing;
        return LNT_OK;
    }
    LNT_TRY(lnt_row_bind(site));
    LNT_ASSERT(site->step->scratch_bytes <= PTRDIFF_MAX);
    return LNT_OK;
}

static lnt_status whole_range(lnt_kernel *k, int64_t items, int64_t grain, lnt_task_fn task, void *arg)
{
    (void)grain;
    return items > 0 ? task(k, arg, 0, items, 0) : LNT_OK;
}

/* Copies of operands with storage numbers 0.. of their own; NULL stays NULL. */
static lnt_operand **number_operands(lnt_bump *memory, lnt_operand *const *from, unsigned n, uint32_t first,
                                     lnt_error *err)
{
    lnt_operand **copy = lnt_bump_alloc(memory, (n + 1) * sizeof *copy, err);
    lnt_operand *body = copy ? lnt_bump_alloc(memory, (n + 1) * sizeof *body, err) : NULL;
    if (!body)
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        if (!from[i])
            continue;
        copy[i] = &body[i];
        *copy[i] = *from[i];
        copy[i]->storage = first + i;
        copy[i]->offset = 0;
    }
    return copy;
}

/* True if every wanted output is a view: then there is nothing to run. */
static bool all_views(const lnt_site *site)
{
    for (unsigned i = 0; i < site->n_out; i++)
        if (site->out[i] && (i >= LNT_MAX_VIEWS || site->view_of[i] < 0))
            return false;
    return true;
}

lnt_status lnt_solo_bind(lnt_solo *solo, lnt_bump *memory, const lnt_node *node, lnt_operand *const *in,
                         lnt_operand *const *out, void *const *out_data, lnt_level level, lnt_error *err)
{
    static const _Atomic(uint32_t) never = 0;
    const unsigned n_in = node->n_in, n_out = node->n_out;
    void **slot = lnt_bump_alloc(memory, (n_in + n_out + 1) * sizeof *slot, err);
    lnt_operand **inputs = number_operands(memory, in, n_in, 0, err);
    lnt_operand **outputs = number_operands(memory, out, n_out, n_in, err);
    if (!slot || !inputs || !outputs)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n_in; i++)
        slot[i] = in[i] ? (void *)(uintptr_t)in[i]->data : NULL;
    for (unsigned i = 0; i < n_out; i++)
        slot[n_in + i] = out[i] ? out_data[i] : NULL;
    lnt_step *step = &solo->step;
    solo->site =
        (lnt_site){.node = node, .in = inputs, .out = outputs, .n_in = n_in, .n_out = n_out, .err = err};
    lnt_site_begin_bind(&solo->site, step, memory, level, 1);
    LNT_TRY(lnt_site_bind(&solo->site));
    if (step->scratch_bytes) {
        step->scratch_slot = n_in + n_out;
        slot[n_in + n_out] = lnt_bump_alloc(memory, step->scratch_bytes, err);
        if (!slot[n_in + n_out])
            return LNT_E_MEMORY;
    }
    solo->out_data = out_data;
    solo->kernel = (lnt_kernel){.slot = slot,
                                .threads = 1,
                                .kernels = solo->site.kernels,
                                .err = err,
                                .stop = &never,
                                .parallel = whole_range};
    return LNT_OK;
}

lnt_status lnt_solo_run(lnt_solo *solo)
{
    LNT_ASSERT(solo->step.run || all_views(&solo->site));
    const lnt_site *site = &solo->site;
    lnt_kernel *k = &solo->kernel;
    if (!all_views(site))
        LNT_TRY(solo->step.run(k, &solo->step));
    for (unsigned i = 0; i < site->n_out; i++) {
        if (!site->out[i] || i >= LNT_MAX_VIEWS || site->view_of[i] < 0)
            continue;
        const char *from = k->slot[site->view_of[i]];
        const size_t bytes = lnt_known_bytes(site->out[i]);
        if (bytes)
            memcpy(solo->out_data[i], from + site->view_offset[i], bytes);
    }
    return LNT_OK;
}

lnt_status lnt_evaluate(const lnt_allocator *a, const lnt_node *node, lnt_operand *const *in,
                        lnt_operand *const *out, void *const *out_data, lnt_level level, uint64_t seed,
                        lnt_error *err)
{
    lnt_bump memory;
    lnt_solo solo;
    lnt_bump_init(&memory, a);
    lnt_status status = lnt_solo_bind(&solo, &memory, node, in, out, out_data, level, err);
    if (status == LNT_OK) {
        solo.kernel.seed = seed;
        status = lnt_solo_run(&solo);
    }
    lnt_bump_free(&memory);
    return status;
}
