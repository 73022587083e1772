/* unique.c — Unique: distinct elements, or distinct slices along an axis. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/data/order.h"
#include "ops/data/sort.h"

#include <string.h>

/* n items, each of outer x inner elements, item i's (o, e)-th at (o * n + i) * inner + e. */
typedef struct items {
    lnt_dtype dtype;
    const void *data;
    int64_t n, outer, inner;
    bool flat; /* no axis: every element is an item */
    unsigned axis;
} items;

static lnt_status find_items(const lnt_site *site, items *it)
{
    const lnt_operand *in = site->in[0];
    const lnt_attr *a = lnt_attr_of(site->node, "axis", LNT_ATTR_INT);
    *it = (items){.dtype = (lnt_dtype)in->dtype, .data = in->data, .outer = 1, .inner = 1, .flat = !a};
    if (a)
        LNT_TRY(lnt_axis(site, *a->i, in->rank, &it->axis));
    it->n = a ? in->dims[it->axis] : lnt_operand_count(in);
    if (a) {
        it->outer = lnt_extent(in, 0, it->axis);
        it->inner = lnt_extent(in, it->axis + 1, in->rank);
    }
    return LNT_OK;
}

static int compare_items(const items *it, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < it->outer; o++)
        for (int64_t e = 0; e < it->inner; e++) {
            const uint64_t x = lnt_order_key(it->dtype, it->data, (o * it->n + a) * it->inner + e);
            const uint64_t y = lnt_order_key(it->dtype, it->data, (o * it->n + b) * it->inner + e);
            if (x != y)
                return x < y ? -1 : 1;
        }
    return 0;
}

/* What sorting takes: in int64s for each item. */
enum { SORT_ROOM = 2 * sizeof(lnt_entry) / sizeof(int64_t) };

/* Single elements are sorted by their keys. */
static void sort_elements(const items *it, int64_t *order)
{
    lnt_entry *entries = (lnt_entry *)(void *)order;
    for (int64_t i = 0; i < it->n; i++)
        entries[i] = (lnt_entry){lnt_order_key(it->dtype, it->data, i), i};
    lnt_sort_entries(entries, entries + it->n, it->n);
    for (int64_t i = 0; i < it->n; i++) {
        const int64_t index = entries[i].index; /* entry i is not before order[i] */
        order[i] = index;
    }
}

/* Merges pairs of sorted runs; looks at the clock now and then, if there is one. */
static lnt_status merge_all(const items *it, const int64_t *from, int64_t *to, int64_t run, lnt_kernel *watch)
{
    enum { ELEMENTS = 1 << 16 }; /* compared between two looks */
    int64_t left = 0;
    for (int64_t begin = 0; begin < it->n; begin += 2 * run) {
        const int64_t middle = begin + run < it->n ? begin + run : it->n;
        const int64_t end = middle + run < it->n ? middle + run : it->n;
        int64_t a = begin, b = middle;
        for (int64_t i = begin; i < end; i++, left -= it->outer * it->inner) {
            if (left <= 0 && watch)
                LNT_TRY(lnt_poll(watch));
            left = left <= 0 ? ELEMENTS : left;
            const bool first = b >= end || (a < middle && compare_items(it, from[a], from[b]) <= 0);
            to[i] = first ? from[a++] : from[b++];
        }
    }
    return LNT_OK;
}

/* Sorts the item numbers into order[0..n), with room for SORT_ROOM times as many; equal items keep their order. */
static lnt_status sort_items(const items *it, int64_t *order, lnt_kernel *watch)
{
    int64_t *from = order, *to = order + it->n;
    if (it->outer * it->inner == 1) {
        sort_elements(it, order);
        return LNT_OK;
    }
    for (int64_t i = 0; i < it->n; i++)
        order[i] = i;
    for (int64_t run = 1; run < it->n; run *= 2) {
        LNT_TRY(merge_all(it, from, to, run, watch));
        int64_t *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != order)
        memcpy(order, from, (size_t)it->n * sizeof *order);
    return LNT_OK;
}

/* leader[i]: the first item equal to i. Returns the number of leaders. */
static int64_t find_leaders(const items *it, const int64_t *order, int64_t *leader)
{
    int64_t distinct = 0, first = 0;
    for (int64_t i = 0; i < it->n; i++) {
        if (i == 0 || compare_items(it, first, order[i]) != 0) {
            first = order[i];
            distinct++;
        }
        leader[order[i]] = first;
    }
    return distinct;
}

/* Counting needs as much memory as sorting: the shape rule takes it for the moment of the count. */
static lnt_status count_distinct(const lnt_site *site, const items *it, int64_t *distinct)
{
    size_t bytes;
    if (!lnt_mul_size((size_t)it->n, SORT_ROOM * sizeof(int64_t), &bytes))
        return LNT_SITE_FAIL(site, LNT_E_MEMORY, "%lld elements", (long long)it->n);
    const lnt_allocator *a = site->allocator ? site->allocator : &lnt_malloc_allocator;
    int64_t *order = lnt_alloc(a, bytes, site->err);
    if (!order)
        return LNT_E_MEMORY;
    const lnt_status status = sort_items(it, order, site->watch);
    if (status == LNT_OK)
        *distinct = find_leaders(it, order, order + it->n);
    lnt_free(a, order);
    return status;
}

lnt_status lnt_shape_unique(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK], distinct = LNT_DIM_UNKNOWN;
    items it;
    LNT_TRY(find_items(site, &it));
    for (unsigned i = 1; i < 4; i++)
        lnt_set_type(site, i, LNT_INT64);
    const bool known = in->data && lnt_operand_count(in) >= 0;
    if (known)
        LNT_TRY(count_distinct(site, &it, &distinct));
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = i == it.axis ? distinct : in->dims[i];
    lnt_set_dims(site, 0, it.flat ? 1 : in->rank, it.flat ? &distinct : dims);
    lnt_set_dims(site, 1, 1, &distinct);
    lnt_set_dims(site, 2, 1, &(int64_t){it.n < 0 ? LNT_DIM_UNKNOWN : it.n});
    lnt_set_dims(site, 3, 1, &distinct);
    return known ? LNT_OK : LNT_UNKNOWN;
}

typedef struct unique_params {
    items it;
    int64_t distinct, size;
    bool sorted;
} unique_params;

/* id[leader]: its place in the output, by value or by first occurrence. */
static void number_leaders(const unique_params *p, const int64_t *order, const int64_t *leader, int64_t *id)
{
    int64_t next = 0;
    for (int64_t i = 0; i < p->it.n; i++) {
        const int64_t item = p->sorted ? order[i] : i;
        if (leader[item] == item)
            id[item] = next++;
    }
}

static void copy_item(const unique_params *p, const char *data, char *out, int64_t item, int64_t place)
{
    const int64_t bytes = p->it.inner * p->size;
    for (int64_t o = 0; o < p->it.outer; o++)
        memcpy(out + (o * p->distinct + place) * bytes, data + (o * p->it.n + item) * bytes, (size_t)bytes);
}

static lnt_status run_unique(lnt_kernel *k, const lnt_step *s)
{
    const unique_params *p = s->params;
    LNT_ASSERT(p->distinct <= p->it.n);
    items it = p->it;
    it.data = lnt_in(k, s, 0);
    int64_t *order = lnt_scratch(k, s), *leader = order + it.n, *id = leader + it.n;
    int64_t *first = lnt_out(k, s, 1), *inverse = lnt_out(k, s, 2), *counts = lnt_out(k, s, 3);
    char *out = lnt_out(k, s, 0);
    LNT_TRY(sort_items(&it, order, k));
    find_leaders(&it, order, leader);
    number_leaders(p, order, leader, id);
    if (counts)
        memset(counts, 0, (size_t)p->distinct * sizeof *counts);
    for (int64_t i = 0; i < it.n; i++) {
        const int64_t place = id[leader[i]];
        if (inverse)
            inverse[i] = place;
        if (counts)
            counts[place]++;
        if (leader[i] != i)
            continue;
        if (first)
            first[place] = i;
        if (out)
            copy_item(p, it.data, out, i, place);
    }
    return LNT_OK;
}

/* The number of distinct items, from whichever output is wanted (the inverse does not tell). */
static int64_t distinct_of(const lnt_site *site, const items *it)
{
    for (unsigned i = 1; i < 4; i += 2)
        if (lnt_output(site, i))
            return site->out[i]->dims[0];
    return lnt_output(site, 0) ? site->out[0]->dims[it->axis] : 0;
}

lnt_status lnt_bind_unique(lnt_site *site)
{
    unique_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(find_items(site, &p->it));
    p->size = (int64_t)lnt_element_size(site->in[0]);
    if (p->size == 0)
        return lnt_bind_unsupported_type(site, p->it.dtype);
    p->distinct = distinct_of(site, &p->it);
    p->sorted = lnt_attr_i(site->node, "sorted", 1) != 0;
    size_t bytes;
    _Static_assert(SORT_ROOM >= 3, "order, leaders and their places lie where was sorted");
    if (!lnt_mul_size((size_t)p->it.n, SORT_ROOM * sizeof(int64_t), &bytes))
        return LNT_SITE_FAIL(site, LNT_E_MEMORY, "%lld elements", (long long)p->it.n);
    lnt_bind_scratch(site, bytes);
    site->step->run = run_unique;
    return LNT_OK;
}
