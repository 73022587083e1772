/* conv_scale.c — depthwise Conv of one tap between images in ONNX order: each plane is scaled where it lies, whatever
 * its axes, in parts that threads share. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/rows/row.h"

#include <math.h>

typedef struct scale_planes {
    lnt_store store;
    const lnt_row_kernels *row; /* or NULL, and results are clamped, too */
    lnt_instr_fn scale_clip;
    int64_t planes, pixels;    /* of all images' outputs; of each */
    int64_t parts;             /* of a plane */
    int64_t features, outputs; /* of a group: planes of the output for one of the input; of an image */
    const float *w;            /* NULL: those of input 1 */
} scale_planes;

typedef struct scale_call {
    const scale_planes *p;
    const float *x, *w, *bias;
    float *y;
} scale_call;

/* Where part i of a plane begins: at a whole vector. */
static int64_t part_at(const scale_planes *p, int64_t i)
{
    return i < p->parts ? lnt_cut(p->pixels, p->parts, i) & -LNT_PANEL : p->pixels;
}

static lnt_status scale_parts(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const scale_call *c = arg;
    const scale_planes *p = c->p;
    const float limits[] = {p->store.low, p->store.high};
    (void)k, (void)thread;
    for (; begin < end; begin++) {
        const int64_t plane = begin / p->parts, part = begin % p->parts, first = part_at(p, part),
                      n = part_at(p, part + 1) - first, feature = plane % p->outputs;
        const float *x = c->x + plane / p->features * p->pixels + first, *w = c->w + feature,
                    bias = c->bias ? c->bias[feature] : 0;
        float *y = c->y + plane * p->pixels + first;
        if (p->row)
            p->row->shift_scale(x, y, n, 0, *w, bias);
        else
            p->scale_clip(&(lnt_instr_args){y, {x, w, &bias}, {1}, limits, n, .more = 0});
    }
    return LNT_OK;
}

static lnt_status run_scale(lnt_kernel *k, const lnt_step *s)
{
    const scale_planes *p = s->params;
    LNT_ASSERT(p->planes >= 0 && p->parts > 0);
    scale_call c = {p, lnt_in(k, s, 0), p->w, NULL, lnt_out(k, s, 0)};
    if (!c.w)
        c.w = lnt_in(k, s, 1);
    if (p->store.bias >= 0)
        c.bias = lnt_in(k, s, (unsigned)p->store.bias);
    LNT_TRY(lnt_parallel(k, p->planes * p->parts, LNT_STEM_BAND_WORK / (p->pixels / p->parts + 1) + 1,
                         scale_parts, &c));
    const lnt_conv_images none = {.element = sizeof(float)};
    return lnt_conv_finish(k, s, &none, p->store.program);
}

static bool clamps(const lnt_store *store)
{
    return store->low != -INFINITY || store->high != INFINITY;
}

bool lnt_conv_may_scale(const lnt_site *site, const lnt_store *store)
{
    return !clamps(store) || site->kernels->program->takes_rows;
}

lnt_status lnt_conv_bind_scale(lnt_site *site, const lnt_conv *g)
{
    scale_planes *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (site->in[1]->packed)
        LNT_TRY(lnt_conv_plain_weights(site, &p->w));
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &p->store));
    p->scale_clip = site->kernels->program->instr[LNT_C_MUL_ADD_CLIP];
    if (!clamps(&p->store))
        p->row = site->kernels->row;
    p->pixels = lnt_volume(g->w.out);
    p->parts = p->pixels / (2 * LNT_PLANE_BAND_PIXELS) + 1;
    p->features = g->features;
    p->outputs = g->groups * g->features;
    p->planes = g->batch * p->outputs;
    site->step->run = run_scale;
    return LNT_OK;
}
