/* random.c — RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.
 *
 * Numbers come from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
 * 2011), counted by element and keyed by the session's seed and the node's own, or the node where it has none: each
 * element can be drawn by any thread. Floats, and what has fewer bits, are drawn by vectors (random_kernels.h);
 * doubles, Bernoulli and Multinomial here. Logarithm, sine and cosine are our own, of additions, multiplications
 * and divisions alone, so that a seed gives the same bits on every machine. */
#include "base/half.h"
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/data/random_kernels.h"
#include "ops/number.h"

#include <math.h>
#include <string.h>

/* ---- the generator ---- */

/* Two numbers of 64 random bits: the block of the given number. */
static void draw_bits(uint64_t key, uint64_t block, uint64_t out[2])
{
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (unsigned round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
        const uint32_t c0 = (uint32_t)(b >> 32) ^ c[1] ^ k0, c2 = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[0] = c0;
        c[1] = (uint32_t)b;
        c[2] = c2;
        c[3] = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = (uint64_t)c[1] << 32 | c[0];
    out[1] = (uint64_t)c[3] << 32 | c[2];
}

/* Two uniform numbers of the open interval (0, 1). */
static void draw_open(uint64_t key, uint64_t block, double out[2])
{
    uint64_t bits[2];
    draw_bits(key, block, bits);
    for (unsigned i = 0; i < 2; i++)
        out[i] = ((double)(bits[i] >> 12) + 0.5) * 0x1p-52;
}

/* ---- mathematics; relative error below 1e-15 ---- */

/* c[0] + c[1] x + c[2] x^2 ... of n coefficients. */
static inline double polynomial(const double *c, unsigned n, double x)
{
    double sum = c[n - 1];
    for (unsigned i = n - 1; i-- > 0;)
        sum = sum * x + c[i];
    return sum;
}

/* ln x, x a normal number > 0: 2 artanh((m - 1) / (m + 1)) of a mantissa in [sqrt 1/2, sqrt 2), plus the
 * exponent's share. */
static double natural_log(double x)
{
    static const double artanh[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                    1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    const uint64_t half_root = 0x3fe6a09e667f3bcd; /* bits of sqrt 1/2 */
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)((int64_t)(bits - half_root) >> 52);
    bits -= (uint64_t)exponent * ((uint64_t)1 << 52);
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1);
    return 2 * s * polynomial(artanh, sizeof artanh / sizeof *artanh, s * s) + exponent * 0.69314718055994531;
}

/* sin and cos of 2 pi u, 0 < u < 1: Taylor series after reduction to an eighth of the circle. */
static void circle(double u, double *sine, double *cosine)
{
    static const double sines[] = {1,
                                   -1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800,
                                   -1.0 / 1307674368000};
    static const double cosines[] = {1,
                                     -1.0 / 2,
                                     1.0 / 24,
                                     -1.0 / 720,
                                     1.0 / 40320,
                                     -1.0 / 3628800,
                                     1.0 / 479001600,
                                     -1.0 / 87178291200,
                                     1.0 / 20922789888000};
    const int quarter = (int)(4 * u + 0.5);
    const double r = (4 * u - quarter) * 1.5707963267948966, r2 = r * r;
    const double s = r * polynomial(sines, sizeof sines / sizeof *sines, r2);
    const double c = polynomial(cosines, sizeof cosines / sizeof *cosines, r2);
    *sine = quarter & 1 ? c : s;
    *cosine = quarter & 1 ? s : c;
    if (quarter == 2 || quarter == 3)
        *sine = -*sine;
    if (quarter == 1 || quarter == 2)
        *cosine = -*cosine;
}

/* Two normal numbers by Box and Muller's transform. */
static void draw_normal(uint64_t key, uint64_t block, double out[2])
{
    double u[2], sine, cosine;
    draw_open(key, block, u);
    const double radius = sqrt(-2 * natural_log(u[0]));
    circle(u[1], &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
}

/* ---- the operators ---- */

typedef struct random_params {
    uint64_t salt; /* of the node */
    lnt_dtype dtype, in_dtype;
    bool normal;
    double base, scale;
    const lnt_random_kernels *kernels;
    int64_t classes; /* of Multinomial */
} random_params;

typedef struct random_job {
    const random_params *p;
    uint64_t key;
    const void *in;
    void *out;
    int64_t n;
} random_job;

static random_params *bind_random(lnt_site *site, lnt_run_fn run)
{
    const lnt_attr *seed = lnt_attr_of(site->node, "seed", LNT_ATTR_FLOAT);
    random_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return NULL;
    p->salt = lnt_mix_seed(seed ? (uint64_t)1 << 32 | lnt_float_bits(*seed->f) : site->node->index);
    p->dtype = (lnt_dtype)site->out[0]->dtype;
    if (site->n_in > 0)
        p->in_dtype = (lnt_dtype)site->in[0]->dtype;
    site->step->run = run;
    return p;
}

static random_job random_job_of(lnt_kernel *k, const lnt_step *s)
{
    const random_params *p = s->params;
    return (random_job){.p = p,
                        .key = lnt_mix_seed(k->seed ^ p->salt),
                        .in = lnt_in(k, s, 0),
                        .out = lnt_out(k, s, 0),
                        .n = lnt_operand_count(s->out[0])};
}

/* Blocks of two elements. */
static lnt_status fill_doubles(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const random_job *job = arg;
    const random_params *p = job->p;
    for (int64_t block = begin; block < end; block++) {
        double x[2];
        if (p->normal)
            draw_normal(job->key, (uint64_t)block, x);
        else
            draw_open(job->key, (uint64_t)block, x);
        for (int64_t i = 0; i < 2 && 2 * block + i < job->n; i++)
            ((double *)job->out)[2 * block + i] = p->base + p->scale * x[i];
    }
    return LNT_OK;
}

static void draw_floats(const random_job *job, int64_t group, int64_t groups, float *out)
{
    const random_params *p = job->p;
    p->kernels->draw(job->key, group, groups, p->normal, (float)p->base, (float)p->scale, out);
}

/* Groups of floats, or of what has fewer bits. */
static lnt_status fill_floats(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const random_job *job = arg;
    const bool floats = job->p->dtype == LNT_FLOAT;
    const int64_t whole = job->n / LNT_RANDOM_GROUP < end ? job->n / LNT_RANDOM_GROUP : end;
    if (floats && begin < whole)
        draw_floats(job, begin, whole - begin, (float *)job->out + begin * LNT_RANDOM_GROUP);
    for (int64_t group = floats && whole > begin ? whole : begin; group < end; group++) {
        float x[LNT_RANDOM_GROUP];
        draw_floats(job, group, 1, x);
        for (int64_t i = 0; i < LNT_RANDOM_GROUP && group * LNT_RANDOM_GROUP + i < job->n; i++)
            lnt_store_number(job->p->dtype, job->out, group * LNT_RANDOM_GROUP + i, (double)x[i]);
    }
    return LNT_OK;
}

static lnt_status run_random(lnt_kernel *k, const lnt_step *s)
{
    random_job job = random_job_of(k, s);
    LNT_ASSERT(job.n >= 0 && lnt_is_floating(job.p->dtype));
    if (job.p->dtype == LNT_DOUBLE)
        return lnt_parallel(k, (job.n + 1) / 2, 2048, fill_doubles, &job);
    return lnt_parallel(k, (job.n + LNT_RANDOM_GROUP - 1) / LNT_RANDOM_GROUP, 256, fill_floats, &job);
}

static lnt_status bind_drawn(lnt_site *site, bool normal, double base, double scale)
{
    const lnt_dtype dtype = (lnt_dtype)site->out[0]->dtype;
    if (!lnt_is_floating(dtype))
        return lnt_bind_unsupported_type(site, dtype);
    random_params *p = bind_random(site, run_random);
    if (!p)
        return LNT_E_MEMORY;
    p->kernels = site->kernels->random;
    p->normal = normal;
    p->base = base;
    p->scale = scale;
    return LNT_OK;
}

lnt_status lnt_bind_random_normal(lnt_site *site)
{
    return bind_drawn(site, true, lnt_attr_f(site->node, "mean", 0), lnt_attr_f(site->node, "scale", 1));
}

lnt_status lnt_bind_random_uniform(lnt_site *site)
{
    const double low = lnt_attr_f(site->node, "low", 0), high = lnt_attr_f(site->node, "high", 1);
    return bind_drawn(site, false, low, high - low);
}

/* Extents in attribute shape. */
lnt_status lnt_shape_random(lnt_site *site)
{
    const lnt_attr *shape = lnt_attr_of(site->node, "shape", LNT_ATTR_INTS);
    if (!shape || shape->count > LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "attribute shape must hold at most %d extents",
                             LNT_MAX_RANK);
    for (unsigned i = 0; i < shape->count; i++)
        if (shape->i[i] < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extent %lld of axis %u", (long long)shape->i[i], i);
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "dtype", LNT_FLOAT));
    lnt_set_dims(site, 0, shape->count, shape->i);
    return LNT_OK;
}

/* Extents of the input; its type where there is no dtype. */
lnt_status lnt_shape_random_like(lnt_site *site)
{
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "dtype", site->in[0]->dtype));
    if (lnt_output(site, 0))
        site->out[0]->rank = LNT_RANK_UNKNOWN;
    if (!lnt_rank_known(site->in[0]))
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

/* ---- Bernoulli ---- */

static lnt_status draw_bernoulli(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const random_job *job = arg;
    const random_params *p = job->p;
    for (int64_t block = begin; block < end; block++) {
        double u[2];
        draw_open(job->key, (uint64_t)block, u);
        for (int64_t i = 2 * block; i < 2 * block + 2 && i < job->n; i++)
            lnt_store_number(p->dtype, job->out, i, u[i & 1] < lnt_load_number(p->in_dtype, job->in, i));
    }
    return LNT_OK;
}

static lnt_status run_bernoulli(lnt_kernel *k, const lnt_step *s)
{
    random_job job = random_job_of(k, s);
    return lnt_parallel(k, (job.n + 1) / 2, 2048, draw_bernoulli, &job);
}

lnt_status lnt_bind_bernoulli(lnt_site *site)
{
    if (!lnt_is_floating(site->in[0]->dtype))
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    if (lnt_element_size(site->out[0]) == 0)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->out[0]->dtype);
    return bind_random(site, run_bernoulli) ? LNT_OK : LNT_E_MEMORY;
}

/* ---- Multinomial ---- */

lnt_status lnt_shape_multinomial(lnt_site *site)
{
    const int64_t samples = lnt_attr_i(site->node, "sample_size", 1);
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "dtype", LNT_INT32));
    if (lnt_output(site, 0))
        site->out[0]->rank = LNT_RANK_UNKNOWN;
    if (!lnt_rank_known(site->in[0]))
        return LNT_UNKNOWN;
    if (site->in[0]->rank != 2 || samples < 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE,
                             "the input must be [batch, classes], sample_size not negative");
    lnt_set_dims(site, 0, 2, (int64_t[]){site->in[0]->dims[0], samples});
    return LNT_OK;
}

/* A sample of unnormalized log-probabilities x is the argmax of x - ln(-ln u) (Gumbel's trick): no sums. */
static lnt_status draw_samples(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const random_job *job = arg;
    const random_params *p = job->p;
    const int64_t samples = job->n, classes = p->classes;
    for (int64_t s = begin; s < end; s++) {
        int64_t best = 0;
        double highest = -INFINITY;
        for (int64_t c = 0; c < classes; c++) {
            double u[2];
            draw_open(job->key, (uint64_t)(s * classes + c), u);
            const double x = lnt_load_number(p->in_dtype, job->in, s / samples * classes + c);
            const double score = x - natural_log(-natural_log(u[0]));
            if (score > highest) {
                highest = score;
                best = c;
            }
        }
        lnt_store_number(p->dtype, job->out, s, (double)best);
    }
    return LNT_OK;
}

static lnt_status run_multinomial(lnt_kernel *k, const lnt_step *s)
{
    random_job job = random_job_of(k, s);
    const int64_t total = job.n;
    job.n = s->out[0]->dims[1];
    return lnt_parallel(k, total, 1 + 4096 / (job.p->classes + 1), draw_samples, &job);
}

lnt_status lnt_bind_multinomial(lnt_site *site)
{
    const lnt_dtype to = (lnt_dtype)site->out[0]->dtype;
    if (!lnt_is_floating(site->in[0]->dtype))
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    if (to != LNT_INT32 && to != LNT_INT64)
        return lnt_bind_unsupported_type(site, to);
    if (site->in[0]->dims[1] == 0 && lnt_operand_count(site->out[0]) > 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "there are no classes to draw from");
    random_params *p = bind_random(site, run_multinomial);
    if (!p)
        return LNT_E_MEMORY;
    p->classes = site->in[0]->dims[1];
    return LNT_OK;
}
