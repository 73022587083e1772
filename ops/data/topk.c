/* topk.c — TopK: the k first elements along an axis, ties by lowest index. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/data/data.h"
#include "ops/data/order.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"
#include "ops/data/sort.h"

#include <string.h>

lnt_status lnt_shape_top_k(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK], k = LNT_DIM_UNKNOWN;
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), in->rank, &axis));
    const lnt_status status = lnt_value_int(site, 1, LNT_DIM_UNKNOWN, &k);
    if (status != LNT_OK && status != LNT_UNKNOWN)
        return status;
    if (status == LNT_OK && (k < 0 || (in->dims[axis] >= 0 && k > in->dims[axis])))
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "K is %lld for an axis of extent %lld", (long long)k,
                             (long long)in->dims[axis]);
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = i == axis ? k : in->dims[i];
    lnt_set_dims(site, 0, in->rank, dims);
    lnt_set_dims(site, 1, in->rank, dims);
    return status;
}

/* ---- what depends on the type ---- */

/* The first of elements [i, n), step apart, that may come before element root: none that is skipped does. */
typedef int64_t (*find_fn)(const void *data, int64_t step, int64_t i, int64_t n, int64_t root, bool largest);
/* Keys of n elements, step apart, inverted where flip is set. */
typedef void (*keys_fn)(const void *data, int64_t step, int64_t n, uint64_t flip, uint64_t *key);

/* The first of elements i to n for which this is not so, four of them in a turn. */
#define SKIP_WHILE(order)                                                                                    \
    for (; i + 3 < n; i += 4, x += 4 * step) {                                                               \
        if (!(x[0] order limit))                                                                             \
            return i;                                                                                        \
        if (!(x[step] order limit))                                                                          \
            return i + 1;                                                                                    \
        if (!(x[2 * step] order limit))                                                                      \
            return i + 2;                                                                                    \
        if (!(x[3 * step] order limit))                                                                      \
            return i + 3;                                                                                    \
    }                                                                                                        \
    for (; i < n && x[0] order limit; i++)                                                                   \
        x += step;
#define FIND(DT, T)                                                                                          \
    static int64_t find_##DT(const void *data, int64_t step, int64_t i, int64_t n, int64_t root,             \
                             bool largest)                                                                   \
    {                                                                                                        \
        const T *x = data, limit = x[root * step];                                                           \
        x += i * step;                                                                                       \
        if (largest) {                                                                                       \
            SKIP_WHILE(<=)                                                                                   \
        } else {                                                                                             \
            SKIP_WHILE(>=)                                                                                   \
        }                                                                                                    \
        return i;                                                                                            \
    }
FIND(FLOAT, float)
FIND(DOUBLE, double)
FIND(INT32, int32_t)
FIND(INT64, int64_t)

#define X(DT, T, C, load, store, comparable)                                                                 \
    static void keys_##DT(const void *data, int64_t step, int64_t n, uint64_t flip, uint64_t *key)           \
    {                                                                                                        \
        const T *x = data;                                                                                   \
        for (int64_t i = 0; i < n; i++, x += step)                                                           \
            key[i] = LNT_KEY(comparable(*x)) ^ flip;                                                         \
    }
LNT_NUMBER_LIST(X)
#undef X

static const keys_fn keys_of[LNT_DTYPE_COUNT] = {
#define X(DT, T, C, load, store, comparable) [LNT_##DT] = keys_##DT,
    LNT_NUMBER_LIST(X)
#undef X
};

/* NULL: keys are as quickly compared. */
static find_fn find_of(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_FLOAT: return find_FLOAT;
    case LNT_DOUBLE: return find_DOUBLE;
    case LNT_INT32: return find_INT32;
    case LNT_INT64: return find_INT64;
    default: return NULL;
    }
}

/* Columns are turned into rows where that many fit. A thread's entries, which it writes all the time, are a page from
 * another's: within one x86 fetches lines ahead that the other has. */
enum { TURNED_BYTES = 32 * 1024, FEW_COLUMNS = 4, APART = 4096 };

/* Or so many, a multiple of 8, are looked at side by side, for few elements of each; of several images where they are
 * fewer than BESIDE. Where each may be put ahead of each, so are more of them, up to EXCHANGES. */
enum { ABREAST = 32, ABREAST_OF_ONE = 256, BESIDE = 16, FEW_ELEMENTS = 32, EXCHANGES = 5120 };

/* Has any level of this architecture insert_columns? */
#ifdef __x86_64__
enum { HAS_ABREAST = true };
#else
enum { HAS_ABREAST = false };
#endif

typedef struct topk_params {
    lnt_dtype dtype;
    bool by_digits;
    int64_t n, k, inner, size;
    int64_t columns;       /* that are turned into rows at once; 0: elements are taken from where they are */
    int64_t width;         /* of as many looked at side by side, at most */
    int64_t step;          /* between the elements that are chosen from */
    find_fn find;          /* NULL: none */
    int64_t near;          /* elements looked at by their keys before others are found as candidates */
    int64_t bounded;       /* or that such are found from the start by a bound of; 0: not sought */
    lnt_typed_fn extreme;  /* of which it is made, but of float */
    int64_t room, scratch; /* entries and bytes of one thread */
    uint64_t flip;         /* ones for the largest, of a float's key 32 */
    const lnt_row_kernels *row; /* where its first_beyond is for the elements of a row, else NULL */
    const lnt_row_kernels *abreast; /* what columns are looked at side by side with, else NULL */
    const lnt_typed_kernels *typed; /* where that is for the first of each alone, else NULL */
    lnt_convert_fn widen;           /* of which int32 is compared as double, else NULL */
} topk_params;

typedef struct topk_job {
    const topk_params *p;
    const char *src;
    char *values;
    int64_t *indices;
    char *scratch;
    int64_t item; /* rows of an item of work: those of an image where several are turned */
} topk_job;

/* ---- few elements: those found so far, and the key that others have to come before ---- */

/* Up to LISTED in order: a new one moves the others by conditional moves, where branches would be guesses, none of
 * which waits for another. To more, others are added many at once. */
enum { LISTED = 16, CHUNK = 256, FAR = 16, BOUNDED = 32 };

static inline void insert_listed(lnt_entry *list, int64_t k, lnt_entry e)
{
    lnt_entry here = list[k - 1];
    bool before_here = true;
    LNT_ASSERT(k > 0 && k <= LISTED && e.key < here.key);
    for (int64_t i = k - 1; i > 0; i--) {
        const lnt_entry above = list[i - 1];
        const bool before_above = e.key < above.key;
        const uint64_t key = before_here ? e.key : here.key;
        const int64_t index = before_here ? e.index : here.index;
        list[i].key = before_above ? above.key : key;
        list[i].index = before_above ? above.index : index;
        here = above;
        before_here = before_above;
    }
    list[0].key = before_here ? e.key : here.key;
    list[0].index = before_here ? e.index : here.index;
}

/* Keys of elements from i on, at most CHUNK, of those before end. Returns their number. */
static __attribute__((noinline)) int64_t next_keys(const topk_params *p, const char *data, int64_t i,
                                                   int64_t end, uint64_t *key)
{
    const int64_t n = lnt_least(CHUNK, end - i),
                  whole = HAS_ABREAST && p->row && p->row->order_keys ? n & -8 : 0;
    const char *from = data + i * p->step * p->size;
    if (whole > 0)
        p->row->order_keys((const float *)(const void *)from, whole, p->flip != 0, (int64_t *)key);
    keys_of[p->dtype](from + whole * p->size, p->step, n - whole, p->flip, key + whole);
    return n;
}

/* The first of elements [i, n) that may come before element worst. */
static int64_t next_candidate(const topk_params *p, const char *data, int64_t i, int64_t worst)
{
    const float *x = (const float *)(const void *)data;
    return p->row ? i + p->row->first_beyond(x + i, p->n - i, x[worst], !p->flip)
                  : p->find(data, p->step, i, p->n, worst, p->flip != 0);
}

/* The k first of as many entries, in order, and `found` <= k behind them; those remain, in order. */
static __attribute__((noinline)) void join_found(const topk_params *p, lnt_entry *entries, int64_t found)
{
    const int64_t k = p->k;
    lnt_entry *const fresh = entries + k, *const spare = entries + p->room;
    if (found == 0)
        return;
    lnt_sort_entries(fresh, spare, found);
    for (int64_t i = found; i < k; i++)
        fresh[i] = (lnt_entry){UINT64_MAX, 0}; /* behind the others of that key */
    lnt_merge_halves(entries, spare, 2 * k);
    memcpy(entries, spare, (size_t)k * sizeof *entries);
}

/* Of n elements from i on those that come before the last of k entries: into a list at once, else behind the entries,
 * where `found` wait. Returns how many do then, fewer than k. */
static __attribute__((noinline)) int64_t add_found(const topk_params *p, const uint64_t *key, int64_t i,
                                                   int64_t n, lnt_entry *entries, int64_t found)
{
    const int64_t k = p->k;
    const lnt_entry *worst = entries + k - 1;
    for (int64_t j = 0; j < n; j++) {
        const lnt_entry e = {key[j], i + j};
        if (k <= LISTED) {
            if (e.key < worst->key)
                insert_listed(entries, k, e);
            continue;
        }
        entries[k + found] = e; /* kept or written over: a branch would be a guess */
        found += e.key < worst->key;
        if (found == k) {
            join_found(p, entries, found);
            found = 0;
        }
    }
    return found;
}

/* Entries of the n first elements, in order. */
static void list_first(const topk_params *p, const char *data, int64_t n, lnt_entry *entries)
{
    uint64_t key[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = next_keys(p, data, i, n, key);
        for (int64_t j = 0; j < m; j++)
            entries[i + j] = (lnt_entry){key[j], i + j};
    }
    lnt_sort_entries(entries, entries + p->room, n);
}

/* What comes first of each 2k-th element. */
static void find_leaders(const topk_params *p, const char *data, void *first)
{
    const int64_t lanes = 2 * p->k;
    memcpy(first, data, (size_t)(lanes * p->size));
    for (int64_t i = lanes; i < p->bounded; i += lanes) {
        const void *x = data + i * p->size;
        if (p->row)
            (p->flip ? p->row->max_to : p->row->min_to)(first, x, lanes);
        else
            p->extreme(&(lnt_typed_args){.in = {first, x}, .out = first, .n = lanes});
    }
}

/* k entries of an element that at least k come before, if one is at hand. */
static bool list_bound(const topk_params *p, const char *data, lnt_entry *entries)
{
    const int64_t k = p->k, lanes = 2 * k;
    char *first = (char *)(entries + 2 * p->room);
    uint64_t key[CHUNK];
    LNT_ASSERT(p->step == 1 && p->room >= lanes && p->bounded / lanes <= CHUNK);
    find_leaders(p, data, first);
    list_first(p, first, lanes, entries);
    const lnt_entry last = entries[k - 1];
    int64_t beyond = k;
    while (beyond < lanes && entries[beyond].key == last.key)
        beyond++;
    if (beyond == lanes)
        return false;
    lnt_entry bound = entries[beyond];
    const float *x = (const float *)(const void *)first;
    /* Not on all machines are floats found that are next to zero, nor are the first of such one of them. */
    if (p->row && p->row->first_beyond(x + last.index, 1, x[bound.index], !p->flip) != 0)
        return false;
    const int64_t n = p->bounded / lanes;
    int64_t of = 0;
    keys_of[p->dtype](data + bound.index * p->size, lanes, n, p->flip, key);
    while (of < n && key[of] != bound.key)
        of++;
    bound.index += of * lanes;
    for (int64_t i = 0; i < k; i++)
        entries[i] = bound;
    return of < n;
}

/* The first k entries of n elements, in order: first by all keys, then, as candidates become few, by theirs. */
static void select_by_replacing(const topk_params *p, const char *data, lnt_entry *entries)
{
    const int64_t k = p->k;
    uint64_t key[CHUNK];
    int64_t found = 0;
    const bool bounded = !LNT_TRIMMED && p->bounded > 0 && list_bound(p, data, entries);
    int64_t i = bounded ? 0 : k;
    if (!bounded)
        list_first(p, data, k, entries);
    for (int64_t n; !bounded && i < p->near; i += n) {
        n = next_keys(p, data, i, p->near, key);
        found = add_found(p, key, i, n, entries, found);
    }
    join_found(p, entries, found);
    for (found = 0; i < p->n && (i = next_candidate(p, data, i, entries[k - 1].index)) < p->n; i++) {
        next_keys(p, data, i, i + 1, key);
        found = add_found(p, key, i, 1, entries, found);
    }
    join_found(p, entries, found);
}

static int64_t bits_of(uint64_t x)
{
    return x > 0 ? 64 - __builtin_clzll(x) : 0;
}

/* ---- many elements: their keys' leading digits are counted until it is known which are wanted ---- */

enum { DIGIT = 11, COUNTERS = 1 << DIGIT, NOT_COUNTED = 256 };

/* Keys of which, without `least` and bits below shift, less than prefix is left are wanted, and the first `ties` of
 * those that equal it. */
typedef struct threshold {
    uint64_t least;
    unsigned shift;
    uint64_t prefix;
    int64_t ties;
} threshold;

/* Counts by their last `bits` what is left of keys that begin with prefix. */
static void count_digits(const topk_params *p, const char *data, const threshold *t, unsigned bits,
                         int64_t *count)
{
    uint64_t key[CHUNK];
    memset(count, 0, sizeof *count << bits);
    for (int64_t i = 0; i < p->n; i += CHUNK) {
        const int64_t n = next_keys(p, data, i, p->n, key);
        for (int64_t j = 0; j < n; j++) {
            const uint64_t digit = ((key[j] - t->least) >> t->shift) - t->prefix;
            if (digit < UINT64_C(1) << bits)
                count[digit]++;
        }
    }
}

/* How far the last key is from the least. */
static uint64_t find_span(const topk_params *p, const char *data, uint64_t *least)
{
    uint64_t key[CHUNK], low = UINT64_MAX, high = 0;
    for (int64_t i = 0; i < p->n; i += CHUNK) {
        const int64_t n = next_keys(p, data, i, p->n, key);
        for (int64_t j = 0; j < n; j++) {
            low = key[j] < low ? key[j] : low;
            high = key[j] > high ? key[j] : high;
        }
    }
    *least = low;
    return high - low;
}

/* Lets at least k and at most p->room entries pass. */
static threshold find_threshold(const topk_params *p, const char *data)
{
    int64_t count[COUNTERS], left = p->k; /* wanted of the keys that begin with prefix */
    threshold t = {0, 0, UINT64_MAX, p->n};
    if (p->room >= p->n)
        return t;
    t.prefix = 0;
    t.shift = (unsigned)bits_of(find_span(p, data, &t.least));
    const unsigned most = (unsigned)lnt_least(DIGIT, bits_of((uint64_t)p->n));
    do {
        const unsigned bits = t.shift < most ? t.shift : most;
        t.shift -= bits;
        t.prefix <<= bits;
        count_digits(p, data, &t, bits, count);
        int64_t *digit = count;
        while (*digit < left)
            left -= *digit++;
        t.prefix += (uint64_t)(digit - count);
        t.ties = *digit;
    } while (t.shift > 0 && p->k - left + t.ties > p->room);
    if (p->k - left + t.ties > p->room)
        t.ties = left;
    return t;
}

/* The first k entries of n elements, in order. */
static void select_by_digits(const topk_params *p, const char *data, lnt_entry *entries)
{
    threshold t = find_threshold(p, data);
    uint64_t key[CHUNK];
    int64_t found = 0;
    for (int64_t i = 0; i < p->n; i += CHUNK) {
        const int64_t n = next_keys(p, data, i, p->n, key);
        for (int64_t j = 0; j < n; j++) {
            const uint64_t leading = (key[j] - t.least) >> t.shift;
            entries[found] = (lnt_entry){key[j], i + j}; /* kept or written over: a branch would be a guess */
            found += (leading < t.prefix) | ((leading == t.prefix) & (t.ties > 0));
            t.ties -= leading == t.prefix;
        }
    }
    lnt_sort_entries(entries, entries + p->room, found);
}

/* ---- rows and columns ---- */

/* `images` side by side of as many columns as make `width` in all: elements of a column are `step` apart. What is found
 * in the first one goes to `to`. */
typedef struct columns {
    const char *from;
    int64_t step, width, images, to;
} columns;

/* The first of each column alone: of the smallest NaN were the last. */
static void find_largest(const topk_job *job, const columns *c, int64_t *indices)
{
    const topk_params *p = job->p;
    const int64_t images = c->images, wide = c->width / images;
    _Alignas(16) char best[ABREAST_OF_ONE * sizeof(double)], widened[ABREAST_OF_ONE * sizeof(double)];
    int32_t at[ABREAST_OF_ONE];
    const bool is_double = p->dtype != LNT_FLOAT;
    const char *from = c->from;
    LNT_ASSERT(c->width > 0 && c->width <= ABREAST_OF_ONE);
    memset(at, 0, (size_t)c->width * sizeof *at);
    memset(indices, 0, (size_t)c->width * sizeof *indices);
    for (int64_t i = 0; i < p->n; i++, from += c->step * p->size) {
        const void *row = from;
        if (p->widen) {
            p->widen(i == 0 ? best : widened, from, c->width);
            row = widened;
        } else if (i == 0) {
            memcpy(best, from, (size_t)(c->width * p->size));
        }
        if (i > 0 && is_double)
            p->typed->pick_double((double *)(void *)best, indices, row, i, p->flip ? 1 : -1, false, c->width);
        else if (i > 0)
            p->abreast->pick_max((float *)(void *)best, at, row, (int32_t)i, false, false, c->width);
    }
    if (p->widen)
        p->typed->cast.step[LNT_CAST_f64_i32](widened, best, c->width);
    for (int64_t j = 0; j < c->width && !is_double; j++)
        indices[j] = at[j];
    if (job->values)
        lnt_turn(job->values + c->to * p->size, wide, p->widen ? widened : best, images, wide, images,
                 (size_t)p->size);
    if (job->indices)
        lnt_turn(job->indices + c->to, wide, indices, images, wide, images, sizeof *indices);
}

/* The first k of each column, in order of their keys. */
static void find_first(const topk_params *p, const columns *c, int64_t n, int64_t *lists, int64_t *indices)
{
    const int64_t whole = p->dtype == LNT_FLOAT ? c->width & -8 : 0;
    int64_t key[ABREAST] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        const char *from = c->from + i * c->step * p->size;
        p->abreast->order_keys((const float *)(const void *)from, whole, p->flip != 0, key);
        keys_of[p->dtype](from + whole * p->size, 1, c->width - whole, p->flip ^ UINT64_C(1) << 63,
                          (uint64_t *)key + whole);
        p->abreast->insert_columns(lists, indices, lnt_least(i, p->k), p->k, key, i, n);
    }
}

static void topk_columns(const topk_job *job, const columns *c, int64_t *lists)
{
    const topk_params *p = job->p;
    const int64_t n = (int64_t)lnt_round_up((size_t)c->width, 8);
    int64_t *const indices = lists + p->k * n;
    LNT_ASSERT(c->width > 0 && n <= ABREAST);
    find_first(p, c, n, lists, indices);
    for (int64_t i = 0; i < p->k; i++)
        for (int64_t j = 0, image = 0, to = c->to + i * p->inner; j < c->width; j++) {
            const int64_t at = indices[i * n + j];
            if (job->values)
                lnt_move_slice(job->values + to * p->size, c->from + (at * c->step + j) * p->size, p->size);
            if (job->indices)
                job->indices[to] = at;
            const bool last = ++image == c->images;
            to += last ? 1 - (image - 1) * p->k * p->inner : p->k * p->inner;
            image = last ? 0 : image;
        }
}

/* One row of elements, from data, to values and indices that are p->inner apart. */
static void topk_row(const topk_job *job, const char *data, int64_t to, lnt_entry *entries)
{
    const topk_params *p = job->p;
    (p->by_digits ? select_by_digits : select_by_replacing)(p, data, entries);
    for (int64_t i = 0; i < p->k; i++, to += p->inner) {
        if (job->values)
            lnt_move_slice(job->values + to * p->size, data + entries[i].index * p->step * p->size, p->size);
        if (job->indices)
            job->indices[to] = entries[i].index;
    }
}

/* From row r on as many as are columns beside each other, at most ABREAST and `most`; where there are few, those of
 * several images that are turned. */
static int64_t topk_abreast(const topk_job *job, int64_t r, int64_t most, char *turned, void *lists)
{
    const topk_params *p = job->p;
    const int64_t inner = p->inner, outer = r / inner, column = r % inner;
    const char *data = job->src + (outer * p->n * inner + column) * p->size;
    columns c = {data, inner, lnt_least(lnt_least(most, p->width), inner - column), 1,
                 outer * p->k * inner + column};
    if (inner < BESIDE) {
        c.images = lnt_least(most, p->width) / inner;
        c.from = turned;
        c.step = c.width = c.images * inner;
        lnt_turn(turned, c.images, data, p->n * inner, c.images, p->n * inner, (size_t)p->size);
    }
    if (p->typed)
        find_largest(job, &c, lists);
    else
        topk_columns(job, &c, lists);
    return c.width;
}

static lnt_status topk_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    const topk_job *job = arg;
    const topk_params *p = job->p;
    LNT_ASSERT(p->k <= p->n && p->inner > 0);
    lnt_entry *entries = (lnt_entry *)(void *)(job->scratch + thread * p->scratch);
    _Alignas(16) char turned[TURNED_BYTES];
    end *= job->item;
    for (int64_t r = begin * job->item, width = 1; r < end; r += width) {
        const int64_t outer = r / p->inner, column = r % p->inner, to = outer * p->k * p->inner + column;
        const char *data = job->src + (outer * p->n * p->inner + column) * p->size;
        if (HAS_ABREAST && p->abreast) {
            width = topk_abreast(job, r, end - r, turned, entries);
            continue;
        }
        if (p->columns > 0) {
            width = lnt_least(lnt_least(p->columns, end - r), p->inner - column);
            lnt_turn(turned, p->n, data, p->inner, p->n, width, (size_t)p->size);
            data = turned;
        }
        for (int64_t i = 0; i < width; i++)
            topk_row(job, data + i * p->n * p->size, to + i, entries);
    }
    return LNT_OK;
}

static lnt_status run_top_k(lnt_kernel *k, const lnt_step *s)
{
    const topk_params *p = s->params;
    topk_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0), lnt_out(k, s, 1), lnt_scratch(k, s), 1};
    if (p->abreast && p->inner < BESIDE)
        job.item = p->inner;
    const int64_t count = lnt_operand_count(s->in[0]);
    if (count == 0 || p->k == 0)
        return LNT_OK;
    if (p->n == 1) {
        if (job.indices)
            memset(job.indices, 0, (size_t)count * sizeof *job.indices);
        return job.values ? lnt_copy_bytes(k, job.values, job.src, count * p->size) : LNT_OK;
    }
    const int64_t in_order =
        p->k * bits_of((uint64_t)p->k) * 32; /* what it costs to bring those found into order */
    const int64_t grain = lnt_grain(p->n * 8 + in_order), together = p->abreast ? p->width / job.item : 1;
    return lnt_parallel(k, count / p->n / job.item, (grain / job.item + together) / together * together,
                        topk_rows, &job);
}

/* Are there enough columns, or so many images of few that fit when they are turned, and so few elements in each that
 * one of several most often has a new entry? */
static bool is_abreast(const topk_params *p, int64_t rows)
{
    /* Doubles are found sooner than keys of them are made. */
    const bool found = p->dtype == LNT_DOUBLE && p->inner == 1 && !p->typed && p->k <= 2;
    /* So is one of int64 in longer rows. */
    const bool one = p->dtype == LNT_INT64 && p->inner == 1 && p->k == 1;
    const bool fits = rows >= ABREAST / 2 &&
                      p->n <= (found ? ABREAST
                               : one ? 2 * ABREAST
                                     : 128 + 40 * p->k) &&
                      p->n * ABREAST * p->size <= TURNED_BYTES;
    return p->k > 0 && (p->k <= FEW_ELEMENTS || p->k <= EXCHANGES / p->n) && (p->inner >= BESIDE || fits);
}

lnt_status lnt_bind_top_k(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), in->rank, &axis));
    topk_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->dtype = (lnt_dtype)in->dtype;
    p->size = (int64_t)lnt_element_size(in);
    if (p->dtype >= LNT_DTYPE_COUNT || !keys_of[p->dtype])
        return lnt_bind_unsupported_type(site, p->dtype);
    LNT_TRY(lnt_value_int(site, 1, 0, &p->k));
    p->n = in->dims[axis];
    p->inner = lnt_extent(in, axis + 1, in->rank);
    p->columns = p->inner > 1 && p->n > 0 ? TURNED_BYTES / (p->n * p->size) : 0;
    if (p->columns < FEW_COLUMNS)
        p->columns = 0;
    if (lnt_attr_i(site->node, "largest", 1))
        p->flip = p->dtype == LNT_FLOAT ? UINT32_MAX : UINT64_MAX;
    if (HAS_ABREAST && p->k == 1 && p->dtype == LNT_INT32)
        p->widen = site->kernels->typed->cast.step[LNT_CAST_i32_f64];
    if (p->widen ||
        (p->k == 1 && p->flip && p->n <= INT32_MAX && (p->dtype == LNT_FLOAT || p->dtype == LNT_DOUBLE)))
        p->typed = site->kernels->typed;
    if (HAS_ABREAST && site->kernels->row->insert_columns && p->n > 0 &&
        is_abreast(p, lnt_operand_count(in) / p->n))
        p->abreast = site->kernels->row;
    p->width = !p->typed           ? ABREAST
               : p->inner < BESIDE ? lnt_least(ABREAST_OF_ONE, TURNED_BYTES / (p->n * p->size))
                                   : ABREAST_OF_ONE;
    p->step = p->columns > 0 ? 1 : p->inner;
    p->find = find_of(p->dtype);
    p->row = p->dtype == LNT_FLOAT && p->step == 1 ? site->kernels->row : NULL;
    /* One of so many is a candidate, as long as those before were in no order. */
    p->near = p->find ? lnt_least(p->n, p->k * FAR) : p->n;
    if (!LNT_TRIMMED && p->find && p->step == 1 && p->k > LISTED && p->n >= 4 * p->k) {
        p->extreme = site->kernels->typed->loop[p->flip ? LNT_TYPED_Max : LNT_TYPED_Min][p->dtype];
        if (p->row || p->extreme)
            p->bounded = lnt_least(p->n / (2 * p->k), BOUNDED) * 2 * p->k;
    }
    /* Replacing takes about k log(n / k) new entries, each moved log(k) times, and k before; counting looks at all
     * elements, and at its counters, many in a turn. All elements are not counted, and few are all sorted. */
    p->by_digits =
        p->k > 0 && p->k < p->n &&
        (p->k * (bits_of((uint64_t)(p->n / p->k)) + 1) * bits_of((uint64_t)p->k) > 3 * p->n + COUNTERS / 4);
    p->room = p->k * (p->abreast ? p->width : 1 + (p->k < p->n));
    if (p->by_digits && !p->abreast)
        p->room = p->n <= NOT_COUNTED ? p->n : lnt_least(p->n, p->k + p->k / 2 + 64);
    p->scratch =
        (int64_t)lnt_round_up((size_t)p->room * (sizeof(lnt_entry) * 2 + sizeof(double)) + APART, LNT_ALIGN);
    lnt_bind_scratch(site, (size_t)p->scratch * site->threads);
    site->step->run = run_top_k;
    return LNT_OK;
}
