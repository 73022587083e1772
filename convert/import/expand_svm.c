/* expand_svm.c — support vector machines of ai.onnx.ml, made of ONNX's operators. In double precision: distances are
 * worked out as a product of matrices, whose terms cancel where the vectors are near each other. */
#include "base/lnt_assert.h"
#include "convert/import/expand_ml.h"

#include <string.h>

typedef struct svm {
    ml_list coefficients, rho, vectors;
    int64_t n_vectors; /* 0: the coefficients are weights of features */
} svm;

static svm read_svm(maker *m)
{
    return (svm){.coefficients = ml_reals(m, "coefficients"),
                 .rho = ml_reals(m, "rho"),
                 .vectors = ml_reals(m, "support_vectors")};
}

/* The first n numbers as [1, n]. */
static uint32_t row(maker *m, const char *what, const double *v, int64_t n)
{
    return ml_constant(m, what, LNT_DOUBLE, 2, (const int64_t[]){1, n}, v);
}

static uint32_t at_axis(maker *m, const char *op, operands in, int64_t axis)
{
    return make(m, op, in, INT_ATTR("axis", &axis));
}

/* alpha a b' + c. */
static uint32_t gemm(maker *m, operands in, float alpha)
{
    const int64_t yes = 1;
    const lnt_attr attr[] = {*INT_ATTR("transB", &yes),
                             {.name = "alpha", .type = LNT_ATTR_FLOAT, .count = 1, .f = &alpha}};
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "Gemm", in.value, in.n, attr, 2, &out);
    return out;
}

/* ---- kernels ---- */

/* exp(-gamma |x - v|²) [N, S] of rows x [N, F] and vectors [S, F]. */
static uint32_t radial(maker *m, const svm *s, uint32_t x, uint32_t vectors, double gamma)
{
    const int64_t width = s->n_vectors ? (int64_t)s->vectors.n / s->n_vectors : 0;
    double *squares = ml_take(m, (size_t)s->n_vectors, sizeof *squares);
    for (int64_t i = 0; squares && i < s->n_vectors; i++)
        for (int64_t k = 0; k < width; k++)
            squares[i] += s->vectors.v[i * width + k] * s->vectors.v[i * width + k];
    const double far = 1e150; /* its square is finite: what is infinitely far away stays so, and is no NaN */
    const uint32_t near = make(
        m, "Clip", IN(x, scalar(m, "least", LNT_DOUBLE, -far), scalar(m, "most", LNT_DOUBLE, far)), NULL);
    const uint32_t own = make(m, "ReduceSumSquare", IN(near, INTS(m, "axis", 1)), NULL);
    const uint32_t others = gemm(m, IN(near, vectors, row(m, "squares", squares, s->n_vectors)), -2);
    const uint32_t scale = scalar(m, "gamma", LNT_DOUBLE, -gamma);
    return make(m, "Exp", IN(make(m, "Mul", IN(make(m, "Add", IN(others, own), NULL), scale), NULL)), NULL);
}

/* [N, S] of x [N, F]: how much each support vector has to say. */
static uint32_t kernel(maker *m, const svm *s, uint32_t x)
{
    const char *type = lnt_inode_s(m->n, "kernel_type", "LINEAR");
    const ml_list p = ml_reals(m, "kernel_params");
    const bool linear = strcmp(type, "LINEAR") == 0, poly = strcmp(type, "POLY") == 0;
    const int64_t dims[] = {s->n_vectors, s->n_vectors ? (int64_t)s->vectors.n / s->n_vectors : 0};
    if (m->status == LNT_OK && (!s->vectors.n || (int64_t)s->vectors.n % s->n_vectors))
        ml_fail(m, "support_vectors", "has the wrong length");
    else if (!linear && p.n != 3)
        ml_fail(m, "kernel_params", "has not three numbers");
    if (m->status != LNT_OK)
        return LNT_NONE;
    const uint32_t vectors = ml_constant(m, "vectors", LNT_DOUBLE, 2, dims, s->vectors.v);
    if (linear)
        return gemm(m, IN(x, vectors), 1);
    if (strcmp(type, "RBF") == 0)
        return radial(m, s, x, vectors, p.v[0]);
    if (!poly && strcmp(type, "SIGMOID") != 0)
        ml_fail(m, "kernel_type", "is not known");
    const uint32_t y = gemm(m, IN(x, vectors, scalar(m, "coef0", LNT_DOUBLE, p.v[1])), (float)p.v[0]);
    return poly ? make(m, "Pow", IN(y, scalar(m, "degree", LNT_DOUBLE, p.v[2])), NULL)
                : make(m, "Tanh", IN(y), NULL);
}

/* x weights' + rho[0] [N, n] of x [N, K], K the kernel's outputs or features. */
static uint32_t weighted(maker *m, const svm *s, uint32_t x, int64_t n)
{
    const int64_t dims[] = {n, n ? (int64_t)s->coefficients.n / n : 0};
    if (m->status == LNT_OK && (!s->rho.n || !dims[1] || (int64_t)s->coefficients.n % n ||
                                (s->n_vectors && dims[1] != s->n_vectors)))
        ml_fail(m, "coefficients", "or rho has the wrong length");
    if (m->status != LNT_OK)
        return LNT_NONE;
    const uint32_t weights = ml_constant(m, "coefficients", LNT_DOUBLE, 2, dims, s->coefficients.v);
    return gemm(m, IN(x, weights, row(m, "rho", s->rho.v, 1)), 1);
}

void lnt_expand_svm_regressor(maker *m)
{
    svm s = read_svm(m);
    s.n_vectors = lnt_inode_i(m->n, "n_supports", 0);
    if (s.n_vectors < 0 || s.n_vectors > INT32_MAX)
        ml_fail(m, "n_supports", "is out of range");
    const uint32_t x = ml_rows(m, LNT_DOUBLE);
    uint32_t y = weighted(m, &s, s.n_vectors ? kernel(m, &s, x) : x, 1);
    if (lnt_inode_i(m->n, "one_class", 0)) {
        const uint32_t inside = make(m, "Greater", IN(y, scalar(m, "zero", LNT_DOUBLE, 0)), NULL);
        const uint32_t one = scalar(m, "inside", LNT_DOUBLE, 1), other = scalar(m, "outside", LNT_DOUBLE, -1);
        y = make(m, "Where", IN(inside, one, other), NULL);
    }
    finish(m, 0, "Identity", IN(ml_post_transform(m, cast(m, y, LNT_FLOAT))), NULL);
}

/* ---- pairs of classes ---- */

/* Pairs (i, j), i < j, of n classes are counted as (0, 1), (0, 2), … (n - 2, n - 1). */
static int64_t count_pairs(int64_t n)
{
    return n * (n - 1) / 2;
}

static int64_t pair_of(int64_t i, int64_t j, int64_t n)
{
    LNT_ASSERT(0 <= i && i < j && j < n);
    return i * n - i * (i + 1) / 2 + j - i - 1;
}

/* [N, n, n] of v [N, P] for each pair: v for (i, j), 1 - v for (j, i), 0 for (i, i). */
static uint32_t square(maker *m, uint32_t v, lnt_dtype type, int64_t n)
{
    const int64_t pairs = count_pairs(n), dims[] = {n, n};
    int64_t *at = ml_take(m, (size_t)(n * n), sizeof *at);
    for (int64_t i = 0; at && i < n; i++)
        for (int64_t j = 0; j < n; j++)
            at[i * n + j] = i < j ? pair_of(i, j, n) : i > j ? pairs + pair_of(j, i, n) : 2 * pairs;
    const uint32_t other = make(m, "Sub", IN(scalar(m, "one", type, 1), v), NULL);
    const uint32_t both = at_axis(m, "Concat", IN(v, other), 1);
    const uint32_t all = make(m, "Pad", IN(both, INTS(m, "pads", 0, 0, 0, 1)), NULL);
    return at_axis(m, "Gather", IN(all, ml_constant(m, "places", LNT_INT64, 2, dims, at)), 1);
}

/* What the vectors of class c, [first, first + count), have to say for and against each other class: [N, n - 1]. */
static uint32_t class_part(maker *m, const svm *s, uint32_t k, int64_t first, int64_t count, int64_t n)
{
    const int64_t dims[] = {count, n - 1};
    double *weights = ml_take(m, (size_t)count * (size_t)(n - 1), sizeof *weights);
    for (int64_t i = 0; weights && i < count; i++)
        for (int64_t j = 0; j < n - 1; j++)
            weights[i * (n - 1) + j] = s->coefficients.v[j * s->n_vectors + first + i];
    const uint32_t own = make(
        m, "Slice", IN(k, INTS(m, "start", first), INTS(m, "end", first + count), INTS(m, "axis", 1)), NULL);
    return make(m, "MatMul", IN(own, ml_constant(m, "coefficients", LNT_DOUBLE, 2, dims, weights)), NULL);
}

/* Decisions [N, P] between classes, of the kernel's outputs k [N, S]; vectors stand class by class. */
static uint32_t decide(maker *m, const svm *s, uint32_t k, ml_list per_class)
{
    const int64_t n = (int64_t)per_class.n, pairs = count_pairs(n), axis = 1;
    uint32_t *part = ml_take(m, (size_t)n, sizeof *part), all = LNT_NONE;
    int64_t *of[2] = {ml_take(m, (size_t)pairs, sizeof(int64_t)), ml_take(m, (size_t)pairs, sizeof(int64_t))};
    if (n == 2 || m->status != LNT_OK)
        return weighted(m, s, k, 1);
    for (int64_t c = 0, first = 0; c < n; first += per_class.i[c++])
        part[c] = class_part(m, s, k, first, per_class.i[c], n);
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "Concat", part, (unsigned)n, INT_ATTR("axis", &axis), 1, &all);
    for (int64_t i = 0; i < n && m->status == LNT_OK; i++)
        for (int64_t j = i + 1; j < n; j++) {
            of[0][pair_of(i, j, n)] = i * (n - 1) + j - 1;
            of[1][pair_of(i, j, n)] = j * (n - 1) + i;
        }
    const uint32_t a = at_axis(m, "Gather", IN(all, ml_constant(m, "first", LNT_INT64, 1, &pairs, of[0])), 1);
    const uint32_t b =
        at_axis(m, "Gather", IN(all, ml_constant(m, "second", LNT_INT64, 1, &pairs, of[1])), 1);
    return make(m, "Add", IN(make(m, "Add", IN(a, b), NULL), row(m, "rho", s->rho.v, pairs)), NULL);
}

/* ---- loops ---- */

enum { MOST_CARRIED = 3 };

/* The body of a Loop while nodes are put into it. */
typedef struct body {
    uint32_t in[2 + MOST_CARRIED]; /* number of the pass, whether to go on, what is carried */
    const uint32_t *carried;       /* before the first pass */
    unsigned n_carried;
    uint32_t sub, outer;
} body;

static void open_body(maker *m, body *b, const uint32_t *carried, unsigned n)
{
    LNT_ASSERT(n <= MOST_CARRIED);
    lnt_importer *im = m->im;
    *b = (body){.carried = carried, .n_carried = n, .sub = LNT_NONE, .outer = im->sub};
    if (m->status == LNT_OK && im->nesting + 1 >= LNT_FILE_MAX_NESTING)
        m->status = lnt_fail(im->err, LNT_E_LIMIT, "node '%s' (%s): subgraphs are nested too deep",
                             m->n->name, m->n->op);
    if (m->status != LNT_OK)
        return;
    b->sub = lnt_graph_add_sub(im->g, m->n->name);
    for (unsigned i = 0; i < 2 + n; i++) {
        b->in[i] = lnt_graph_add_value(im->g, m->n->name);
        if (b->sub == LNT_NONE || b->in[i] == LNT_NONE) {
            m->status = LNT_E_MEMORY;
            return;
        }
        const lnt_operand *fed = i < 2 ? NULL : lnt_ginfo(im->g, carried[i - 2]);
        lnt_operand *info = &im->g->value[b->in[i]].info;
        *info = (lnt_operand){.dtype = fed ? fed->dtype
                                       : i ? LNT_BOOL
                                           : LNT_INT64,
                              .rank = fed ? fed->rank : 0};
        for (unsigned k = 0; k < info->rank && info->rank <= LNT_MAX_RANK; k++)
            info->dims[k] = LNT_DIM_UNKNOWN;
    }
    im->sub = b->sub;
    im->nesting++;
}

/* Ends the body, which gives next[] and whether to go on, and makes the Loop of at most `most` passes; out: what is
 * carried behind the last. */
static void close_body(maker *m, const body *b, int64_t most, uint32_t go_on, const uint32_t *next,
                       uint32_t *out)
{
    lnt_importer *im = m->im;
    if (b->sub == LNT_NONE || im->sub != b->sub)
        return;
    im->sub = b->outer;
    im->nesting--;
    uint32_t *ends = ml_take(m, 2 * (size_t)(2 + MOST_CARRIED), sizeof *ends);
    uint32_t in[2 + MOST_CARRIED] = {scalar(m, "passes", LNT_INT64, (double)most),
                                     scalar(m, "go on", LNT_BOOL, 1)};
    if (m->status != LNT_OK)
        return;
    uint32_t *starts = ends + 2 + MOST_CARRIED;
    memcpy(starts, b->in, sizeof b->in);
    ends[0] = go_on;
    for (unsigned i = 0; i < b->n_carried; i++) {
        ends[1 + i] = next[i];
        in[2 + i] = b->carried[i];
        if ((out[i] = lnt_graph_add_value(im->g, m->n->name)) == LNT_NONE)
            m->status = LNT_E_MEMORY;
    }
    lnt_gsubgraph *sub = &im->g->sub[b->sub];
    sub->in = starts;
    sub->n_in = 2 + b->n_carried;
    sub->out = ends;
    sub->n_out = 1 + b->n_carried;
    const int64_t number = b->sub;
    const lnt_attr attr = {.name = "body", .type = LNT_ATTR_GRAPH, .count = 1, .i = &number};
    if (m->status == LNT_OK)
        m->status = lnt_make_node(im, m->n, "Loop", in, 2 + b->n_carried, &attr, 1, out, b->n_carried);
}

/* ---- probabilities ---- */

/* 0, 1, … n - 1. */
static uint32_t class_numbers(maker *m, int64_t n)
{
    int64_t *v = ml_take(m, (size_t)n, sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = i;
    return ml_constant(m, "numbers", LNT_INT64, 1, &n, v);
}

/* Q [N, n, n] of r [N, n, n]: the sum of r_ji² over j at (i, i), -r_ji r_ij at (i, j). */
static uint32_t coupling(maker *m, uint32_t r, int64_t n)
{
    const uint32_t turned = transpose(m, r, (const int64_t[]){0, 2, 1}, 3);
    const uint32_t outside = make(m, "Neg", IN(make(m, "Mul", IN(r, turned), NULL)), NULL);
    const uint32_t sums = make(m, "ReduceSumSquare", IN(turned, INTS(m, "axis", 2)), NULL);
    const uint32_t numbers = class_numbers(m, n);
    const uint32_t down = make(m, "Unsqueeze", IN(numbers, INTS(m, "axis", 1)), NULL);
    return make(m, "Where", IN(make(m, "Equal", IN(numbers, down), NULL), sums, outside), NULL);
}

/* A step towards p's element t for the rows that are to go on: each takes the best value by itself, then all are
 * divided by their sum. carried: p, Q p [N, n], p' Q p [N, 1]. */
static void take_step(maker *m, uint32_t q, uint32_t go, int64_t n, uint32_t *carried)
{
    body b;
    open_body(m, &b, carried, 3);
    const uint32_t p = b.in[2], qp = b.in[3], pqp = b.in[4];
    const uint32_t t = make(m, "Reshape", IN(b.in[0], INTS(m, "one", 1)), NULL);
    const uint32_t line = at_axis(m, "Gather", IN(q, b.in[0]), 1), own = at_axis(m, "Gather", IN(line, t), 1),
                   mine = at_axis(m, "Gather", IN(qp, t), 1);
    const uint32_t zero = scalar(m, "zero", LNT_DOUBLE, 0), one = scalar(m, "one", LNT_DOUBLE, 1);
    const uint32_t best = make(m, "Div", IN(make(m, "Sub", IN(pqp, mine), NULL), own), NULL);
    const uint32_t step = make(m, "Where", IN(go, best, zero), NULL),
                   sum = make(m, "Add", IN(step, one), NULL);
    const uint32_t numbers = class_numbers(m, n);
    const uint32_t here = make(m, "Where", IN(make(m, "Equal", IN(numbers, t), NULL), step, zero), NULL);
    const uint32_t moved = make(m, "Add", IN(p, here), NULL);
    const uint32_t twice =
        make(m, "Add", IN(make(m, "Mul", IN(step, own), NULL), make(m, "Add", IN(mine, mine), NULL)), NULL);
    const uint32_t grown = make(m, "Add", IN(pqp, make(m, "Mul", IN(step, twice), NULL)), NULL);
    const uint32_t pushed = make(m, "Add", IN(qp, make(m, "Mul", IN(step, line), NULL)), NULL);
    const uint32_t next[] = {make(m, "Div", IN(moved, sum), NULL), make(m, "Div", IN(pushed, sum), NULL),
                             make(m, "Div", IN(make(m, "Div", IN(grown, sum), NULL), sum), NULL)};
    close_body(m, &b, n, make(m, "Identity", IN(b.in[1]), NULL), next, carried);
}

/* [N, n], of r [N, n, n], the probability of class i where it is i or j: the second method of Wu, Lin, Weng,
 * "Probability estimates for multi-class classification by pairwise coupling" (2004), with LIBSVM's start and end,
 * which results show: it stops well before the last digits. */
static uint32_t couple(maker *m, uint32_t r, int64_t n)
{
    const uint32_t q = coupling(m, r, n), last = INTS(m, "axis", 1);
    const uint32_t rows = at_axis(m, "Concat", IN(extent(m, r, 0), extent(m, r, 1)), 0);
    const uint32_t p = make(m, "Expand", IN(scalar(m, "even", LNT_DOUBLE, 1 / (double)n), rows), NULL);
    body b;
    open_body(m, &b, &p, 1);
    const uint32_t column = make(m, "Unsqueeze", IN(b.in[2], INTS(m, "axis", 2)), NULL);
    const uint32_t qp =
        make(m, "Squeeze", IN(make(m, "MatMul", IN(q, column), NULL), INTS(m, "axis", 2)), NULL);
    const uint32_t pqp = make(m, "ReduceSum", IN(make(m, "Mul", IN(b.in[2], qp), NULL), last), NULL);
    const uint32_t errors = make(m, "Abs", IN(make(m, "Sub", IN(qp, pqp), NULL)), NULL);
    const uint32_t error = make(m, "ReduceMax", IN(errors, last), NULL);
    const uint32_t go =
        make(m, "GreaterOrEqual", IN(error, scalar(m, "enough", LNT_DOUBLE, 0.005 / (double)n)), NULL);
    uint32_t carried[] = {b.in[2], qp, pqp};
    take_step(m, q, go, n, carried);
    const int64_t no = 0;
    const uint32_t many = make(m, "ReduceSum", IN(cast(m, go, LNT_FLOAT)), INT_ATTR("keepdims", &no));
    const uint32_t go_on = make(m, "Greater", IN(many, scalar(m, "zero", LNT_FLOAT, 0)), NULL);
    uint32_t out = LNT_NONE;
    close_body(m, &b, n > 100 ? n : 100, go_on, carried, &out);
    return out;
}

/* Output 1: probabilities of the classes, of decisions [N, P]. The first method of Platt, "Probabilistic outputs for
 * support vector machines" (1999), for each pair; then the pairs together. */
static void probabilities(maker *m, uint32_t decisions, ml_list a, ml_list b, int64_t n)
{
    const int64_t pairs = count_pairs(n);
    const double least = 1e-7;
    const uint32_t slope = make(m, "Mul", IN(decisions, row(m, "prob_a", a.v, pairs)), NULL);
    const uint32_t line = make(m, "Add", IN(slope, row(m, "prob_b", b.v, pairs)), NULL);
    const uint32_t pair = make(m, "Sigmoid", IN(make(m, "Neg", IN(line), NULL)), NULL);
    const uint32_t inside =
        make(m, "Clip",
             IN(pair, scalar(m, "least", LNT_DOUBLE, least), scalar(m, "most", LNT_DOUBLE, 1 - least)), NULL);
    const uint32_t p = couple(m, square(m, inside, LNT_DOUBLE, n), n);
    finish(m, 1, "Identity", IN(ml_post_transform(m, cast(m, p, LNT_FLOAT))), NULL);
}

/* ---- classifiers ---- */

/* The number of support vectors; checks that there is all that each pair of classes needs. */
static int64_t count_vectors(maker *m, const svm *s, ml_list per_class, ml_list labels, ml_list a, ml_list b)
{
    const int64_t n = (int64_t)labels.n, pairs = count_pairs(n);
    int64_t sum = 0;
    for (size_t i = 0; i < per_class.n; i++) {
        if (per_class.i[i] < 0 || per_class.i[i] > (int64_t)s->coefficients.n)
            ml_fail(m, "vectors_per_class", "is out of range");
        sum += m->status == LNT_OK ? per_class.i[i] : 0;
    }
    if (m->status != LNT_OK || !sum)
        return 0;
    if (n < 2 || (int64_t)per_class.n != n)
        ml_fail(m, "vectors_per_class", "has not one number for each of two classes or more");
    else if (sum > (int64_t)s->coefficients.n / (n - 1) || sum * (n - 1) != (int64_t)s->coefficients.n)
        ml_fail(m, "coefficients", "has the wrong length");
    else if ((int64_t)s->rho.n < pairs)
        ml_fail(m, "rho", "has not one number for each pair of classes");
    else if (a.n != b.n || (a.n && (int64_t)a.n < pairs))
        ml_fail(m, "prob_a", "or prob_b has not one number for each pair of classes");
    return sum;
}

/* Without support vectors: one row of weights for each class. */
static void classify_linear(maker *m, const svm *s, uint32_t x, ml_list labels)
{
    const uint32_t scores = cast(m, weighted(m, s, x, (int64_t)labels.n), LNT_FLOAT);
    ml_label(m, scores, labels);
    finish(m, 1, "Identity", IN(ml_post_transform(m, scores)), NULL);
}

void lnt_expand_svm_classifier(maker *m)
{
    svm s = read_svm(m);
    const ml_list labels = ml_labels(m), per_class = ml_ints(m, "vectors_per_class"),
                  a = ml_reals(m, "prob_a"), b = ml_reals(m, "prob_b");
    if (m->status != LNT_OK)
        return;
    const int64_t n = (int64_t)labels.n;
    s.n_vectors = count_vectors(m, &s, per_class, labels, a, b);
    const uint32_t x = ml_rows(m, LNT_DOUBLE);
    if (!s.n_vectors) {
        classify_linear(m, &s, x, labels);
        return;
    }
    const uint32_t decisions = decide(m, &s, kernel(m, &s, x), per_class);
    const uint32_t for_first = make(m, "Greater", IN(decisions, scalar(m, "zero", LNT_DOUBLE, 0)), NULL);
    const uint32_t won = square(m, cast(m, for_first, LNT_FLOAT), LNT_FLOAT, n);
    const int64_t no = 0;
    const lnt_attr keep = *INT_ATTR("keepdims", &no);
    ml_label(m, make(m, "ReduceSum", IN(won, INTS(m, "axis", 2)), &keep), labels);
    if (a.n)
        probabilities(m, decisions, a, b, n);
    else if (n == 2)
        ml_binary_scores(m, cast(m, decisions, LNT_FLOAT),
                         strcmp(lnt_inode_s(m->n, "post_transform", "NONE"), "NONE") != 0);
    else
        finish(m, 1, "Identity", IN(ml_post_transform(m, cast(m, decisions, LNT_FLOAT))), NULL);
}
