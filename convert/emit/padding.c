/* padding.c — files that padding makes larger than their models hold the worst of it not at all.
 *
 * Panels round columns up to 16, which is nothing in a large matrix and most of a small one. Bytes that are ready are
 * used in place; those without padding are packed when the file is loaded, into memory. So only as many are as the
 * file is too large by, those first that save most for each byte that loading then has to write. */
#include "convert/emit/padding.h"

#include "formats/lnt_format.h"
#include "formats/stored.h"

#include <stdlib.h>

enum {
    SLACK = 100,      /* the file may be larger than the model by one part in so many */
    LEAST_SHARE = 32, /* less padding than one part in so many is not worth a copy */
    LEAST_SAVED = LNT_FILE_ALIGN
};

typedef struct padded {
    uint32_t value;
    uint64_t ready, saved; /* bytes as kernels read them, and those that are padding */
} padded;

/* Constants that are ready and have padding. Returns how many. */
static size_t find_padded(const lnt_graph *g, padded *list)
{
    size_t n = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lnt_gvalue *v = &g->value[i];
        size_t plain;
        if (!v->info.packed || v->plain || lnt_stored_bytes(lnt_stored_unpacked(v->info.packed), &v->info, &plain))
            continue;
        const padded p = {i, v->bytes, v->bytes > plain ? v->bytes - plain : 0};
        if (p.saved >= LEAST_SAVED && p.saved >= p.ready / LEAST_SHARE)
            list[n++] = p;
    }
    return n;
}

/* The larger share of padding first. */
static int by_share(const void *a, const void *b)
{
    const padded *x = a, *y = b;
    const double left = (double)x->saved * (double)y->ready, right = (double)y->saved * (double)x->ready;
    if (left != right)
        return left < right ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value;
}

lnt_status lnt_leave_out_padding(lnt_graph *g, const lnt_report *report, bool *changed)
{
    padded *list = lnt_alloc_zero(g->memory.allocator, g->n_values, sizeof *list, g->err);
    if (!list)
        return LNT_E_MEMORY;
    const size_t n = find_padded(g, list);
    const uint64_t contents = report->constant_bytes - report->padding_bytes;
    const uint64_t model = report->onnx_bytes > contents ? report->onnx_bytes : contents;
    const uint64_t most = model + model / SLACK;
    uint64_t excess = report->lnt_bytes > most ? report->lnt_bytes - most : 0;
    *changed = n > 0 && excess > 0;
    if (n)
        qsort(list, n, sizeof *list, by_share);
    for (size_t i = 0; i < n && excess > 0; i++) {
        g->value[list[i].value].plain = true;
        excess -= list[i].saved < excess ? list[i].saved : excess;
    }
    lnt_free(g->memory.allocator, list);
    return LNT_OK;
}
