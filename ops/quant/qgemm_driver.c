/* qgemm_driver.c — int8 GEMM: blocking and threads around the tile kernels. */
#include "ops/quant/qgemm_driver.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

enum { SHARES = 4 /* of a thread, where there are several; each describes its rows anew */ };

void lnt_qgemm_plan_weights(lnt_qgemm_plan *p, const lnt_packed *record, const lnt_operand *b)
{
    LNT_ASSERT(lnt_packed_is_int8(record));
    p->products = record->groups;
    p->columns = record->N;
    p->row_bytes = lnt_qrow_bytes(record);
    p->panels = lnt_qpanels(record);
    p->sums_at = lnt_packed_sums_at(record);
    p->full = lnt_qweights_are_full(b);
    p->run_offset = lnt_qone_run;
    p->runs = 1;
}

void lnt_qgemm_plan_runs(lnt_qgemm_plan *p, const ptrdiff_t *offset, int64_t runs)
{
    p->run_offset = offset;
    p->runs = runs;
}

int32_t lnt_qrow_sum(const lnt_int8_kernels *kernels, const uint8_t *row, const ptrdiff_t *offset,
                     int64_t runs, int64_t bytes)
{
    int32_t total = 0;
    for (int64_t r = 0; r < runs; r++)
        total += kernels->sum(row + offset[r], bytes, false);
    return total;
}

void lnt_qstore_floats(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                       int64_t product, int64_t panel, int32_t *acc)
{
    const lnt_qgemm_plan *p = call->plan;
    const int64_t first = panel * LNT_QPANEL, column = product * p->columns + first;
    const int64_t columns = p->columns - first < LNT_QPANEL ? p->columns - first : LNT_QPANEL;
    const int32_t *all_sums = (const int32_t *)(const void *)(call->b + p->sums_at);
    const lnt_dequantize_tile tile = {.acc = acc,
                                      .rows = n,
                                      .columns = (unsigned)columns,
                                      .scale = set->scale + from,
                                      .zero = set->zero + from,
                                      .sums = all_sums + (product * p->panels + panel) * LNT_QPANEL,
                                      .scales = call->scales + column,
                                      .bias = call->bias ? call->bias + column : NULL,
                                      .y = call->c + first,
                                      .residual = call->residual ? call->residual + first : NULL,
                                      .out = set->out + from,
                                      .low = p->low,
                                      .high = p->high};
    p->int8->store_dequantized(&tile);
}

/* How the product is cut: rows into blocks of tiles, panels into parts, so that threads have something to
 * share. */
typedef struct cut {
    const lnt_qgemm_call *call;
    int64_t tiles, blocks, parts;
    int64_t groups;    /* of as many panels as a tile takes */
    bool rows_outside; /* products are columns of the same rows: a thread does all of some rows' */
} cut;

/* Tiles of a block: where each begins in the block's rows. */
typedef struct tile_list {
    unsigned n, begin[LNT_QROWS_BLOCK + 1];
} tile_list;

/* The rows of a block, cut into tiles of about as many rows as those of the others have. */
static void list_tiles(const cut *c, int64_t block, tile_list *list, lnt_qrow_set *set)
{
    const lnt_qgemm_plan *p = c->call->plan;
    const int64_t by = p->kernels->rows_by, all = (p->rows + by - 1) / by;
    const int64_t first = lnt_cut(c->tiles, c->blocks, block);
    set->first = lnt_cut(all, c->tiles, first) * by;
    list->n = (unsigned)(lnt_cut(c->tiles, c->blocks, block + 1) - first);
    for (unsigned t = 0; t <= list->n; t++) {
        const int64_t row = lnt_cut(all, c->tiles, first + t) * by;
        list->begin[t] = (unsigned)((row < p->rows ? row : p->rows) - set->first);
    }
    set->n = list->begin[list->n];
}

/* What becomes of the accumulators of a block and some panels, where it takes no callback. */
typedef struct results {
    lnt_requantize_tile bytes;
    lnt_integer_tile integers;
    bool are_bytes, are_integers;
    bool in_tile;  /* tiles requantize them */
    bool declined; /* tiles do not make integers, or floats, of this block */
} results;

static void find_results(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product, int64_t panel,
                         unsigned panels, results *to)
{
    const lnt_qgemm_plan *p = call->plan;
    const int64_t left = p->columns - panel * LNT_QPANEL, whole = panels * LNT_QPANEL;
    const unsigned columns = (unsigned)(left < whole ? left : whole);
    to->are_bytes = p->requantize_of && p->requantize_of(call, set, product, panel, columns, &to->bytes);
    to->bytes.out = set->out;
    to->in_tile = to->are_bytes && p->kernels->requantizes && !to->bytes.row && !to->bytes.slope &&
                  (left >= whole || p->kernels->some_columns);
    to->are_integers = !to->are_bytes && !(to->declined && to->integers.scale) && p->integers_of &&
                       p->integers_of(call, set, product, panel, columns, &to->integers);
}

static unsigned columns_of_panel(unsigned all, unsigned first)
{
    return all - first < LNT_QPANEL ? all - first : LNT_QPANEL;
}

/* Of the panel whose first column is `first` of the tile. */
static void store_bytes(const lnt_int8_kernels *int8, lnt_requantize_tile t, unsigned first,
                        const int32_t *acc)
{
    t.acc = acc;
    t.columns = columns_of_panel(t.columns, first);
    t.acc_bias += first;
    t.zeros += t.row ? first : 0;
    t.scale += first;
    t.slope += t.slope ? first : 0;
    t.floor += t.slope ? first : 0;
    t.y += first;
    int8->store_requantized(&t);
}

static void store_integers(const lnt_int8_kernels *int8, lnt_integer_tile t, unsigned first,
                           const int32_t *acc)
{
    t.acc = acc;
    t.columns = columns_of_panel(t.columns, first);
    t.acc_bias += first;
    t.zeros += t.row ? first : 0;
    t.y += first;
    int8->store_integers(&t);
}

/* Stores accumulators of a block, where tiles have not. */
static void store_block(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product, int64_t panel,
                        unsigned i, const results *to, int32_t *acc)
{
    const lnt_qgemm_plan *p = call->plan;
    if (to->are_bytes)
        store_bytes(p->int8, to->bytes, i * LNT_QPANEL, acc);
    else if (to->are_integers)
        store_integers(p->int8, to->integers, i * LNT_QPANEL, acc);
    else
        p->store(call, set, 0, set->n, product, panel + i, acc);
}

static void run_block(const lnt_qgemm_call *call, const lnt_qrow_set *set, const tile_list *list,
                      int64_t product, int64_t first_panel, int64_t end_panel)
{
    LNT_ASSERT(set->n <= LNT_QROWS_BLOCK && first_panel <= end_panel);
    const lnt_qgemm_plan *p = call->plan;
    const int64_t panel_bytes = p->row_bytes * LNT_QPANEL;
    const int64_t first_of_product = (p->b_product ? p->b_product[product] : product) * p->panels;
    const unsigned most = p->kernels->panels;
    const int32_t *sums = (const int32_t *)(const void *)(call->b + p->sums_at);
    int32_t acc[LNT_QPANELS_MAX][LNT_QROWS_BLOCK * LNT_QPANEL];
    lnt_qproduct tile = {.tap_offset = p->run_offset,
                         .taps = p->runs,
                         .quads = p->row_bytes / 4 / p->runs,
                         .full = p->full,
                         .moved = p->moved};
    results to = {.declined = false};
    for (int64_t panel = first_panel; panel < end_panel; panel += tile.panels) {
        tile.panels = end_panel - panel >= most  ? most
                      : p->kernels->fewer_panels ? (unsigned)(end_panel - panel)
                                                 : 1;
        for (unsigned i = 0; i < tile.panels; i++)
            tile.panel[i] = call->b + (first_of_product + panel + i) * panel_bytes;
        tile.sums = sums + (first_of_product + panel) * LNT_QPANEL;
        find_results(call, set, product, panel, tile.panels, &to);
        bool integers = LNT_QTILES_OF_INTEGERS && to.are_integers && p->kernels->integers && !to.declined;
        bool whole = !to.in_tile && !integers;
        tile.requantize = to.in_tile ? &to.bytes : NULL;
        for (unsigned t = 0; t < list->n; t++) {
            const unsigned at = list->begin[t];
            tile.a = set->a + at;
            tile.rows = list->begin[t + 1] - at;
            tile.ahead = t < tile.panels && panel + tile.panels + t < end_panel
                             ? tile.panel[0] + (tile.panels + t) * panel_bytes
                             : NULL;
            if (to.in_tile)
                to.bytes.out = set->out + at;
            for (unsigned i = 0; i < tile.panels; i++)
                tile.c[i] = acc[i] + (whole ? at * LNT_QPANEL : 0);
            if (integers && p->kernels->integers(&tile, &to.integers, at))
                continue;
            if (integers && t == 0) { /* then none of the block is computed so */
                integers = false;
                to.declined = whole = true;
                to.are_integers = !to.integers.scale;
            }
            p->kernels->tile(&tile);
            for (unsigned i = 0; i < tile.panels && !to.in_tile && !whole; i++)
                p->store(call, set, at, tile.rows, product, panel + i, acc[i]);
        }
        for (unsigned i = 0; i < tile.panels && whole && !to.in_tile; i++)
            store_block(call, set, product, panel, i, &to, acc[i]);
    }
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const cut *c = arg;
    const lnt_qgemm_call *call = c->call;
    const lnt_qgemm_plan *p = call->plan;
    for (int64_t item = begin; item < end; item++) {
        const int64_t part = item % c->parts, at = item / c->parts;
        const int64_t block = c->rows_outside ? at / p->products : at % c->blocks;
        const int64_t product = c->rows_outside ? at % p->products : at / c->blocks;
        const int64_t first = c->groups * part / c->parts * p->kernels->panels,
                      end_panel = c->groups * (part + 1) / c->parts * p->kernels->panels;
        const int64_t stop = end_panel < p->panels ? end_panel : p->panels;
        lnt_qrow_set set;
        tile_list list;
        list_tiles(c, block, &list, &set);
        p->rows_of(call, product, &set);
        run_block(call, &set, &list, product, first, stop);
        if (p->epilogue) {
            const int64_t column = first * LNT_QPANEL,
                          last = stop * LNT_QPANEL < p->columns ? stop * LNT_QPANEL : p->columns;
            lnt_epilogue_run(p->epilogue, k, call->step, call->c + set.out[0] + column, p->ld,
                             product * p->epilogue_rows + set.first, set.n,
                             product * p->epilogue_columns + column, last - column);
        }
    }
    return LNT_OK;
}

lnt_status lnt_qgemm_run(lnt_kernel *k, const lnt_qgemm_call *call)
{
    const lnt_qgemm_plan *p = call->plan;
    LNT_ASSERT(p->kernels->rows <= LNT_QROWS_MAX && p->kernels->panels <= LNT_QPANELS_MAX);
    LNT_ASSERT(p->runs > 0 && p->row_bytes % (4 * p->runs) == 0);
    LNT_ASSERT(p->panels == (p->columns + LNT_QPANEL - 1) / LNT_QPANEL);
    const int64_t tile_rows = p->kernels->rows, block_tiles = LNT_QROWS_BLOCK / tile_rows;
    cut c = {.call = call, .tiles = (p->rows + tile_rows - 1) / tile_rows};
    if (p->rows == 0 || p->columns == 0 || p->products == 0)
        return LNT_OK;
    c.blocks = (c.tiles + block_tiles - 1) / block_tiles;
    const int64_t rows = p->rows < LNT_QROWS_BLOCK ? p->rows : LNT_QROWS_BLOCK;
    const int64_t stored = rows * LNT_QPANEL * p->panels, work = stored * p->row_bytes;
    const int64_t wanted = work / LNT_QITEM_WORK + 1, shared = k->threads > 1 ? k->threads : 0;
    c.groups = (p->panels + p->kernels->panels - 1) / p->kernels->panels;
    c.parts = c.blocks * p->products >= SHARES * shared ? 1 : wanted < c.groups ? wanted : c.groups;
    c.rows_outside = k->threads > 1 && p->epilogue_columns > 0;
    const int64_t item_work = (work + stored * LNT_QSTORE_WORK) / c.parts;
    return lnt_parallel(k, p->products * c.blocks * c.parts, 1 + LNT_QITEM_WORK / (item_work + 1), run_items,
                        &c);
}
