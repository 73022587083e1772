/* trees.inc.h — walks through trees in one type, R; included by trees.c with R and NAME. */

typedef struct NAME(node) {
    union {
        R value;
        uint32_t leaf; /* of a leaf whose weights stand elsewhere */
    };
    uint32_t feature, child;
} NAME(node);

/* Every node is a leaf or leads to nodes behind it, asks for a feature that there is, and has its weights. */
static lnt_status NAME(check)(const lnt_site *site, trees *p)
{
    const NAME(node) *nodes = p->nodes;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const NAME(node) *n = nodes + i;
        if (n->feature == 2 * (uint32_t)p->n_features) {
            LNT_REQUIRE(n->child == i && (!p->weights || n->leaf < p->n_leaves), site->err, LNT_E_FILE,
                        "leaf %lld leads on, or its weights are missing", (long long)i);
            continue;
        }
        LNT_REQUIRE(n->feature < 2 * (uint32_t)p->n_features && n->child > i && n->child < p->n_nodes - 1,
                    site->err, LNT_E_FILE,
                    "node %lld leads to node %u or asks for feature %u: there is none, or no way on",
                    (long long)i, n->child, n->feature / 2);
        p->missing |= n->feature & 1;
    }
    for (int64_t i = 0; i < p->n_trees; i++)
        LNT_REQUIRE(p->roots[i] < p->n_nodes, site->err, LNT_E_FILE, "tree %lld has no root", (long long)i);
    return LNT_OK;
}

/* The node behind `at`, itself for a leaf. x: of the lane, whose features are `step` elements apart. */
INLINE size_t NAME(next)(const NAME(node) * nodes, const R *x, size_t step, size_t at, bool missing)
{
    const NAME(node) *n = nodes + at;
    const R v = x[(n->feature >> 1) * step];
    return n->child + (size_t)((v <= n->value) | (missing ? (v != v) & n->feature : 0));
}

/* From at[] to the leaves. x: of LANES rows, [features + 1][LANES], or of one. As sides stand behind their node, lanes
 * rest when the sum of their places does, which fits: nodes have 12 bytes and more. A lane is a variable each, for
 * registers: an array becomes vectors, which every step takes apart. */
INLINE void NAME(walk_lanes)(const NAME(node) * nodes, const R *x, const bool one_row, uint32_t at[LANES])
{
    const size_t step = one_row ? 1 : LANES, lane = one_row ? 0 : 1;
    size_t places = 0, before;
#define BEGIN(a, i) size_t a = at[i];
#define STEP(a, i) a = NAME(next)(nodes, x + (i)*lane, step, a, false);
#define ADD(a, i) places += a;
#define END(a, i) at[i] = (uint32_t)a;
    EACH_LANE(BEGIN)
    do {
        before = places;
        EACH_LANE(STEP)
        places = 0;
        EACH_LANE(ADD)
    } while (places != before);
    EACH_LANE(END)
#undef BEGIN
#undef STEP
#undef ADD
#undef END
}

/* Likewise, in little code: where some node sends NaN to its true side and some of these rows has one; doubles. */
static void NAME(walk_shortly)(const NAME(node) * nodes, const R *x, bool one_row, uint32_t at[LANES])
{
    const size_t step = one_row ? 1 : LANES, lane = one_row ? 0 : 1;
    for (uint32_t moved = 1; moved;) {
        moved = 0;
        for (unsigned i = 0; i < LANES; i++) {
            const uint32_t next = (uint32_t)NAME(next)(nodes, x + i * lane, step, at[i], true);
            moved |= next ^ at[i];
            at[i] = next;
        }
    }
}

static void NAME(walk)(const trees *p, const R *x, bool one_row, bool holes, uint32_t at[LANES])
{
    if (holes || sizeof(R) > sizeof(float))
        NAME(walk_shortly)(p->nodes, x, one_row, at);
    else if (MANY_REGISTERS)
        NAME(walk_lanes)(p->nodes, x, one_row, at);
    else if (one_row)
        NAME(walk_lanes)(p->nodes, x, true, at);
    else
        NAME(walk_lanes)(p->nodes, x, false, at);
}

/* What the leaf at node `at` gives to sum [C]. */
static inline void NAME(add)(const trees *p, uint32_t at, double *sum)
{
    const NAME(node) *leaf = (const NAME(node) *)p->nodes + at;
    const R *w = p->weights;
    if (!w) {
        fold(p->how, sum, (double)leaf->value);
    } else if (p->first) {
        for (uint32_t i = p->first[leaf->leaf]; i < p->first[leaf->leaf + 1]; i++)
            fold(p->how, sum + p->targets[i], (double)w[i]);
    } else {
        w += leaf->leaf * p->n_targets;
        if (p->how <= AVERAGE)
            LNT_INDEPENDENT for (int64_t c = 0; c < p->n_targets; c++) sum[c] += (double)w[c];
        else
            for (int64_t c = 0; c < p->n_targets; c++)
                fold(p->how, sum + c, (double)w[c]);
    }
}

/* n sums become results; a target that no leaf spoke of is 0. */
static void NAME(finish)(const trees *p, const double *sum, R *y, int64_t n)
{
    const double parts = p->how == AVERAGE ? (double)p->n_trees : 1;
    for (int64_t i = 0; i < n; i++)
        y[i] = p->how >= MINIMUM && sum[i] != sum[i] ? 0 : (R)(sum[i] / parts);
}

/* Row `row` of x to every step-th element of `to`, NaN behind the last; has it one that nodes ask about? */
static bool NAME(take)(const trees_job *j, int64_t row, R *to, int64_t step, R *line)
{
    const trees *p = j->p;
    const lnt_dtype real = sizeof(R) == sizeof(double) ? LNT_DOUBLE : LNT_FLOAT;
    const R *from = (const void *)(j->x + row * p->pitch * (int64_t)lnt_dtype_size(p->type));
    if (p->type != real) {
        (sizeof(R) == sizeof(double)
             ? (void (*)(lnt_dtype, const void *, R *, int64_t))lnt_elements_to_double
             : (void (*)(lnt_dtype, const void *, R *, int64_t))lnt_elements_to_float)(p->type, from, line,
                                                                                       p->n_features);
        from = line;
    }
    bool holes = false;
    for (int64_t f = 0; f < p->n_features; f++) {
        to[f * step] = from[f];
        holes |= from[f] != from[f];
    }
    to[p->n_features * step] = (R)NAN;
    return holes && p->missing;
}

/* Blocks [begin, end) of LANES rows, a few at a time: a tree that is in the cache serves them all. */
static lnt_status NAME(walk_rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const trees_job *j = arg;
    const trees *p = j->p;
    char *scratch = j->scratch + thread * p->each;
    R *x = (void *)(scratch + p->x_at), *line = (void *)(scratch + p->line_at);
    double *sum = (void *)(scratch + p->sum_at);
    for (int64_t block = begin; block < end; block += p->blocks) {
        const int64_t rows = lnt_least(p->blocks, end - block) * LANES, size = (p->n_features + 1) * LANES;
        bool holes = false;
        for (int64_t r = 0; r < rows; r++)
            holes |= NAME(take)(j, block * LANES + r, x + r / LANES * size + r % LANES, LANES, line);
        clear(p, sum, rows * p->n_targets);
        for (int64_t t = 0; t < p->n_trees; t++) {
            for (int64_t r = 0; r < rows; r += LANES) {
                uint32_t at[LANES];
                for (unsigned i = 0; i < LANES; i++)
                    at[i] = p->roots[t];
                NAME(walk)(p, x + r / LANES * size, false, holes, at);
                for (unsigned i = 0; i < LANES; i++)
                    NAME(add)(p, at[i], sum + (r + i) * p->n_targets);
            }
            if (t % POLLED == POLLED - 1)
                LNT_TRY(lnt_poll(k));
        }
        NAME(finish)(p, sum, (R *)j->y + block * LANES * p->n_targets, rows * p->n_targets);
    }
    return LNT_OK;
}

/* Groups [begin, end) of LANES trees for the one row that was taken; the last may be of fewer trees. */
static lnt_status NAME(walk_trees)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const trees_job *j = arg;
    const trees *p = j->p;
    const R *x = (const void *)(j->scratch + p->one_at);
    uint32_t *leaves = (void *)(j->scratch + p->leaves_at);
    (void)thread;
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * LANES, n = lnt_least(LANES, p->n_trees - first);
        LNT_ASSERT(n > 0);
        uint32_t at[LANES];
        for (int64_t i = 0; i < LANES; i++)
            at[i] = p->roots[first + (i < n ? i : 0)];
        NAME(walk)(p, x, true, j->holes, at);
        memcpy(leaves + first, at, (size_t)n * sizeof *at);
        if (group % (POLLED / LANES) == 0)
            LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

static lnt_status NAME(run)(lnt_kernel *k, trees_job *j)
{
    const trees *p = j->p;
    const int64_t whole = p->rows / LANES;
    const uint32_t *leaves = (const void *)(j->scratch + p->leaves_at);
    R *x = (void *)(j->scratch + p->one_at), *line = (void *)(j->scratch + p->line_at);
    double *sum = (void *)(j->scratch + p->sum_at);
    LNT_TRY(lnt_parallel(k, whole, 1 + 256 / (p->n_trees + 1), NAME(walk_rows), j));
    for (int64_t row = whole * LANES; row < p->rows; row++) {
        j->holes = NAME(take)(j, row, x, 1, line);
        LNT_TRY(lnt_parallel(k, (p->n_trees + LANES - 1) / LANES, 64, NAME(walk_trees), j));
        clear(p, sum, p->n_targets);
        for (int64_t t = 0; t < p->n_trees; t++)
            NAME(add)(p, leaves[t], sum);
        NAME(finish)(p, sum, (R *)j->y + row * p->n_targets, p->n_targets);
    }
    return LNT_OK;
}
