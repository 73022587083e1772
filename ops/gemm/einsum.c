/* einsum.c — Einsum: sums of products over labeled axes, any number of operands.
 *
 * Every label, the axes of an ellipsis included, becomes a loop; an operand takes part in it with the step of
 * its axis, 0 where it has none (or extent 1), the sum of its steps where a label occurs twice (a diagonal).
 * The innermost loop runs along an output label that is long, else along the last summed one. */
#include "base/checked.h"
#include "ops/data/data.h"
#include "ops/gemm/einsum.h"
#include "ops/number.h"
#include "ops/rows/reduce.h"

#include <string.h>

enum {
    ELLIPSIS = 128, /* label of an ellipsis' last axis; those before it are 129, 130, ... */
    BLOCK = 256,    /* sums kept at once */
    INNER_MIN = 8   /* shortest output axis worth being the inner loop */
};

/* ---- the equation ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Number of axes that an ellipsis stands for in a text of labels, given the operand's rank; -1: there is
 * none. */
static int ellipsis_axes(const char *text, const char *end, unsigned rank)
{
    int letters = 0;
    bool found = false;
    for (; text < end; text++) {
        letters += is_letter(*text);
        found = found || *text == '.';
    }
    return found ? (int)rank - letters : -1;
}

/* Labels of one operand or of the output: letters, and axes ellipsis axes for the dots. */
static lnt_status read_term(const lnt_site *site, const char *text, const char *end, int axes, lnt_term *out)
{
    out->rank = 0;
    for (; text < end; text++) {
        if (*text == ' ')
            continue;
        const bool dots = end - text >= 3 && strncmp(text, "...", 3) == 0;
        const unsigned n = dots && axes > 0 ? (unsigned)axes : dots ? 0 : 1;
        if ((!dots && !is_letter(*text)) || out->rank + n > LNT_MAX_RANK)
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "equation %s cannot be read",
                                 lnt_attr_s(site->node, "equation", ""));
        for (unsigned i = 0; i < n; i++)
            out->label[out->rank++] = (uint8_t)(dots ? ELLIPSIS + n - 1 - i : (unsigned)*text);
        text += dots ? 2 : 0;
    }
    return LNT_OK;
}

static unsigned find_label(const lnt_equation *e, uint8_t label)
{
    unsigned i = 0;
    while (i < e->n && e->label[i] != label)
        i++;
    return i;
}

static lnt_status add_label(const lnt_site *site, lnt_equation *e, uint8_t label)
{
    if (find_label(e, label) < e->n)
        return LNT_OK;
    if (e->n == LNT_EINSUM_LABELS)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "an equation of more than %d labels",
                             LNT_EINSUM_LABELS);
    e->extent[e->n] = 1;
    e->label[e->n++] = label;
    return LNT_OK;
}

/* Gives label's loop the extent of one operand's axis; 1 meets anything. */
static lnt_status meet_extent(const lnt_site *site, lnt_equation *e, uint8_t label, int64_t extent)
{
    int64_t *have = &e->extent[find_label(e, label)];
    if (*have == 1 || (*have < 0 && extent > 1))
        *have = extent;
    else if (*have >= 0 && extent >= 0 && extent != 1 && extent != *have)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "one label has extents %lld and %lld", (long long)*have,
                             (long long)extent);
    return LNT_OK;
}

__attribute__((cold)) static lnt_status read_operands(const lnt_site *site, lnt_equation *e, const char *text,
                                                      const char *end, int *ellipsis)
{
    *ellipsis = 0;
    e->n_operands = 0;
    for (const char *stop; text <= end; text = stop + 1) {
        stop = memchr(text, ',', (size_t)(end - text));
        if (!stop)
            stop = end;
        const unsigned i = e->n_operands++;
        if (i >= site->n_in || i >= LNT_EINSUM_OPERANDS)
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT,
                                 "the equation names more operands than the node has, or %d",
                                 LNT_EINSUM_OPERANDS);
        const lnt_operand *in = site->in[i];
        const int axes = ellipsis_axes(text, stop, in->rank);
        *ellipsis = axes > *ellipsis ? axes : *ellipsis;
        LNT_TRY(read_term(site, text, stop, axes, &e->operand[i]));
        if (e->operand[i].rank != in->rank)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "operand %u has rank %u, its labels %u", i, in->rank,
                                 e->operand[i].rank);
    }
    if (e->n_operands != site->n_in)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "the equation names %u operands of %u", e->n_operands,
                             site->n_in);
    return LNT_OK;
}

/* Output of an equation without "->": the ellipsis, then letters that occur once, in alphabetical order. */
__attribute__((cold)) static void implicit_output(const lnt_equation *e, int ellipsis, lnt_term *out)
{
    unsigned uses[UINT8_MAX + 1] = {0}; /* by label: letters and the axes of the ellipsis */
    out->rank = 0;
    for (unsigned i = 0; i < e->n_operands; i++)
        for (unsigned d = 0; d < e->operand[i].rank; d++)
            uses[e->operand[i].label[d]]++;
    for (int i = ellipsis; i-- > 0;)
        if (out->rank < LNT_MAX_RANK)
            out->label[out->rank++] = (uint8_t)(ELLIPSIS + i);
    for (unsigned c = 'A'; c <= 'z'; c++)
        if (is_letter((char)c) && uses[c] == 1 && out->rank < LNT_MAX_RANK)
            out->label[out->rank++] = (uint8_t)c;
}

__attribute__((cold)) static lnt_status read_equation(const lnt_site *site, lnt_equation *e)
{
    const char *text = lnt_attr_s(site->node, "equation", ""), *arrow = strstr(text, "->");
    const char *end = text + strlen(text);
    int ellipsis;
    lnt_term out;
    memset(e, 0, sizeof *e);
    LNT_TRY(read_operands(site, e, text, arrow ? arrow : end, &ellipsis));
    if (arrow)
        LNT_TRY(read_term(site, arrow + 2, end, ellipsis, &out));
    else
        implicit_output(e, ellipsis, &out);
    for (unsigned d = 0; d < out.rank; d++) {
        if (find_label(e, out.label[d]) < e->n)
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "a label occurs twice in the output");
        LNT_TRY(add_label(site, e, out.label[d]));
    }
    e->n_out = e->n;
    uint32_t used = 0;
    for (unsigned i = 0; i < e->n_operands; i++)
        for (unsigned d = 0; d < e->operand[i].rank; d++) {
            LNT_TRY(add_label(site, e, e->operand[i].label[d]));
            LNT_TRY(meet_extent(site, e, e->operand[i].label[d], site->in[i]->dims[d]));
            used |= 1u << find_label(e, e->operand[i].label[d]);
        }
    for (unsigned i = 0; i < e->n_out; i++)
        if (!(used & 1u << i))
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "an output label is in no operand");
    return LNT_OK;
}

lnt_status lnt_shape_einsum(lnt_site *site)
{
    lnt_equation e;
    LNT_TRY(read_equation(site, &e));
    lnt_set_dims(site, 0, e.n_out, e.extent);
    return LNT_OK;
}

/* ---- inner loops ---- */

/* acc[j * acc_step] += product over operands of x[i][j * step[i]], for j in [0, n). */
typedef void (*accumulate_fn)(unsigned operands, const void *const *x, const int64_t *step, int64_t n,
                              void *acc, int64_t acc_step);
/* out[j * step] = acc[j], for j in [0, n). */
typedef void (*finish_fn)(const void *acc, int64_t n, void *out, int64_t step);

#define X(DT, T, C, load, store, comparable)                                                                 \
    static void accumulate_##DT(unsigned operands, const void *const *x, const int64_t *step, int64_t n,     \
                                void *acc, int64_t acc_step)                                                 \
    {                                                                                                        \
        const T *a = x[0], *b = operands == 2 ? x[1] : NULL;                                                 \
        C *sum = acc;                                                                                        \
        if (operands == 2 && step[0] == 0 && step[1] == 1 && acc_step == 1) {                                \
            const C factor = load(a[0]);                                                                     \
            for (int64_t j = 0; j < n; j++)                                                                  \
                sum[j] += factor * load(b[j]);                                                               \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t j = 0; j < n; j++) {                                                                    \
            C product = load(a[j * step[0]]);                                                                \
            for (unsigned i = 1; i < operands; i++)                                                          \
                product *= load(((const T *)x[i])[j * step[i]]);                                             \
            sum[j * acc_step] += product;                                                                    \
        }                                                                                                    \
    }                                                                                                        \
    static void finish_##DT(const void *acc, int64_t n, void *out, int64_t step)                             \
    {                                                                                                        \
        for (int64_t j = 0; j < n; j++)                                                                      \
            ((T *)out)[j * step] = store(((const C *)acc)[j]);                                               \
    }
LNT_WRAPPING_LIST(X)
LNT_HALF_LIST(X)
#undef X

/* ---- the loops around them ---- */

typedef struct einsum_params {
    accumulate_fn accumulate;
    const lnt_row_kernels
        *row; /* where the innermost loop is over dense rows of floats: of one operand, products of two that
                                   are summed, or a number times the second */
    finish_fn finish;
    unsigned operands, n_out, n;
    unsigned swap; /* 1: the second operand comes first */
    int64_t size;
    int64_t extent[LNT_EINSUM_LABELS];        /* output labels, then summed ones */
    const int64_t (*step)[LNT_EINSUM_LABELS]; /* [operands, then the output], in elements */
    unsigned inner;                           /* label of the innermost loop */
    int64_t blocks, block; /* the inner label, if of the output, is cut into blocks of sums */
    bool empty;            /* a summed label of extent 0 */
} einsum_params;

typedef struct einsum_job {
    const einsum_params *p;
    char *at[LNT_EINSUM_OPERANDS + 1]; /* operands, then the output */
} einsum_job;

/* A place in the loops. */
typedef struct place {
    char *x[LNT_EINSUM_OPERANDS + 1]; /* of operands and output */
    int64_t at[LNT_EINSUM_LABELS];
} place;

/* Moves all operands and the output by count along a label. */
static void move(const einsum_params *p, place *x, unsigned label, int64_t count)
{
    for (unsigned i = 0; i <= p->operands; i++)
        x->x[i] += count * p->step[i][label] * p->size;
}

/* The next place of labels [first, end) but the inner one; false: that is the first again. */
static bool next(const einsum_params *p, place *x, unsigned first, unsigned end)
{
    for (unsigned label = end; label-- > first;) {
        if (label == p->inner || p->extent[label] == 1)
            continue;
        move(p, x, label, 1);
        if (++x->at[label] < p->extent[label])
            return true;
        move(p, x, label, -x->at[label]);
        x->at[label] = 0;
    }
    return false;
}

/* Adds up all summed labels; x stands at their beginning. */
static void sum_up(const einsum_params *p, place *x, int64_t n, void *acc, const int64_t *inner_step)
{
    const int64_t acc_step = p->inner < p->n_out;
    do {
        const void *const *from = (const void *const *)x->x;
        if (p->row && acc_step && p->operands == 1)
            p->row->add(acc, from[0], n);
        else if (p->row && acc_step)
            p->row->add_scaled(acc, from[1], 0, from[0], 1, n);
        else if (p->row)
            *(float *)acc += p->operands == 1 ? p->row->sum(from[0], n) : p->row->dot(from[0], from[1], n);
        else
            p->accumulate(p->operands, from, inner_step, n, acc, acc_step);
    } while (next(p, x, p->n_out, p->n));
}

static lnt_status einsum_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const einsum_job *job = arg;
    const einsum_params *p = job->p;
    const bool outer_inner = p->inner < p->n_out;
    const int64_t length = outer_inner ? p->extent[p->inner] : 1;
    int64_t inner_step[LNT_EINSUM_OPERANDS + 1], first = begin % p->blocks * p->block,
                                                 row = begin / p->blocks;
    double acc[BLOCK]; /* or as many floats or integers */
    place x = {.at = {0}};
    for (unsigned i = 0; i <= p->operands; i++) {
        inner_step[i] = p->step[i][p->inner];
        x.x[i] = job->at[i];
    }
    for (unsigned label = p->n_out; label-- > 0;) {
        if (label == p->inner)
            continue;
        x.at[label] = row % p->extent[label];
        row /= p->extent[label];
        move(p, &x, label, x.at[label]);
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t sums = lnt_least(p->block, length - first);
        memset(acc, 0, (size_t)sums * sizeof *acc);
        if (outer_inner)
            move(p, &x, p->inner, first);
        if (!p->empty)
            sum_up(p, &x, outer_inner ? sums : p->extent[p->inner], acc, inner_step);
        p->finish(acc, sums, x.x[p->operands], outer_inner ? inner_step[p->operands] : 1);
        if (outer_inner)
            move(p, &x, p->inner, -first);
        first += p->block;
        if (first < length)
            continue;
        first = 0;
        next(p, &x, 0, p->n_out);
    }
    return LNT_OK;
}

static lnt_status run_einsum(lnt_kernel *k, const lnt_step *s)
{
    const einsum_params *p = s->params;
    einsum_job job = {.p = p};
    for (unsigned i = 0; i < p->operands; i++)
        job.at[i] = (char *)(uintptr_t)lnt_in(k, s, i ^ p->swap); /* which are not written */
    job.at[p->operands] = lnt_out(k, s, 0);
    const int64_t count = lnt_operand_count(s->out[0]);
    if (count == 0)
        return LNT_OK;
    int64_t items = count, work = 1;
    if (p->inner < p->n_out)
        items = count / p->extent[p->inner] * p->blocks;
    for (unsigned i = p->n_out; i < p->n; i++)
        work *= p->extent[i];
    return lnt_parallel(k, items, lnt_grain(work * p->block), einsum_blocks, &job);
}

static lnt_status choose_loops(lnt_site *site, einsum_params *p)
{
    switch (lnt_wrapping_type((lnt_dtype)site->in[0]->dtype)) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT:                                                                                           \
        p->accumulate = accumulate_##DT;                                                                     \
        p->finish = finish_##DT;                                                                             \
        return LNT_OK;
        LNT_WRAPPING_LIST(X)
        LNT_HALF_LIST(X)
#undef X
    default: return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    }
}

void lnt_einsum_steps(const lnt_equation *e, const lnt_operand *in, unsigned i,
                      int64_t steps[LNT_EINSUM_LABELS])
{
    int64_t strides[LNT_MAX_RANK];
    memset(steps, 0, LNT_EINSUM_LABELS * sizeof *steps);
    lnt_operand_strides(in, strides);
    for (unsigned d = 0; d < in->rank; d++)
        if (in->dims[d] != 1)
            steps[find_label(e, e->operand[i].label[d])] += strides[d];
}

/* Whether every operand is dense, or does not move, along a label. */
static bool is_dense_along(const einsum_params *p, unsigned label)
{
    for (unsigned i = 0; i < p->operands; i++)
        if (p->step[i][label] > 1)
            return false;
    return true;
}

/* The innermost loop: an output label, in blocks of sums, or the last summed one. */
static void choose_inner(einsum_params *p)
{
    unsigned last = p->n, out = p->n_out > 0 ? p->n_out - 1 : 0;
    while (last > p->n_out && p->extent[last - 1] == 1)
        last--;
    const bool sums = last-- > p->n_out;
    for (unsigned i = p->n_out; i-- > 0 && p->extent[out] < INNER_MIN;)
        out = p->extent[i] > p->extent[out] ? i : out;
    bool along_output = p->n_out > 0 && (!sums || p->extent[out] >= INNER_MIN);
    if (along_output && sums && !is_dense_along(p, out) && is_dense_along(p, last) &&
        p->extent[last] >= 2 * INNER_MIN)
        along_output = false;
    p->inner = along_output ? out : sums ? last : 0;
    p->block = p->blocks = 1;
    if (along_output && p->extent[out] > 0) {
        p->block = lnt_least(p->extent[out], BLOCK);
        p->blocks = (p->extent[out] + p->block - 1) / p->block;
    }
}

/* One operand whose labels are those of the output, in any order: a copy; a label that occurs twice is a diagonal. */
static lnt_status bind_transpose(lnt_site *site, const lnt_equation *e)
{
    int64_t src[LNT_EINSUM_LABELS], dst[LNT_MAX_RANK];
    lnt_copy c;
    lnt_einsum_steps(e, site->in[0], 0, src);
    lnt_operand_strides(site->out[0], dst);
    lnt_copy_box(&c, lnt_element_size(site->in[0]), e->n, e->extent, dst, src);
    return lnt_bind_copy(site, &c, 0);
}

static bool sums_dense_floats(const lnt_site *site, const einsum_params *p)
{
    const int64_t first = p->step[0][p->inner], second = p->operands == 2 ? p->step[1][p->inner] : 0;
    const bool one = p->operands == 1 && first == 1;
    return site->in[0]->dtype == LNT_FLOAT && (one || (second == 1 && first == (p->inner >= p->n_out)));
}

/* Axes of the only operand that are summed, where the others are the output's in its order: else 0. */
__attribute__((cold)) static uint32_t summed_axes(const lnt_equation *e)
{
    const lnt_term *term = &e->operand[0];
    uint32_t mask = 0;
    unsigned next = 0;
    if (e->n_operands != 1 || term->rank != e->n)
        return 0;
    for (unsigned d = 0; d < term->rank; d++) {
        const unsigned label = find_label(e, term->label[d]);
        if (label >= e->n_out)
            mask |= 1u << d;
        else if (label != next++)
            return 0;
    }
    return mask;
}

lnt_status lnt_bind_einsum(lnt_site *site)
{
    lnt_equation e;
    bool done;
    LNT_TRY(read_equation(site, &e));
    LNT_TRY(lnt_einsum_bind_product(site, &e, &done));
    if (done)
        return LNT_OK;
    const uint32_t mask = summed_axes(&e);
    if (mask)
        return lnt_bind_reduce_sum(site, mask);
    if (e.n == 0) /* scalars only: one loop of one turn */
        e.extent[e.n++] = 1;
    einsum_params *p = lnt_bind_params(site, sizeof *p);
    int64_t(*step)[LNT_EINSUM_LABELS] =
        p ? lnt_bump_alloc(site->memory, (e.n_operands + 1) * sizeof *step, site->err) : NULL;
    if (!step)
        return LNT_E_MEMORY;
    LNT_TRY(choose_loops(site, p));
    if (e.n_operands == 1 && e.n == e.n_out)
        return bind_transpose(site, &e);
    for (unsigned i = 0; i < e.n_operands; i++) {
        if (site->in[i]->dtype != site->in[0]->dtype)
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "operands differ in type");
        lnt_einsum_steps(&e, site->in[i], i, step[i]);
    }
    lnt_operand_strides(site->out[0], step[e.n_operands]);
    p->operands = e.n_operands;
    p->n_out = e.n_out;
    p->n = e.n;
    memcpy(p->extent, e.extent, sizeof p->extent);
    p->size = (int64_t)lnt_element_size(site->in[0]);
    p->step = (const int64_t(*)[LNT_EINSUM_LABELS])step;
    for (unsigned i = p->n_out; i < p->n; i++)
        p->empty = p->empty || p->extent[i] == 0;
    choose_inner(p);
    p->swap = p->operands == 2 && step[0][p->inner] != 0 && step[1][p->inner] == 0;
    for (unsigned i = 0; p->swap && i < p->n; i++) {
        const int64_t first = step[0][i];
        step[0][i] = step[1][i];
        step[1][i] = first;
    }
    p->row = sums_dense_floats(site, p) ? site->kernels->row : NULL;
    site->step->run = run_einsum;
    return LNT_OK;
}
