/* quantize_equalize.c — cross-layer equalization of channels between convolutions.
 *
 * One scale for a tensor leaves small channels few of its 256 levels. Behind a convolution, perhaps with a Relu,
 * channel c can be stored divided by s[c] at no cost: its column's scale says so, and the convolutions that read it
 * have s[c] in their weights (Nagel, van Baalen, Blankevoort and Welling, "Data-Free Quantization Through Weight
 * Equalization and Bias Correction", 2019). That moves error from activations to weights. Unlike there, s[c] is a power
 * of the largest magnitude recorded of the channel, as in SmoothQuant (Xiao, Lin, Seznec, Wu, Demouth and Han,
 * "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models", 2022); of a few exponents
 * the one with the least expected error of both is taken. */
#include "convert/quantize/quantize_static.h"

#include "convert/graph/edit.h"
#include "ops/quant/qparams.h"

#include <math.h>
#include <string.h>

/* Reads operand 0 as uint8 and may have another scale for each of its channels. */
bool lnt_q_can_equalize(const lnt_qsite *s)
{
    return s->kind == LNT_Q_PRODUCT && lnt_is(s->node, Conv);
}

int64_t lnt_q_weight_channel(const lnt_gnode *conv, const lnt_operand *w, int64_t element)
{
    int64_t taps = 1;
    for (unsigned d = 2; d < w->rank; d++)
        taps *= w->dims[d];
    const int64_t filter = element / taps / w->dims[1], depth = element / taps % w->dims[1];
    const int64_t group = filter / (w->dims[0] / lnt_gnode_int(conv, "group", 1));
    return group * w->dims[1] + depth;
}

/* The part of error in what one convolution gives, if its input's channels, of size up to peak[], are divided
 * by s[]: rounding of the input to `step` and of each filter to its own. */
static double error_of(const lnt_graph *g, const lnt_qsite *reader, const float *peak, const float *s,
                       double step)
{
    const lnt_operand *w = lnt_ginfo(g, reader->product.weights);
    const float *x = w->data;
    const int64_t count = lnt_operand_count(w), run = count / w->dims[0];
    double error = 0, signal = 0;
    for (int64_t f = 0; f < w->dims[0]; f++) {
        double largest = 0, sizes = 0;
        for (int64_t i = f * run; i < (f + 1) * run; i++) {
            const int64_t c = lnt_q_weight_channel(reader->node, w, i);
            const double scaled = (double)x[i] * s[c], size = (double)peak[c] / s[c] / 3;
            largest = fmax(largest, fabs(scaled));
            sizes += size * size;
            error += scaled * scaled * step * step;
            signal += scaled * scaled * size * size;
        }
        error += largest / 127 * largest / 127 * sizes;
    }
    return signal > 0 ? error / signal : 0;
}

/* Over all convolutions that read value v. */
static double error_at(const lnt_static *st, const lnt_qvalue *v, const float *peak, const float *s)
{
    double step = 0, error = 0;
    for (int64_t c = 0; c < v->channels; c++)
        step = fmax(step, ((double)v->channel_high[c] - v->channel_low[c]) / s[c] / 255);
    for (uint32_t r = v->first_reader; r != LNT_NONE; r = st->reader[r].next)
        if (lnt_q_can_equalize(&st->site[st->reader[r].site]))
            error += error_of(st->g, &st->site[st->reader[r].site], peak, s, step);
    return error;
}

/* s[c] = peak[c] ^ power, within a hundredth of the largest. */
static void divide_by_power(const lnt_qvalue *v, const float *peak, float power, float *s)
{
    float largest = 0;
    for (int64_t c = 0; c < v->channels; c++)
        largest = fmaxf(largest, peak[c]);
    for (int64_t c = 0; c < v->channels; c++)
        s[c] = powf(fmaxf(peak[c] / largest, 1e-2f), power);
}

static lnt_status equalize(lnt_static *st, lnt_qvalue *v)
{
    static const float powers[] = {0, 0.25f, 0.5f, 0.75f, 1};
    enum { POWERS = sizeof powers / sizeof powers[0] };
    double least = INFINITY;
    float *peak = lnt_bump_alloc(&st->g->memory, (size_t)v->channels * 3 * sizeof *peak, st->g->err);
    if (!peak)
        return LNT_E_MEMORY;
    float *s = peak + v->channels, *best = s + v->channels, any = 0;
    for (int64_t c = 0; c < v->channels; c++) {
        peak[c] = fmaxf(-v->channel_low[c], v->channel_high[c]);
        any = fmaxf(any, peak[c]);
    }
    for (unsigned i = 0; i < POWERS && any > 0; i++) {
        divide_by_power(v, peak, powers[i], s);
        const double error = error_at(st, v, peak, s);
        if (error < least) {
            least = error;
            v->divisor = powers[i] > 0 ? best : NULL;
            memcpy(best, s, (size_t)v->channels * sizeof *best);
        }
    }
    for (int64_t c = 0; c < v->channels && v->divisor; c++) {
        v->equalized_low = fminf(v->equalized_low, v->channel_low[c] / best[c]);
        v->equalized_high = fmaxf(v->equalized_high, v->channel_high[c] / best[c]);
    }
    return LNT_OK;
}

lnt_status lnt_static_equalize(lnt_static *st)
{
    for (uint32_t v = 0; v < st->n_values; v++)
        if (st->value[v].channels && st->value[v].usable)
            LNT_TRY(equalize(st, &st->value[v]));
    return LNT_OK;
}

/* Every node that reads it quantized can take other scales. */
static bool readers_take_it(const lnt_static *st, const lnt_qvalue *v)
{
    bool any = false;
    for (uint32_t r = v->first_reader; r != LNT_NONE; r = st->reader[r].next) {
        const lnt_qsite *s = &st->site[st->reader[r].site];
        if (!s->on || s->folded || !lnt_q_reads_quantized(s, st->reader[r].operand))
            continue;
        if (!lnt_q_can_equalize(s))
            return false;
        any = true;
    }
    return any;
}

void lnt_static_plan_equalization(lnt_static *st)
{
    for (uint32_t i = 0; i < st->n_sites; i++) {
        const lnt_qsite *s = &st->site[i];
        if (!s->on || s->folded || s->to_float || !lnt_q_can_equalize(s))
            continue;
        lnt_qvalue *v = &st->value[st->site[s->last].node->out[0]];
        const bool one_group = lnt_gnode_int(s->node, "group", 1) == 1; /* with floors of its own */
        v->equalized = v->divisor && (v->clamp_low == 0 || v->clamp_low == -INFINITY || one_group) &&
                       v->clamp_high == INFINITY && readers_take_it(st, v);
        if (v->equalized) {
            v->group_low = v->equalized_low;
            v->group_high = v->equalized_high;
        }
    }
}

/* ---- looking at channels ---- */

lnt_status lnt_static_find_channels(lnt_static *st)
{
    for (uint32_t i = 0; i < st->n_sites; i++) {
        if (!lnt_q_can_equalize(&st->site[i]))
            continue;
        const uint32_t x = st->site[i].node->in[0];
        const lnt_operand *o = lnt_ginfo(st->g, x);
        lnt_qvalue *v = &st->value[x];
        if (v->channels || o->rank < 3 || o->dims[1] < 1)
            continue;
        v->channel_low = lnt_bump_alloc(&st->g->memory, (size_t)o->dims[1] * 2 * sizeof(float), st->g->err);
        v->channel_sum = lnt_bump_alloc(&st->g->memory, (size_t)o->dims[1] * sizeof(double), st->g->err);
        v->channel_some =
            lnt_bump_alloc(&st->g->memory, (size_t)o->dims[1] * LNT_Q_SOME * sizeof(float), st->g->err);
        if (!v->channel_low || !v->channel_sum || !v->channel_some)
            return LNT_E_MEMORY;
        v->channels = o->dims[1];
        v->channel_high = v->channel_low + v->channels;
    }
    return LNT_OK;
}

/* Keeps elements of each channel at places that have nothing to do with each other, alike of all samples. */
static void keep_some(lnt_qvalue *v, const lnt_tensor *x, int64_t run, size_t samples)
{
    const float *data = x->data;
    const uint64_t places = (uint64_t)(x->dims[0] * run);
    const size_t share = LNT_Q_SOME / samples + 1;
    for (size_t i = 0; i < share && i < places && v->n_some < LNT_Q_SOME; i++, v->n_some++) {
        const int64_t at = (int64_t)((v->n_some + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 11) % (int64_t)places;
        for (int64_t c = 0; c < v->channels; c++)
            v->channel_some[c * LNT_Q_SOME + v->n_some] = data[(at / run * v->channels + c) * run + at % run];
    }
}

double lnt_static_channel_offset(const lnt_static *st, uint32_t value, int64_t channel)
{
    const double counts = 0.1; /* of a step; five times what the mean of so many is off by chance */
    const lnt_qvalue *v = &st->value[value], *m = lnt_static_qparams(st, value);
    const float scale = v->equalized ? m->scale * v->divisor[channel] : m->scale;
    double sum = 0;
    for (unsigned i = 0; i < v->n_some; i++) {
        const float x = v->channel_some[channel * LNT_Q_SOME + i];
        const int32_t q = lnt_requantize(x / scale, m->zero, lnt_qrange_of(LNT_UINT8));
        const double off = (double)((float)(q - m->zero) * scale) - (double)x;
        sum += fabs(off) <= (double)scale ? off : 0; /* what is cut off is another matter in each sample */
    }
    const double mean = v->n_some ? sum / v->n_some : 0;
    return fabs(mean) > counts * (double)scale ? mean : 0;
}

void lnt_static_look_at_channels(lnt_qvalue *v, const lnt_tensor *x, size_t samples)
{
    if (!v->channels || x->rank < 3 || x->dims[1] != v->channels || !x->bytes)
        return;
    const float *data = x->data;
    const int64_t count = (int64_t)(x->bytes / sizeof *data), run = count / x->dims[0] / v->channels;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i / run % v->channels;
        v->channel_low[c] = fminf(v->channel_low[c], data[i]);
        v->channel_high[c] = fmaxf(v->channel_high[c], data[i]);
        v->channel_sum[c] += (double)data[i];
    }
    v->channel_count += (double)count / (double)v->channels;
    keep_some(v, x, run, samples);
}
