/* fourier.c — DFT, STFT and MelWeightMatrix, in double precision whatever the type.
 *
 * Transforms of any length by Cooley and Tukey's recursion ("An Algorithm for the Machine Calculation of Complex
 * Fourier Series", 1965) over the prime factors, fours first, with a table of the roots of unity made at bind.
 * A prime factor p costs p * length. Two transforms go side by side. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/element.h"

#include <math.h>

typedef struct complex_double {
    double re, im;
} complex_double;

/* The same element of two transforms. */
typedef double pair __attribute__((vector_size(16)));
typedef struct complex_pair {
    pair re, im;
} complex_pair;

enum { MAX_FACTORS = 40 };

typedef struct fourier {
    int64_t length; /* of the transform */
    int64_t factor[MAX_FACTORS];
    unsigned n_factors;
    complex_double *root; /* [length] e ** (-+ 2 pi i k / length) */
    bool inverse, one_sided;
    double scale; /* of what is written */
    lnt_dtype dtype;
    int64_t outer, inner;         /* extents before and behind the axis, without re/im */
    int64_t in, out;              /* extents of the axis */
    unsigned in_parts, out_parts; /* 1 real, 2 complex */
    int64_t frames, hop, window;  /* STFT: frames per signal; samples of the window */
    bool has_window;
    lnt_dtype window_type;
    size_t thread_bytes; /* scratch: input, output, largest factor */
} fourier;

typedef struct fourier_job {
    const fourier *p;
    const void *x, *window;
    void *y;
    char *scratch;
    int64_t transforms;
} fourier_job;

static inline complex_pair multiply(complex_pair a, complex_double b)
{
    return (complex_pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline complex_pair add(complex_pair a, complex_pair b)
{
    return (complex_pair){a.re + b.re, a.im + b.im};
}

static inline complex_pair subtract(complex_pair a, complex_pair b)
{
    return (complex_pair){a.re - b.re, a.im - b.im};
}

/* Transforms of m elements, as many as a factor says, into one: in place. step: of the roots. */
static void join_two(const fourier *p, complex_pair *x, int64_t m, int64_t step)
{
    for (int64_t k = 0; k < m; k++) {
        const complex_pair a = x[k], b = multiply(x[m + k], p->root[k * step]);
        x[k] = add(a, b);
        x[m + k] = subtract(a, b);
    }
}

static void join_four(const fourier *p, complex_pair *x, int64_t m, int64_t step)
{
    const double sign = p->inverse ? -1 : 1;
    for (int64_t k = 0; k < m; k++) {
        const complex_pair a = x[k], b = multiply(x[m + k], p->root[k * step]);
        const complex_pair c = multiply(x[2 * m + k], p->root[2 * k * step]);
        const complex_pair d = multiply(x[3 * m + k], p->root[3 * k * step]);
        const complex_pair ac = add(a, c), bd = add(b, d), a_c = subtract(a, c), b_d = subtract(b, d);
        const complex_pair turned = {b_d.im * sign, b_d.re * -sign}; /* by a quarter */
        x[k] = add(ac, bd);
        x[m + k] = add(a_c, turned);
        x[2 * m + k] = subtract(ac, bd);
        x[3 * m + k] = subtract(a_c, turned);
    }
}

/* part: room for a factor. */
static void join_any(const fourier *p, int64_t factor, complex_pair *x, int64_t m, int64_t step,
                     complex_pair *part)
{
    const int64_t turn = p->length / factor;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < factor; q++)
            part[q] = multiply(x[q * m + k], p->root[q * k * step]);
        for (int64_t r = 0; r < factor; r++) {
            complex_pair total = part[0];
            for (int64_t q = 1, at = r * turn; q < factor; q++) {
                total = add(total, multiply(part[q], p->root[at]));
                at += r * turn;
                at -= at < p->length ? 0 : p->length;
            }
            x[r * m + k] = total;
        }
    }
}

/* dst[k] = sum over j < n of src[j * stride] * root[j * k * length / n], k < n. part: room for a factor. */
static void transform(const fourier *p, unsigned level, int64_t n, const complex_pair *src, int64_t stride,
                      complex_pair *dst, complex_pair *part)
{
    if (n == 1) {
        *dst = *src;
        return;
    }
    const int64_t f = p->factor[level], m = n / f, step = p->length / n;
    for (int64_t q = 0; q < f; q++)
        transform(p, level + 1, m, src + q * stride, stride * f, dst + q * m, part);
    if (f == 4)
        join_four(p, dst, m, step);
    else if (f == 2)
        join_two(p, dst, m, step);
    else
        join_any(p, f, dst, m, step, part);
}

/* Samples at[0] and at[1], times weight. */
static complex_pair read_samples(const fourier *p, const void *x, const int64_t at[2], double weight)
{
    complex_pair s;
    for (unsigned lane = 0; lane < 2; lane++) {
        double v[2] = {0, 0};
        lnt_elements_to_double(p->dtype, lnt_element_at(x, p->dtype, at[lane] * p->in_parts), v, p->in_parts);
        s.re[lane] = v[0] * weight;
        s.im[lane] = v[1] * weight;
    }
    return s;
}

static void write_sample(const fourier *p, void *y, int64_t at, double re, double im)
{
    const double parts[2] = {re * p->scale, im * p->scale};
    lnt_elements_from_double(p->dtype, parts, lnt_element_at(y, p->dtype, at * p->out_parts), p->out_parts);
}

/* The one-sided half of a real signal's spectrum gives the other half. */
static void complete(const fourier *p, complex_pair *x)
{
    for (int64_t k = p->length / 2 + 1; k < p->length; k++)
        x[k] = (complex_pair){x[p->length - k].re, -x[p->length - k].im};
}

/* Two transforms, `item` and the next, or one twice. Returns how many. */
static unsigned two_of(const fourier_job *j, int64_t item, int64_t two[2])
{
    const unsigned n = item + 1 < j->transforms ? 2 : 1;
    two[0] = item;
    two[1] = item + n - 1;
    return n;
}

static lnt_status transform_axes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const fourier_job *j = arg;
    const fourier *p = j->p;
    complex_pair *x = (complex_pair *)(void *)(j->scratch + thread * p->thread_bytes);
    complex_pair *y = x + p->length, *part = y + p->length;
    (void)k;
    for (int64_t item = 2 * begin; item < 2 * end; item += 2) {
        int64_t at[2], to[2];
        const unsigned lanes = two_of(j, item, at);
        for (unsigned lane = 0; lane < 2; lane++) {
            const int64_t o = at[lane] / p->inner, i = at[lane] % p->inner;
            at[lane] = o * p->in * p->inner + i;
            to[lane] = o * p->out * p->inner + i;
        }
        for (int64_t t = 0; t < p->length; t++, at[0] += p->inner, at[1] += p->inner)
            x[t] = t < p->in ? read_samples(p, j->x, at, 1) : (complex_pair){{0}, {0}};
        if (p->inverse && p->one_sided)
            complete(p, x);
        transform(p, 0, p->length, x, 1, y, part);
        for (int64_t t = 0; t < p->out; t++)
            for (unsigned lane = 0; lane < lanes; lane++)
                write_sample(p, j->y, to[lane] + t * p->inner, y[t].re[lane], y[t].im[lane]);
    }
    return LNT_OK;
}

/* Samples [at, at + length) of two signals in their windows. */
static void read_frames(const fourier_job *j, int64_t at[2], complex_pair *x)
{
    const fourier *p = j->p;
    for (int64_t t = 0; t < p->length; t++, at[0]++, at[1]++) {
        double weight = 1;
        x[t] = (complex_pair){{0}, {0}};
        if (t >= p->window)
            continue;
        if (p->has_window)
            lnt_elements_to_double(p->window_type, lnt_element_at(j->window, p->window_type, t), &weight, 1);
        x[t] = read_samples(p, j->x, at, weight);
    }
}

static lnt_status transform_frames(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const fourier_job *j = arg;
    const fourier *p = j->p;
    complex_pair *x = (complex_pair *)(void *)(j->scratch + thread * p->thread_bytes);
    complex_pair *y = x + p->length, *part = y + p->length;
    (void)k;
    for (int64_t item = 2 * begin; item < 2 * end; item += 2) {
        int64_t at[2];
        const unsigned lanes = two_of(j, item, at);
        for (unsigned lane = 0; lane < 2; lane++)
            at[lane] = at[lane] / p->frames * p->in + at[lane] % p->frames * p->hop;
        read_frames(j, at, x);
        transform(p, 0, p->length, x, 1, y, part);
        for (int64_t t = 0; t < p->out; t++)
            for (unsigned lane = 0; lane < lanes; lane++)
                write_sample(p, j->y, (item + lane) * p->out + t, y[t].re[lane], y[t].im[lane]);
    }
    return LNT_OK;
}

static lnt_status run_transforms(lnt_kernel *k, fourier_job *j, lnt_task_fn task)
{
    return lnt_parallel(k, (j->transforms + 1) / 2, 1 + 512 / (j->p->length + 1), task, j);
}

static lnt_status run_dft(lnt_kernel *k, const lnt_step *s)
{
    const fourier *p = s->params;
    fourier_job job = {p, lnt_in(k, s, 0), NULL, lnt_out(k, s, 0), lnt_scratch(k, s), p->outer * p->inner};
    return run_transforms(k, &job, transform_axes);
}

static lnt_status run_stft(lnt_kernel *k, const lnt_step *s)
{
    const fourier *p = s->params;
    fourier_job job = {
        p, lnt_in(k, s, 0), lnt_in(k, s, 2), lnt_out(k, s, 0), lnt_scratch(k, s), p->outer * p->frames};
    return run_transforms(k, &job, transform_frames);
}

/* ---- bind ---- */

/* Factors, roots and scratch memory for transforms of p->length. */
static lnt_status bind_transform(lnt_site *site, fourier *p)
{
    const double turn = (p->inverse ? 2 : -2) * 3.14159265358979323846 / (double)p->length;
    int64_t rest = p->length, largest = 1;
    const size_t most = SIZE_MAX / site->threads / (4 * sizeof(complex_pair));
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
    p->root = lnt_bump_alloc(site->memory, (size_t)p->length * sizeof *p->root, site->err);
    if (!p->root)
        return LNT_E_MEMORY;
    for (int64_t k = 0; k < p->length; k++)
        p->root[k] = (complex_double){cos(turn * (double)k), sin(turn * (double)k)};
    p->scale = p->inverse ? 1 / (double)p->length : 1;
    p->thread_bytes = lnt_round_up((size_t)(2 * p->length + largest) * sizeof(complex_pair), LNT_ALIGN);
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
    p->has_window = window != NULL;
    p->window = window ? window->dims[0] : p->length;
    p->window_type = window ? window->dtype : LNT_FLOAT;
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
