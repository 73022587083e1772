/* tfidf.c — TfIdfVectorizer: how often each of a pool's n-grams is found in a row.
 *
 * Input: integers [C] or [N, C]; output: float [K] or [N, K], K one more than the largest of ngram_indexes. An n-gram's
 * elements may stand apart, all by the same distance. Of text, elements and pool are numbers of words. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <stdlib.h>
#include <string.h>

typedef struct gram {
    const int64_t *element; /* n of them, in the attribute */
    int64_t n, place;       /* place: column of the output */
    float weight;
} gram;

typedef struct tfidf_params {
    const gram *gram; /* shorter ones first, those of a length by their elements */
    size_t n;
    int64_t shortest, longest, most_skipped;
    bool counts, weighs;
} tfidf_params;

typedef struct tfidf_job {
    const tfidf_params *p;
    const void *x;
    float *y;
    int64_t columns, places;
    bool wide; /* x is int64 */
} tfidf_job;

enum {
    MOST_GRAM = 64,
    POLLED = 1 << 14
}; /* longest n-gram; elements looked at between two looks at the clock */

/* ---- the pool ---- */

/* K; 0 where the attribute is missing or holds what is no column. */
static int64_t count_places(const lnt_node *node)
{
    const lnt_attr *at = lnt_attr_of(node, "ngram_indexes", LNT_ATTR_INTS);
    int64_t most = -1;
    for (uint32_t i = 0; at && i < at->count; i++) {
        if (at->i[i] < 0 || at->i[i] >= INT32_MAX)
            return 0;
        most = at->i[i] > most ? at->i[i] : most;
    }
    return most + 1;
}

lnt_status lnt_shape_tfidf(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    int64_t dims[2] = {x->dims[0], count_places(site->node)};
    if (dims[1] == 0)
        return LNT_SITE_FAIL(site, LNT_E_MODEL, "ngram_indexes must name columns, from 0 on");
    if (x->rank != 1 && x->rank != 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "its input must have rank 1 or 2, not %u", x->rank);
    lnt_set_dims(site, 0, x->rank, x->rank == 1 ? dims + 1 : dims);
    return LNT_OK;
}

static int compare_elements(const int64_t *a, const int64_t *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_elements(const void *a, const void *b)
{
    const gram *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? -1 : 1) : compare_elements(x->element, y->element, x->n);
}

/* Cuts the pool into n-grams: ngram_counts says where each length begins. With list NULL, how many there are. */
static lnt_status cut_pool(const lnt_site *site, gram *list, size_t *n)
{
    const lnt_attr *pool = lnt_attr_of(site->node, "pool_int64s", LNT_ATTR_INTS);
    const lnt_attr *starts = lnt_attr_of(site->node, "ngram_counts", LNT_ATTR_INTS);
    const lnt_attr *places = lnt_attr_of(site->node, "ngram_indexes", LNT_ATTR_INTS);
    const lnt_attr *weights = lnt_attr_of(site->node, "weights", LNT_ATTR_FLOATS);
    *n = 0;
    if (!pool || !starts || !places || starts->count > MOST_GRAM)
        return LNT_SITE_FAIL(site, LNT_E_MODEL, "needs a pool, ngram_indexes and at most %d ngram_counts",
                             MOST_GRAM);
    for (uint32_t k = 0; k < starts->count; k++) {
        const int64_t length = k + 1, begin = starts->i[k];
        const int64_t end = k + 1 < starts->count ? starts->i[k + 1] : (int64_t)pool->count;
        if (begin < 0 || begin > end || end > (int64_t)pool->count || (end - begin) % length)
            return LNT_SITE_FAIL(site, LNT_E_MODEL, "ngram_counts do not cut the pool of %u into n-grams",
                                 pool->count);
        for (int64_t at = begin; at < end; at += length, ++*n)
            if (list && *n < places->count)
                list[*n] = (gram){pool->i + at, length, places->i[*n], weights ? weights->f[*n] : 1};
    }
    if (*n != places->count || (weights && weights->count != *n))
        return LNT_SITE_FAIL(site, LNT_E_MODEL,
                             "a pool of %zu n-grams needs as many ngram_indexes and weights", *n);
    return LNT_OK;
}

/* ---- search ---- */

static inline int64_t element(const tfidf_job *j, int64_t i)
{
    return j->wide ? ((const int64_t *)j->x)[i] : ((const int32_t *)j->x)[i];
}

/* The n-gram of these elements; NULL if there is none. */
static const gram *find_gram(const tfidf_params *p, const int64_t *elements, int64_t n)
{
    const gram key = {.element = elements, .n = n};
    return bsearch(&key, p->gram, p->n, sizeof key, by_elements);
}

/* Counts the n-grams of length n whose elements are `apart`, in row[0 .. columns). */
static lnt_status count_grams(lnt_kernel *k, const tfidf_job *j, int64_t row, int64_t n, int64_t apart,
                              float *y)
{
    const tfidf_params *p = j->p;
    const int64_t first = row * j->columns;
    int64_t key[MOST_GRAM], left = POLLED;
    for (int64_t i = 0; i + apart * (n - 1) < j->columns; i++) {
        for (int64_t e = 0; e < n; e++)
            key[e] = element(j, first + i + e * apart);
        const gram *found = find_gram(p, key, n);
        if (found)
            y[found->place] = p->counts ? y[found->place] + (p->weighs ? found->weight : 1) : found->weight;
        if (--left == 0) {
            left = POLLED;
            LNT_TRY(lnt_poll(k));
        }
    }
    return LNT_OK;
}

static lnt_status count_row(lnt_kernel *k, const tfidf_job *j, int64_t row)
{
    float *y = j->y + row * j->places;
    memset(y, 0, (size_t)j->places * sizeof *y);
    for (int64_t n = j->p->shortest; n <= j->p->longest; n++) {
        const int64_t room = n == 1 ? 1 : (j->columns - 1) / (n - 1);
        const int64_t most = n == 1 || j->p->most_skipped >= room ? room : j->p->most_skipped + 1;
        for (int64_t apart = 1; apart <= most; apart++) {
            LNT_TRY(lnt_cancelled(k));
            LNT_TRY(count_grams(k, j, row, n, apart, y));
        }
    }
    return LNT_OK;
}

static lnt_status count_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    for (int64_t row = begin; row < end; row++)
        LNT_TRY(count_row(k, arg, row));
    return LNT_OK;
}

static lnt_status run_tfidf(lnt_kernel *k, const lnt_step *s)
{
    const lnt_operand *x = s->in[0], *y = s->out[0];
    const tfidf_job job = {s->params,
                           lnt_in(k, s, 0),
                           lnt_out(k, s, 0),
                           x->dims[x->rank - 1],
                           y->dims[y->rank - 1],
                           x->dtype == LNT_INT64};
    return lnt_parallel(k, x->rank == 1 ? 1 : x->dims[0], 1, count_rows, (void *)(uintptr_t)&job);
}

/* ---- bind ---- */

/* Lengths of which the pool has n-grams, as far as the attributes let them count. */
static lnt_status take_lengths(const lnt_site *site, tfidf_params *p)
{
    const int64_t least = lnt_attr_i(site->node, "min_gram_length", 1);
    const int64_t most = lnt_attr_i(site->node, "max_gram_length", 1);
    p->most_skipped = lnt_attr_i(site->node, "max_skip_count", 0);
    if (least < 1 || most < least || p->most_skipped < 0)
        return LNT_SITE_FAIL(site, LNT_E_MODEL, "n-grams of %lld to %lld elements, up to %lld skipped",
                             (long long)least, (long long)most, (long long)p->most_skipped);
    p->shortest = p->n && p->gram[0].n > least ? p->gram[0].n : least;
    p->longest = !p->n ? 0 : p->gram[p->n - 1].n < most ? p->gram[p->n - 1].n : most;
    return LNT_OK;
}

lnt_status lnt_bind_tfidf(lnt_site *site)
{
    static const char *const modes[] = {"", "TF", "IDF", "TFIDF"};
    const int mode = lnt_attr_choice(site->node, "mode", modes, 4);
    const lnt_dtype type = (lnt_dtype)site->in[0]->dtype;
    size_t n, bytes;
    if (type != LNT_INT64 && type != LNT_INT32)
        return lnt_bind_unsupported_type(site, type);
    if (mode < 1)
        return LNT_SITE_FAIL(site, LNT_E_MODEL, "mode must be TF, IDF or TFIDF");
    LNT_TRY(cut_pool(site, NULL, &n));
    gram *list =
        lnt_mul_size(n ? n : 1, sizeof *list, &bytes) ? lnt_bump_alloc(site->memory, bytes, site->err) : NULL;
    tfidf_params *p = lnt_bind_params(site, sizeof *p);
    if (!p || !list)
        return LNT_E_MEMORY;
    LNT_TRY(cut_pool(site, list, &n));
    qsort(list, n, sizeof *list, by_elements);
    *p = (tfidf_params){.gram = list, .n = n, .counts = mode != 2, .weighs = mode == 3};
    LNT_TRY(take_lengths(site, p));
    LNT_ASSERT(p->longest <= MOST_GRAM && p->shortest >= 1);
    site->step->run = run_tfidf;
    return LNT_OK;
}
