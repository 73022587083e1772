/* trees.c — TreeEnsemble: what the ensembles of ai.onnx.ml become (convert/import/expand_trees.c).
 *
 * Inputs: x [N, F] or [F]; nodes, uint32 [n, 3] (float) or uint64 [n, 2] (double); roots uint32 [T]; and, where a leaf
 * holds more than one number, weights [leaves, C] or, with lists, weights [P], first uint32 [leaves + 1] and
 * targets uint32 [P]. Output: [N, C].
 *
 * A node holds a threshold, twice its feature, plus 1 where NaN goes to the true side, and the number of its false
 * side, behind which is the true one: x <= threshold. Sides stand behind their node: so a walk ends. A leaf is its
 * own false side and asks for the feature behind the last, which is NaN: a walk that arrived stays there without a
 * branch, while others go on. Its threshold is its number or says where its weights are.
 *
 * Rows are walked LANES at a time through one tree, a single row through LANES trees. Sums run over trees in their
 * order, in double. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/element.h"
#include "ops/vectorize.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define EIGHT_LANES(X) X(a, 0) X(b, 1) X(c, 2) X(d, 3) X(e, 4) X(f, 5) X(g, 6) X(h, 7)
/* A walk waits for memory at every step: others beside it fill that time, even where not all of them have a register.
 * On ARM, where a library has less room, there are fewer; and one walk does for a row and for many, as the distances
 * between a row's elements stay in registers, too. */
#ifdef __x86_64__
enum { LANES = 16, MANY_REGISTERS = 0 };
#define EACH_LANE(X) EIGHT_LANES(X) X(l, 8) X(m, 9) X(n, 10) X(o, 11) X(p, 12) X(q, 13) X(r, 14) X(s, 15)
#else
enum { LANES = 8, MANY_REGISTERS = sizeof(void *) == 8 };
#define EACH_LANE(X) EIGHT_LANES(X)
#endif

/* A walk is as long as the file wants it: behind every POLLED trees somebody looks at the clock. */
enum { MAX_BLOCKS = 8, BLOCK_BYTES = 1 << 16, MOST_FEATURES = 1 << 26, POLLED = 64 };

typedef enum aggregate { SUM, AVERAGE, MINIMUM, MAXIMUM } aggregate;

typedef struct trees {
    const void *nodes;
    const uint32_t *roots, *first, *targets; /* first: NULL but for lists */
    const void *weights;                     /* NULL: leaves hold their number */
    int64_t n_nodes, n_trees, n_leaves, n_targets, n_features;
    int64_t rows, pitch; /* of x */
    lnt_dtype type;      /* of x */
    bool missing;        /* NaN goes to the true side somewhere */
    aggregate how;
    int64_t blocks;                 /* of LANES rows worked on at a time */
    size_t x_at, sum_at, line_at;   /* in the scratch memory of a thread, of which there are `each` bytes, */
    size_t each, one_at, leaves_at; /* behind all of them one row and its leaves */
} trees;

typedef struct trees_job {
    const trees *p;
    const char *x;
    void *y;
    char *scratch;
    bool holes; /* in the one row that was taken */
} trees_job;

static void fold(aggregate how, double *sum, double v)
{
    if (how == MINIMUM)
        *sum = *sum <= v ? *sum : v;
    else if (how == MAXIMUM)
        *sum = *sum >= v ? *sum : v;
    else
        *sum += v;
}

static void clear(const trees *p, double *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] = p->how >= MINIMUM ? (double)NAN : 0;
}

#include "ops/real_float.h"
#include "ops/ml/trees.inc.h"
#include "ops/real_double.h"
#include "ops/ml/trees.inc.h"

static lnt_status run_trees(lnt_kernel *k, const lnt_step *s)
{
    const trees *p = s->params;
    LNT_ASSERT(p->blocks > 0 && p->pitch >= p->n_features);
    trees_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0), lnt_scratch(k, s), false};
    return s->out[0]->dtype == LNT_DOUBLE ? run_double(k, &job) : run_float(k, &job);
}

lnt_status lnt_shape_trees(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const int64_t dims[] = {x->rank == 1 ? 1 : x->dims[0], lnt_attr_i(site->node, "n_targets", 1)};
    lnt_set_type(site, 0, site->in[1]->dtype == LNT_UINT64 ? LNT_DOUBLE : LNT_FLOAT);
    if (x->rank == LNT_RANK_UNKNOWN)
        return LNT_OK;
    LNT_REQUIRE(x->rank == 1 || x->rank == 2, site->err, LNT_E_SHAPE, "x must have rank 1 or 2, not %u",
                x->rank);
    LNT_REQUIRE(dims[1] > 0, site->err, LNT_E_ARGUMENT, "n_targets must be positive");
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

/* Input i, a constant of this type and at most two axes; the last has `width` elements, unless that is 0. */
static lnt_status constant(const lnt_site *site, unsigned i, lnt_dtype type, unsigned rank, int64_t width)
{
    const lnt_operand *o = lnt_input(site, i);
    LNT_REQUIRE(o && o->constant && o->data && !o->packed && o->dtype == type && o->rank == rank &&
                    (!width || o->dims[rank - 1] == width),
                site->err, LNT_E_FILE, "input %u must be a constant of type %s and rank %u", i,
                lnt_dtype_text(type), rank);
    return LNT_OK;
}

/* Where leaves have their numbers, and that they can be read there. */
static lnt_status bind_leaves(lnt_site *site, trees *p, lnt_dtype real)
{
    const lnt_operand *w = lnt_input(site, 3), *first = lnt_input(site, 4);
    LNT_REQUIRE(w || p->n_targets == 1, site->err, LNT_E_FILE, "%lld targets need weights",
                (long long)p->n_targets);
    if (!w)
        return LNT_OK;
    p->weights = w->data;
    if (!first) {
        LNT_TRY(constant(site, 3, real, 2, p->n_targets));
        p->n_leaves = w->dims[0];
        return LNT_OK;
    }
    LNT_TRY(constant(site, 3, real, 1, 0));
    LNT_TRY(constant(site, 4, LNT_UINT32, 1, 0));
    LNT_TRY(constant(site, 5, LNT_UINT32, 1, w->dims[0]));
    p->first = first->data;
    p->targets = site->in[5]->data;
    p->n_leaves = first->dims[0] - 1;
    for (int64_t i = 0; i < p->n_leaves; i++)
        LNT_REQUIRE(p->first[i] <= p->first[i + 1] && p->first[i + 1] <= w->dims[0], site->err, LNT_E_FILE,
                    "the weights of leaf %lld are outside of the list", (long long)i);
    for (int64_t i = 0; i < w->dims[0]; i++)
        LNT_REQUIRE(p->targets[i] < p->n_targets, site->err, LNT_E_FILE,
                    "weight %lld is of target %u of %lld", (long long)i, p->targets[i],
                    (long long)p->n_targets);
    return LNT_OK;
}

static lnt_status reserve(lnt_site *site, trees *p, size_t real)
{
    const int64_t block = (p->n_features + 1) * LANES;
    const int64_t room = BLOCK_BYTES / (block * (int64_t)real);
    p->blocks = room < 1 ? 1 : lnt_least(room, MAX_BLOCKS);
    size_t total = 0;
    int64_t sums;
    bool fits = lnt_mul_i64(p->n_targets, p->blocks * LANES, &sums) && sums <= PTRDIFF_MAX / 64 &&
                lnt_reserve(&p->each, p->blocks * block, real, &p->x_at) &&
                lnt_reserve(&p->each, sums, sizeof(double), &p->sum_at) &&
                lnt_reserve(&p->each, p->n_features, real, &p->line_at);
    p->each = fits ? lnt_round_up(p->each, 64) : 0;
    fits = fits && lnt_mul_size(p->each, site->threads, &total) &&
           lnt_reserve(&total, p->n_features + 1, real, &p->one_at) &&
           lnt_reserve(&total, p->n_trees, sizeof(uint32_t), &p->leaves_at);
    LNT_REQUIRE(fits, site->err, LNT_E_LIMIT, "its scratch memory is larger than the address space");
    lnt_bind_scratch(site, total);
    return LNT_OK;
}

lnt_status lnt_bind_trees(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *nodes = site->in[1];
    const lnt_dtype real = site->out[0]->dtype;
    trees *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (x->dtype != LNT_FLOAT && x->dtype != LNT_DOUBLE && !lnt_is_integer((lnt_dtype)x->dtype))
        return lnt_bind_unsupported_type(site, (lnt_dtype)x->dtype);
    LNT_TRY(real == LNT_DOUBLE ? constant(site, 1, LNT_UINT64, 2, 2) : constant(site, 1, LNT_UINT32, 2, 3));
    LNT_TRY(constant(site, 2, LNT_UINT32, 1, 0));
    *p = (trees){.nodes = nodes->data,
                 .roots = site->in[2]->data,
                 .n_nodes = nodes->dims[0],
                 .n_trees = site->in[2]->dims[0],
                 .n_targets = site->out[0]->dims[1],
                 .n_features = lnt_attr_i(site->node, "n_features", 0),
                 .rows = site->out[0]->dims[0],
                 .pitch = x->dims[x->rank - 1],
                 .type = (lnt_dtype)x->dtype,
                 .how = (aggregate)lnt_attr_i(site->node, "aggregate", SUM)};
    LNT_REQUIRE(p->n_features >= 0 && p->n_features <= MOST_FEATURES && p->pitch >= p->n_features, site->err,
                LNT_E_SHAPE, "the trees ask for %lld features, x has %lld", (long long)p->n_features,
                (long long)p->pitch);
    LNT_TRY(bind_leaves(site, p, real));
    LNT_TRY(real == LNT_DOUBLE ? check_double(site, p) : check_float(site, p));
    site->step->run = run_trees;
    return reserve(site, p, lnt_dtype_size(real));
}
