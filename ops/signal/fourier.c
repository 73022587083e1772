/* fourier.c — DFT, STFT and MelWeightMatrix: floats in float, other types in double precision.
 *
 * Transforms of any length by Cooley and Tukey's recursion ("An Algorithm for the Machine Calculation of Complex
 * Fourier Series", 1965) over the prime factors, fours first, with a table of the roots of unity made at bind.
 * A prime factor p costs p * length. Some transforms go side by side, in lanes, and two real signals as one. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/element.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    MAX_FACTORS = 40,
    LANE_BYTES = 16,
    FLOAT_FACTOR_MOST = 128, /* sums of more terms are taken in double */
    SHORT = 128 /* transforms up to that, too: it costs little, and what cancels comes out as zero */
};

typedef struct fourier {
    int64_t length; /* of the transform */
    int64_t factor[MAX_FACTORS];
    unsigned n_factors;
    void *root; /* [length] e ** (-+ 2 pi i k / length): re, im */
    bool inverse, one_sided;
    bool floats;  /* computed in float */
    bool paired;  /* two signals of real samples are the parts of one */
    double scale; /* of what is written */
    lnt_dtype dtype;
    int64_t outer, inner;         /* extents before and behind the axis, without re/im */
    int64_t in, out;              /* extents of the axis */
    unsigned in_parts, out_parts; /* 1 real, 2 complex */
    int64_t frames, hop, window;  /* STFT: frames per signal, else 0; samples of the window */
    lnt_dtype window_type;
    size_t thread_bytes; /* scratch: input, output, largest factor */
} fourier;

typedef struct fourier_job {
    const fourier *p;
    const void *x, *window; /* window: or NULL */
    void *y;
    char *scratch;
    int64_t transforms, samples; /* samples: of a transform, behind which there are zeros */
} fourier_job;

/* Where the samples of that transform begin, and where its elements go, in units of samples. */
static void place(const fourier_job *j, int64_t item, int64_t *at, int64_t *to)
{
    const fourier *p = j->p;
    if (p->frames) {
        *at = item / p->frames * p->in + item % p->frames * p->hop;
        *to = item * p->out;
        return;
    }
    const int64_t o = item / p->inner, i = item % p->inner;
    *at = o * p->in * p->inner + i;
    *to = o * p->out * p->inner + i;
}

static double weight_at(const fourier_job *j, int64_t t)
{
    double weight = 1;
    if (j->window)
        lnt_elements_to_double(j->p->window_type, lnt_element_at(j->window, j->p->window_type, t), &weight,
                               1);
    return weight;
}

static double load_any(const fourier *p, const void *x, int64_t at)
{
    double v;
    lnt_elements_to_double(p->dtype, lnt_element_at(x, p->dtype, at), &v, 1);
    return v;
}

static void store_any(const fourier *p, void *y, int64_t at, double v)
{
    lnt_elements_from_double(p->dtype, &v, lnt_element_at(y, p->dtype, at), 1);
}

#define R float
#define LANES 4
#define NAME(stem) stem##_f
#define LOAD(p, x, at) ((const float *)(x))[at]
#define STORE(p, y, at, v) ((float *)(y))[at] = (v)
#include "ops/signal/fourier.inc.h"
#undef R
#undef LANES
#undef NAME
#undef LOAD
#undef STORE
#define R double
#define LANES 2
#define NAME(stem) stem##_d
#define LOAD load_any
#define STORE store_any
#include "ops/signal/fourier.inc.h"

static lnt_status run_transforms(lnt_kernel *k, fourier_job *j)
{
    const fourier *p = j->p;
    const int64_t most = (p->floats ? 4 : 2) << p->paired;
    return lnt_parallel(k, (j->transforms + most - 1) / most, 1 + 256 / (p->length + 1),
                        p->floats ? transforms_f : transforms_d, j);
}

static lnt_status run_dft(lnt_kernel *k, const lnt_step *s)
{
    const fourier *p = s->params;
    fourier_job job = {p,    lnt_in(k, s, 0), NULL, lnt_out(k, s, 0), lnt_scratch(k, s), p->outer * p->inner,
                       p->in};
    return run_transforms(k, &job);
}

static lnt_status run_stft(lnt_kernel *k, const lnt_step *s)
{
    const fourier *p = s->params;
    fourier_job job = {
        p,        lnt_in(k, s, 0), lnt_in(k, s, 2), lnt_out(k, s, 0), lnt_scratch(k, s), p->outer * p->frames,
        p->window};
    return run_transforms(k, &job);
}

/* ---- bind ---- */

/* Factors, roots and scratch memory for transforms of p->length. */
static lnt_status bind_transform(lnt_site *site, fourier *p)
{
    int64_t rest = p->length, largest = 1;
    const size_t most = SIZE_MAX / site->threads / (8 * LANE_BYTES);
    LNT_REQUIRE(p->length >= 1 && p->length <= INT32_MAX && (uint64_t)p->length <= most, site->err,
                LNT_E_VALUE, "a transform of length %lld", (long long)p->length);
    for (int64_t f = 4; rest > 1; f = f == 4 ? 2 : f == 2 ? 3 : f + 2) {
        if (f > 4 && f * f > rest)
            f = rest;
        for (; rest % f == 0 && p->n_factors < MAX_FACTORS; rest /= f) {
            p->factor[p->n_factors++] = f;
            largest = f > largest ? f : largest;
        }
    }
    p->floats = p->dtype == LNT_FLOAT && p->length > SHORT && largest <= FLOAT_FACTOR_MOST;
    p->paired = p->inverse && p->one_sided ? p->out_parts == 1 : p->in_parts == 1 && !p->inverse;
    p->root = lnt_bump_alloc(site->memory,
                             (size_t)p->length * 2 * (p->floats ? sizeof(float) : sizeof(double)), site->err);
    if (!p->root)
        return LNT_E_MEMORY;
    (p->floats ? fill_roots_f : fill_roots_d)(p);
    p->scale = p->inverse ? 1 / (double)p->length : 1;
    p->thread_bytes = lnt_round_up((size_t)(2 * p->length + largest) * 2 * LANE_BYTES, LNT_ALIGN);
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    return LNT_OK;
}

/* The only number input i holds, *given false where it is skipped. */
static lnt_status read_scalar(const lnt_site *site, unsigned i, int64_t *value, bool *given)
{
    unsigned n = 1;
    LNT_TRY(lnt_value_ints(site, i, value, &n, given));
    LNT_REQUIRE(!*given || n == 1, site->err, LNT_E_SHAPE, "input %u must hold one number", i);
    return LNT_OK;
}

static lnt_status check_parts(const lnt_site *site, int64_t parts)
{
    LNT_REQUIRE(parts < 0 || parts == 1 || parts == 2, site->err, LNT_E_SHAPE,
                "the last axis must hold 1 (real) or 2 (complex) numbers, has %lld", (long long)parts);
    return LNT_OK;
}

/* Axis and length of a DFT; *length is negative while the axis' extent is not known. */
static lnt_status read_dft(const lnt_site *site, unsigned *axis, int64_t *length)
{
    const lnt_operand *x = site->in[0];
    const bool half = lnt_attr_i(site->node, "inverse", 0) && lnt_attr_i(site->node, "onesided", 0);
    int64_t wanted = -2;
    bool given;
    LNT_REQUIRE(x->rank >= 2, site->err, LNT_E_SHAPE, "the input must have rank 2 or more");
    LNT_TRY(read_scalar(site, 2, &wanted, &given));
    LNT_TRY(lnt_axis(site, given ? wanted : -2, x->rank, axis));
    LNT_REQUIRE(*axis + 1 < x->rank, site->err, LNT_E_ARGUMENT,
                "the last axis holds real and imaginary parts");
    LNT_TRY(read_scalar(site, 1, length, &given));
    LNT_REQUIRE(!given || *length > 0, site->err, LNT_E_VALUE, "dft_length is %lld", (long long)*length);
    if (!given)
        *length = x->dims[*axis] < 0 ? LNT_DIM_UNKNOWN : half ? 2 * (x->dims[*axis] - 1) : x->dims[*axis];
    return LNT_OK;
}

lnt_status lnt_shape_dft(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const bool inverse = lnt_attr_i(site->node, "inverse", 0) != 0,
               half = lnt_attr_i(site->node, "onesided", 0) != 0;
    int64_t dims[LNT_MAX_RANK], length;
    unsigned axis;
    LNT_TRY(read_dft(site, &axis, &length));
    LNT_TRY(check_parts(site, x->dims[x->rank - 1]));
    for (unsigned d = 0; d < x->rank; d++)
        dims[d] = x->dims[d];
    dims[axis] = length >= 0 && half && !inverse ? length / 2 + 1 : length;
    dims[x->rank - 1] = half && inverse ? 1 : 2;
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

lnt_status lnt_bind_dft(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *y = site->out[0];
    unsigned axis;
    fourier *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_floating(x->dtype))
        return lnt_bind_unsupported_type(site, x->dtype);
    LNT_TRY(read_dft(site, &axis, &p->length));
    p->dtype = x->dtype;
    p->inverse = lnt_attr_i(site->node, "inverse", 0) != 0;
    p->one_sided = lnt_attr_i(site->node, "onesided", 0) != 0;
    p->in = x->dims[axis];
    p->out = y->dims[axis];
    p->in_parts = (unsigned)x->dims[x->rank - 1];
    p->out_parts = (unsigned)y->dims[y->rank - 1];
    p->outer = p->inner = 1;
    for (unsigned d = 0; d + 1u < x->rank; d++)
        if (d != axis)
            *(d < axis ? &p->outer : &p->inner) *= x->dims[d];
    LNT_TRY(bind_transform(site, p));
    site->step->run = run_dft;
    return LNT_OK;
}

/* ---- STFT ---- */

enum { SIGNAL, STEP, WINDOW, LENGTH }; /* inputs */

/* Hop and length of the frames; *length is negative while it is not known. */
static lnt_status read_stft(const lnt_site *site, int64_t *hop, int64_t *length)
{
    const lnt_operand *window = lnt_input(site, WINDOW);
    bool given;
    LNT_TRY(read_scalar(site, STEP, hop, &given));
    LNT_REQUIRE(*hop > 0, site->err, LNT_E_VALUE, "frame_step is %lld", (long long)*hop);
    LNT_TRY(read_scalar(site, LENGTH, length, &given));
    LNT_REQUIRE(!given || *length > 0, site->err, LNT_E_VALUE, "frame_length is %lld", (long long)*length);
    if (!given)
        *length = window ? window->dims[0] : site->in[SIGNAL]->dims[1];
    return LNT_OK;
}

lnt_status lnt_shape_stft(lnt_site *site)
{
    const lnt_operand *x = site->in[SIGNAL], *window = lnt_input(site, WINDOW);
    const bool half = lnt_attr_i(site->node, "onesided", 1) != 0;
    int64_t hop = 1, length = LNT_DIM_UNKNOWN;
    LNT_REQUIRE((x->rank == 2 || x->rank == 3) && (!window || window->rank == 1), site->err, LNT_E_SHAPE,
                "the signal must be [batch, length, 1 or 2], the window [length]");
    const lnt_status status = read_stft(site, &hop, &length);
    if (status != LNT_OK && status != LNT_UNKNOWN)
        return status;
    const bool known = status == LNT_OK && length >= 0;
    const int64_t room = x->dims[1] < 0 || !known ? -1 : x->dims[1] - length;
    LNT_REQUIRE(!known || x->dims[1] < 0 || room >= 0, site->err, LNT_E_SHAPE,
                "frames of %lld samples in a signal of %lld", (long long)length, (long long)x->dims[1]);
    lnt_set_dims(site, 0, 4,
                 (const int64_t[]){x->dims[0], room < 0 ? LNT_DIM_UNKNOWN : room / hop + 1,
                                   !known ? LNT_DIM_UNKNOWN
                                   : half ? length / 2 + 1
                                          : length,
                                   2});
    return status;
}

lnt_status lnt_bind_stft(lnt_site *site)
{
    const lnt_operand *x = site->in[SIGNAL], *window = lnt_input(site, WINDOW), *y = site->out[0];
    fourier *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_floating(x->dtype) || (window && !lnt_is_floating(window->dtype)))
        return lnt_bind_unsupported_type(site, x->dtype);
    LNT_TRY(read_stft(site, &p->hop, &p->length));
    LNT_TRY(check_parts(site, x->rank == 3 ? x->dims[2] : 1));
    p->dtype = x->dtype;
    p->window = window ? window->dims[0] : p->length;
    p->window_type = window ? window->dtype : LNT_FLOAT;
    p->inner = 1;
    p->in_parts = x->rank == 3 ? (unsigned)x->dims[2] : 1;
    p->out_parts = 2;
    p->outer = x->dims[0];
    p->in = x->dims[1];
    p->frames = y->dims[1];
    p->out = y->dims[2];
    LNT_TRY(bind_transform(site, p));
    site->step->run = run_stft;
    return LNT_OK;
}

/* ---- MelWeightMatrix ---- */

/* Inputs as numbers; their contents may come from a run. */
typedef struct mel {
    lnt_dtype type[5];
    int64_t bins, bands;
    lnt_dtype out;
} mel;

/* Spectrogram bin where the edge of mel band i lies. */
static int64_t mel_edge(double low, double high, int64_t i, int64_t bands, double length, double rate)
{
    const double low_mel = 2595 * log10(1 + low / 700), high_mel = 2595 * log10(1 + high / 700);
    const double at = low_mel + (double)i * (high_mel - low_mel) / (double)(bands + 2);
    const double bin = floor((length + 1) * (700 * (pow(10, at / 2595) - 1)) / rate);
    return bin > 0 && bin < 0x1p31 ? (int64_t)bin : 0;
}

static void mel_set(const lnt_kernel *k, const lnt_step *s, const mel *p, int64_t bin, int64_t band,
                    double weight)
{
    if (bin < p->bins)
        lnt_elements_from_double(p->out, &weight,
                                 lnt_element_at(lnt_out(k, s, 0), p->out, bin * p->bands + band), 1);
}

static lnt_status run_mel(lnt_kernel *k, const lnt_step *s)
{
    const mel *p = s->params;
    double v[5];
    for (unsigned i = 0; i < 5; i++)
        lnt_elements_to_double(p->type[i], lnt_in(k, s, i), &v[i], 1);
    LNT_REQUIRE(v[2] > 0, k->err, LNT_E_VALUE, "sample_rate is %g", v[2]);
    for (int64_t i = 0; i < p->bins * p->bands; i++)
        mel_set(k, s, p, i / p->bands, i % p->bands, 0);
    for (int64_t b = 0; b < p->bands; b++) {
        const int64_t low = mel_edge(v[3], v[4], b, p->bands, v[1], v[2]);
        const int64_t center = mel_edge(v[3], v[4], b + 1, p->bands, v[1], v[2]);
        const int64_t high = mel_edge(v[3], v[4], b + 2, p->bands, v[1], v[2]);
        if (low == center)
            mel_set(k, s, p, center, b, 1);
        for (int64_t i = low; i <= center && low < center && i < p->bins; i++)
            mel_set(k, s, p, i, b, (double)(i - low) / (double)(center - low));
        for (int64_t i = center; i < high && i < p->bins; i++)
            mel_set(k, s, p, i, b, (double)(high - i) / (double)(high - center));
    }
    return LNT_OK;
}

lnt_status lnt_shape_mel(lnt_site *site)
{
    int64_t bands, length;
    bool given;
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "output_datatype", LNT_FLOAT));
    LNT_TRY(read_scalar(site, 0, &bands, &given));
    LNT_TRY(read_scalar(site, 1, &length, &given));
    LNT_REQUIRE(bands >= 0 && length >= 0, site->err, LNT_E_VALUE, "num_mel_bins %lld, dft_length %lld",
                (long long)bands, (long long)length);
    lnt_set_dims(site, 0, 2, (const int64_t[]){length / 2 + 1, bands});
    return LNT_OK;
}

lnt_status lnt_bind_mel(lnt_site *site)
{
    mel *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < 5; i++) {
        p->type[i] = site->in[i]->dtype;
        LNT_REQUIRE(lnt_operand_count(site->in[i]) == 1, site->err, LNT_E_SHAPE,
                    "input %u must hold one number", i);
    }
    p->out = site->out[0]->dtype;
    p->bins = site->out[0]->dims[0];
    p->bands = site->out[0]->dims[1];
    site->step->run = run_mel;
    return LNT_OK;
}
