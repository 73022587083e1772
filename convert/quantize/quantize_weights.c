/* quantize_weights.c — float weights as int8 with a scale per channel. */
#include "convert/quantize/quantize.h"

#include "convert/graph/edit.h"
#include "formats/stored.h"

#include <math.h>
#include <string.h>

enum { MOST = 127 }; /* -128 is left out: products of pairs then fit int16 sums on every CPU */

/* Elements of a channel follow each other in runs: element i belongs to channel i / run % channels. */
typedef struct channels {
    int64_t n, run, count;
} channels;

static bool find_scales(const float *w, const channels *c, const float *least, float *scale)
{
    memset(scale, 0, (size_t)c->n * sizeof *scale);
    for (int64_t i = 0; i < c->count; i++) {
        float *largest = &scale[i / c->run % c->n];
        if (!isfinite(w[i]))
            return false;
        *largest = fmaxf(*largest, fabsf(w[i]));
    }
    for (int64_t i = 0; i < c->n; i++) {
        const float bound = least && least[i] > 0 ? fmaxf(least[i], 1e-30f) : 0;
        scale[i] = scale[i] > 0 ? fmaxf(scale[i] / MOST, fmaxf(bound, 1e-37f)) : bound > 0 ? bound : 1;
    }
    return true;
}

lnt_status lnt_quantize_weights(lnt_graph *g, const char *name, const lnt_operand *value, unsigned axis,
                                unsigned axes, float factor, const float *least, uint32_t *weights,
                                uint32_t *scale)
{
    const lnt_operand o = *value; /* the graph's values may move */
    channels c = {.n = 1, .run = 1, .count = lnt_operand_count(&o)};
    const float *w = o.data;
    *weights = *scale = LNT_NONE;
    for (unsigned i = axis; i < axis + axes; i++)
        c.n *= o.dims[i];
    for (unsigned i = axis + axes; i < o.rank; i++)
        c.run *= o.dims[i];
    float *scales = lnt_bump_alloc(&g->memory, (size_t)c.n * sizeof *scales, g->err);
    int8_t *quantized = lnt_bump_alloc(&g->memory, (size_t)c.count, g->err);
    if (!scales || !quantized)
        return LNT_E_MEMORY;
    if (!find_scales(w, &c, least, scales))
        return LNT_OK;
    for (int64_t i = 0; i < c.count; i++) {
        const float q = rintf(w[i] / scales[i / c.run % c.n]);
        quantized[i] = (int8_t)fmaxf(-MOST, fminf(MOST, q));
    }
    for (int64_t i = 0; i < c.n; i++)
        scales[i] *= factor;
    *weights = lnt_graph_add_constant(g, name, LNT_INT8, o.rank, o.dims, quantized, (size_t)c.count);
    *scale = lnt_add_floats(g, name, 1, &c.n, scales);
    return *weights == LNT_NONE || *scale == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

uint32_t lnt_widened_weights(lnt_graph *g, uint32_t weights, uint32_t scale)
{
    const lnt_operand w = g->value[weights].info; /* the graph's values may move */
    size_t bytes;
    if (!lnt_shape_bytes(w.dims, w.rank, sizeof(float), &bytes))
        return LNT_NONE;
    lnt_narrow *narrow = lnt_bump_alloc(&g->memory, sizeof *narrow, g->err);
    float *floats = lnt_bump_alloc(&g->memory, bytes, g->err);
    if (!narrow || !floats)
        return LNT_NONE;
    *narrow = (lnt_narrow){w.data, g->value[scale].info.data};
    lnt_stored_widen(&w, narrow->quantized, narrow->scale, floats);
    const uint32_t made =
        lnt_graph_add_constant(g, g->value[weights].name, LNT_FLOAT, w.rank, w.dims, floats, bytes);
    if (made != LNT_NONE)
        g->value[made].narrow = narrow;
    return made;
}
