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

/* One step of every lane; true if one moved. x [features + 1][LANES]; lane: elements from a lane's x to the next's. */
static inline bool NAME(advance)(const NAME(node) * nodes, const R *x, size_t lane, uint32_t at[LANES],
                                 bool missing)
{
    uint32_t moved = 0;
    for (unsigned i = 0; i < LANES; i++) {
        const NAME(node) *n = nodes + at[i];
        const R v = x[(size_t)(n->feature >> 1) * LANES + i * lane];
        const uint32_t side = (v <= n->value) | (missing ? (v != v) & n->feature : 0);
        const uint32_t next = n->child + side;
        moved |= next ^ at[i];
        at[i] = next;
    }
    return moved;
}

/* From at[] to the leaves. */
static inline void NAME(walk)(const trees *p, const R *x, size_t lane, uint32_t at[LANES])
{
    if (p->missing)
        while (NAME(advance)(p->nodes, x, lane, at, true))
            ;
    else
        while (NAME(advance)(p->nodes, x, lane, at, false))
            ;
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

/* Row `row` of x to every LANES-th element of to [features + 1][LANES], NaN behind the last. */
static void NAME(take)(const trees_job *j, int64_t row, R *to, R *line)
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
    for (int64_t f = 0; f < p->n_features; f++)
        to[f * LANES] = from[f];
    to[p->n_features * LANES] = (R)NAN;
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
        for (int64_t r = 0; r < rows; r++)
            NAME(take)(j, block * LANES + r, x + r / LANES * size + r % LANES, line);
        clear(p, sum, rows * p->n_targets);
        for (int64_t t = 0; t < p->n_trees; t++) {
            for (int64_t r = 0; r < rows; r += LANES) {
                uint32_t at[LANES];
                for (unsigned i = 0; i < LANES; i++)
                    at[i] = p->roots[t];
                NAME(walk)(p, x + r / LANES * size, 1, at);
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
        NAME(walk)(p, x, 0, at);
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
        NAME(take)(j, row, x, line);
        LNT_TRY(lnt_parallel(k, (p->n_trees + LANES - 1) / LANES, 64, NAME(walk_trees), j));
        clear(p, sum, p->n_targets);
        for (int64_t t = 0; t < p->n_trees; t++)
            NAME(add)(p, leaves[t], sum);
        NAME(finish)(p, sum, (R *)j->y + row * p->n_targets, p->n_targets);
    }
    return LNT_OK;
}
