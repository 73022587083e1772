/* gemm_driver.c — a product cut into blocks of rows and columns, each computed by one thread.
 *
 *   block of C (row_block x column_block)
 *     for each block of K                  partial sums wait in C
 *       for a few panels of B              stay in the first-level cache; made there if they are not of floats, or in
 *                                          ONNX order
 *         for each tile of rows            the level's tile_rows or fewer, evenly cut; tall and narrow
 *                                          tiles (lnt_gemm_has_whole_tiles) whole, and a rest
 *           tile kernel
 *     epilogue over the block, still in cache */
#include "ops/gemm/gemm_driver.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/panel_row.h"
#include "ops/half_kernels.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

#include <math.h>
#include <string.h>

static int64_t at_least(int64_t x, int64_t low)
{
    return x < low ? low : x;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Or are halves multiplied as they are? */
static bool reads_floats(const lnt_gemm_plan *p)
{
    return p->kernels->element == sizeof(float);
}

/* Has B to be made floats: unless it is those, the rows are one, or tiles widen it themselves? That pays for few rows,
 * where little of the last part of the columns is left empty and sums are long enough to begin and end in memory. */
static bool widens(const lnt_gemm_plan *p)
{
    const int64_t part = (int64_t)p->kernels->tile_panels * LNT_PANEL, columns = (int64_t)p->columns;
    const bool late = LNT_HAS_WIDENING_TILES && p->kernels->widening && p->b_form == LNT_B_F16 &&
                      p->rows <= 2 * (int64_t)p->kernels->tile_rows &&
                      8 * columns >= 7 * part * divide_up(columns, part) &&
                      p->taps * p->depth >= LNT_HALF_DEPTH_MIN;
    return lnt_b_is_half(p->b_form) && reads_floats(p) && p->rows > 1 && !late;
}

/* Length of K that is done at a time. What is widened for a tile or two is read from the first-level cache. */
static int64_t block_of_depth(const lnt_gemm_plan *p)
{
    const int64_t block = p->kernels->depth_block, panels = divide_up((int64_t)p->columns, LNT_PANEL),
                  line = LNT_PANEL * (int64_t)sizeof(float) * lnt_least(panels, p->kernels->tile_panels);
    return p->widens && p->rows <= 2 * p->kernels->tile_rows ? lnt_least(block, LNT_WIDENED_BYTES / line)
                                                             : block;
}

static void plan_depth(lnt_gemm_plan *p)
{
    const int64_t tile = p->kernels->tile_rows, block = block_of_depth(p);
    const int64_t depth = (int64_t)p->depth, taps = (int64_t)p->taps;
    p->depth_parts = p->tap_blocks = 1;
    if (p->narrow || (p->rows <= tile && !p->widens) || depth * taps <= block + block / 2)
        return; /* nothing would be used again, or everything stays anyway */
    if (depth > block)
        p->depth_parts = (size_t)divide_up(depth, block);
    p->tap_blocks = (size_t)(depth > block ? taps : divide_up(taps, at_least(block / at_least(depth, 1), 1)));
}

/* Elements a multiple of 4 KB apart share a set of the first-level cache, which holds 8 or 12 of
 * them. Rows that are a large power of two long would not stay there side by side. */
bool lnt_rows_collide(const lnt_gemm_kernels *k, int64_t row_step, int64_t rows, int64_t columns)
{
    enum { PERIOD = 4096, WAYS = 6 };
    const int64_t bytes = row_step * (int64_t)k->element, step = bytes & -bytes;
    const int64_t most = lnt_least(rows, columns <= LNT_TALL_COLUMNS ? k->tall_rows : k->tile_rows);
    const bool halves = most > k->tile_rows && most < k->tall_rows; /* tall tiles of fewer rows go in two */
    const int64_t together = halves ? divide_up(most, 2) : most;
    return step > 0 && together * lnt_least(step, PERIOD) > WAYS * PERIOD;
}

/* Of the longest block of K in the panels that are used at once, those that exist. */
static size_t widened_floats(const lnt_gemm_plan *p)
{
    const int64_t taps = divide_up((int64_t)p->taps, (int64_t)p->tap_blocks);
    const int64_t depth = divide_up((int64_t)p->depth, (int64_t)p->depth_parts);
    const int64_t panels =
        p->widens ? lnt_least((int64_t)p->panels_at_once, divide_up((int64_t)p->columns, LNT_PANEL)) : 1;
    return (size_t)(panels * taps * depth) * LNT_PANEL;
}

/* Of a matrix, whose rows are too short to push each other out of the cache; so many that each block has a tile's, and
 * that those computed twice for whole tiles are a few of them, or little each. */
static bool is_thin(const lnt_gemm_plan *p)
{
    const int64_t twice = -p->rows & (LNT_THIN_ROWS - 1);
    return p->kernels->thin && p->a_offset && !p->c_row && !p->row_bias && p->rows >= 2 * LNT_THIN_ROWS &&
           p->depth <= LNT_THIN_DEPTH && (p->columns <= LNT_PANEL || twice * 16 <= p->rows);
}

/* Are few columns laid out one by one? Thin tiles are sooner done than sums along K, but for one or two of them or a
 * block of four that are not short. */
static bool is_narrow(const lnt_gemm_plan *p)
{
    const bool few = p->columns <= 2 || p->columns == 4;
    return !(p->thin && (p->depth <= LNT_THIN_DEPTH / 2 || !few)) && p->rows >= LNT_NARROW_ROWS &&
           (p->packs || p->b_row == LNT_PANEL) && !p->packs_rest && !(LNT_HAS_PLAIN_CONV && p->row_bias) &&
           lnt_is_narrow(p->kernels, p->rows, (int64_t)p->columns, (int64_t)p->taps, (int64_t)p->depth);
}

void lnt_gemm_plan_blocks(lnt_gemm_plan *p)
{
    LNT_ASSERT(p->b_form == LNT_B_F32 || p->b_row == LNT_PANEL);
    LNT_ASSERT(p->products >= 0 && p->rows >= 0 && (p->b_row > 0 || !p->columns));
    LNT_ASSERT(p->kernels->tile_rows > 0 && p->kernels->tall_rows <= LNT_TILE_ROWS_MAX);
    p->thin = LNT_HAS_THIN_TILES && is_thin(p);
    p->narrow = is_narrow(p);
    p->thin &= !p->narrow;
    p->tile_rows = p->columns <= LNT_TALL_COLUMNS ? p->kernels->tall_rows : p->kernels->tile_rows;
    if (p->narrow)
        p->tile_rows = LNT_NARROW_ROWS;
    p->widens = !p->narrow && (p->packs || widens(p));
    p->gathers_all = !p->narrow && lnt_rows_collide(p->kernels, p->row_step, p->rows, (int64_t)p->columns);
    p->gathers |= p->gathers_all || p->a_column;
    const int64_t tile = p->tile_rows, K = (int64_t)(p->taps * p->depth);
    LNT_ASSERT(!(p->thin || p->a_column) || !p->gathers_all);
    plan_depth(p);
    const int64_t part = divide_up(K, (int64_t)(p->tap_blocks * p->depth_parts));
    const int64_t together = p->kernels->tile_panels,
                  group_bytes = at_least(part, 1) * LNT_PANEL * (int64_t)p->kernels->element * together;
    p->panels_at_once = (size_t)(at_least(LNT_PANEL_BYTES / group_bytes, 1) * together);

    const int64_t block_rows = LNT_BLOCK_ROWS / tile * tile;
    p->row_blocks = at_least(divide_up(p->rows, block_rows), 1);
    const double rows = fmax((double)p->rows / (double)p->row_blocks, 1);
    const double column_work = (double)at_least(K, 1) * rows;
    const double total = column_work * (double)p->columns * (double)p->row_blocks * (double)p->products;
    const double work = fmin(fmax(total / LNT_ITEMS_WANTED, LNT_ITEM_WORK_MIN), LNT_ITEM_WORK_MAX);
    int64_t columns = (int64_t)fmin(ceil(work / column_work), (double)p->columns);
    columns = at_least(columns, p->gathers || p->rows > LNT_WIDE_ROWS ? LNT_WIDE_COLUMNS : LNT_PANEL);
    const int64_t panels = at_least(divide_up((int64_t)p->columns, LNT_PANEL), 1);
    const int64_t panels_in_block = divide_up(columns, LNT_PANEL * together) * together;
    p->column_blocks = divide_up(panels, panels_in_block);
    p->fetches_rows = (double)p->rows * (double)p->row_step > LNT_FAR_FLOATS && p->depth_parts == 1;
    p->columns_outside = (int64_t)p->columns > p->rows && !p->a_column;
    p->work = total * fmax(1, LNT_FEW_ROWS / rows) * fmax(1, LNT_FEW_COLUMNS / fmax((double)p->columns, 1));
    size_t floats = p->narrow ? p->columns * (size_t)K : 0;
    if (p->gathers)
        floats += (size_t)lnt_least(p->rows, block_rows + tile) * (size_t)(part + (int64_t)p->depth);
    p->in_place = p->widens ? 0 : p->packs_rest ? p->columns / LNT_PANEL * LNT_PANEL : p->columns;
    p->widened = p->in_place < p->columns ? widened_floats(p) : 0;
    if (LNT_HAS_PLAIN_CONV && p->row_bias)
        floats += LNT_BLOCK_ROWS * LNT_BIAS_COLUMNS;
    p->gather_bytes = lnt_round_up((p->widened + floats) * p->kernels->element, LNT_ALIGN);
}

/* One block of C while it is being computed. */
typedef struct block {
    const lnt_gemm_call *call;
    int64_t product, row;
    const float
        *turned;      /* where in a turned A the rows begin that are in the scratch memory; NULL: none are */
    int64_t laid_out; /* the product whose few columns of B are in the scratch memory; -1: none */
    unsigned tiles, rows;
    unsigned tile_rows, rows_left; /* the first rows_left tiles have a row more than the others */
    unsigned taken;                /* rows that the last tile has of the one before */
    size_t column, columns;
    lnt_row_set set[LNT_BLOCK_TILES];
} block;

static unsigned tile_begin(const block *b, unsigned tile)
{
    const unsigned at = b->tile_rows * tile + (b->rows_left < tile ? b->rows_left : tile) -
                        (tile + 1 == b->tiles ? b->taken : 0);
    return at < b->rows ? at : b->rows;
}

/* Elements [k_begin, k_end) of K: one tap's part, or whole taps. */
typedef struct depth_range {
    size_t tap, taps, first, depth;
    bool begins, ends; /* with the first, the last element of K */
    const void *b;     /* its first element of column 0, */
    lnt_b_form form;   /* one of these */
} depth_range;

static size_t depth_blocks(const lnt_gemm_plan *p)
{
    return p->tap_blocks * p->depth_parts;
}

/* Of the panels; where they are laid out otherwise, b is the caller's to set. */
static depth_range depth_block(const block *b, size_t i)
{
    const lnt_gemm_plan *p = b->call->plan;
    const size_t tap_block = p->depth_parts == 1 ? i : i / p->depth_parts,
                 part = i - tap_block * p->depth_parts;
    depth_range r;
    r.tap = (size_t)lnt_cut((int64_t)p->taps, (int64_t)p->tap_blocks, (int64_t)tap_block);
    r.taps = (size_t)lnt_cut((int64_t)p->taps, (int64_t)p->tap_blocks, (int64_t)tap_block + 1) - r.tap;
    r.first = (size_t)lnt_cut((int64_t)p->depth, (int64_t)p->depth_parts, (int64_t)part);
    r.depth = (size_t)lnt_cut((int64_t)p->depth, (int64_t)p->depth_parts, (int64_t)part + 1) - r.first;
    r.begins = tap_block == 0 && part == 0;
    r.ends = tap_block + 1 == p->tap_blocks && part + 1 == p->depth_parts;
    r.form = p->b_form;
    r.b =
        lnt_b_at(r.form, b->call->b, b->call->b_offset[b->product] + (r.tap * p->depth + r.first) * p->b_row);
    return r;
}

/* Who says where they begin; trimmed libraries may have none of these. */
enum { HAS_MATRICES = LNT_HAS_MATRICES || LNT_HAS_PLAIN_CONV || LNT_HAS_WinogradConv };

/* Are a block's rows one tile? Not where each adds a bias of its own, or what is in C. */
static bool is_one_tile(const lnt_gemm_call *call)
{
    return LNT_HAS_THIN_TILES && call->plan->thin && !(call->plan->row_bias && call->bias) &&
           (!call->residual || call->residual + call->c_first != call->c);
}

/* Rows of a turned A, for the range r of K, from a few lines at a time: more are often so far apart that they push each
 * other out of the cache. Those of all K are the next columns', too. */
static const float *turned_rows(const lnt_kernel *k, block *b, const depth_range *r, float *to)
{
    const lnt_gemm_plan *p = b->call->plan;
    enum { LINES = 8 };
    const size_t element = sizeof *to, column = p->a_column;
    const float *from = b->call->a + p->a_offset[b->product] + r->first * column + (size_t)b->row;
    LNT_ASSERT(r->depth >= LINES);
    for (size_t i = 0; i < r->depth && (b->turned != from || depth_blocks(p) > 1); i += LINES) {
        const size_t first = i + LINES < r->depth ? i : r->depth - LINES;
        k->kernels->turn((char *)(to + first), p->row_step * (int64_t)element,
                         (const char *)(from + first * column), (int64_t)(column * element), b->rows, LINES);
    }
    b->turned = from;
    return to;
}

/* Of a matrix, without the callback: short sums take no longer than it. */
static void find_even_rows(const lnt_kernel *k, block *b, const depth_range *r, float *gather)
{
    const lnt_gemm_call *call = b->call;
    const lnt_gemm_plan *p = call->plan;
    const size_t element = p->kernels->element;
    const int64_t c_row = (int64_t)(p->c_row ? p->c_row : p->columns);
    const int64_t out = b->product * (p->c_row ? (int64_t)p->c_product : p->rows * c_row) + b->row * c_row,
                  step = p->row_step * (int64_t)element, c_step = c_row * (int64_t)element;
    const int64_t a_first = (int64_t)(p->a_offset[b->product] + r->first) + b->row * p->row_step;
    const bool turned = !LNT_TRIMMED && p->a_column;
    const float *a = turned ? turned_rows(k, b, r, gather) : lnt_moved(call->a, a_first, element),
                *residual = NULL;
    float *c = lnt_moved(call->c, out - call->c_first, element);
    if (call->residual)
        residual = lnt_moved(call->residual, out, element);
    const unsigned tiles = is_one_tile(call) ? 1 : b->tiles;
    for (unsigned t = 0, first = 0, next; t < tiles; t++, first = next) {
        lnt_row_set *set = &b->set[t];
        next = tile_begin(b, t + 1);
        set->tap = 0;
        set->tap_end = p->taps;
        set->gathered = turned;
        for (unsigned i = 0; i < next - first; i++) {
            set->a[i] = a;
            set->c[i] = c;
            set->residual[i] = residual;
            a = lnt_moved(a, step, 1);
            c = lnt_moved(c, c_step, 1);
            residual = residual ? lnt_moved(residual, c_step, 1) : NULL;
        }
    }
}

static void find_rows(const lnt_kernel *k, block *b, const depth_range *r, float *gather)
{
    const lnt_gemm_call *call = b->call;
    if (HAS_MATRICES && call->plan->a_offset && !call->plan->gathers_all) {
        find_even_rows(k, b, r, gather);
        return;
    }
    const size_t begin = r->tap * call->plan->depth + r->first;
    const size_t end = begin + r->taps * r->depth, element = call->plan->kernels->element;
    for (unsigned t = 0, first = 0; t < b->tiles; t++) {
        lnt_row_set *set = &b->set[t];
        const unsigned next = tile_begin(b, t + 1), n = next - first;
        set->tap = 0;
        set->tap_end = call->plan->taps;
        call->plan->rows_of(call, b->product, b->row + first, n, begin, end, gather, set);
        for (unsigned i = 0; i < n; i++)
            set->c[i] = lnt_moved(call->c, set->out[i] - call->c_first, element);
        for (unsigned i = 0; call->residual && i < n; i++)
            set->residual[i] = lnt_moved(call->residual, set->out[i], element);
        for (unsigned i = 0; r->first && !set->gathered && i < n; i++)
            set->a[i] = lnt_moved(set->a[i], (int64_t)r->first, element);
        if (set->gathered)
            gather = lnt_moved(gather, (int64_t)(n * (end - begin)), element);
        first = next;
    }
}

/* What all tiles of a block have in common over one range of K. */
static lnt_tile common_tile(const block *b, const depth_range *r)
{
    const lnt_gemm_call *call = b->call;
    const lnt_gemm_plan *p = call->plan;
    return (lnt_tile){
        .b_row = p->b_row,
        .b_panel = p->b_panel,
        .bias = call->bias && r->ends && !(LNT_HAS_PLAIN_CONV && p->row_bias)
                    ? call->bias + (size_t)b->product * call->bias_product
                    : NULL,
        .scale = r->ends ? p->scale : 1.0f,
        .low = r->ends ? p->low : -INFINITY,
        .high = r->ends ? p->high : INFINITY,
        .accumulate = !r->begins,
        .b_is_far = p->taps * p->depth * p->columns > LNT_FAR_FLOATS * (!lnt_b_is_half(p->b_form) ? 1 : 2),
    };
}

static void place_rows(const lnt_row_set *set, lnt_tile *tile)
{
    tile->a = set->a;
    tile->c = set->c;
    tile->residual = tile->residual ? set->residual : NULL;
}

/* Is a tile of one set that of the other but for its rows? */
static bool are_alike(const lnt_row_set *one, const lnt_row_set *other)
{
    return one->tap == other->tap && one->tap_end == other->tap_end && one->gathered == other->gathered;
}

/* Makes *tile one of rows times columns [first, end). */
static void place_tile(const block *b, unsigned t, const depth_range *r, lnt_tile *tile, size_t first,
                       size_t end)
{
    static const ptrdiff_t no_offset = 0;
    const lnt_gemm_plan *p = b->call->plan;
    const lnt_row_set *set = &b->set[t];
    const size_t tap = set->tap > r->tap ? set->tap : r->tap, last = r->tap + r->taps,
                 tap_end = set->tap_end < last ? set->tap_end : last;
    const size_t taps = tap < tap_end && r->depth ? tap_end - tap : 0; /* none of nothing, however many */
    const void *from =
        lnt_b_at(r->form, r->b, (taps ? tap - r->tap : 0) * p->depth * (p->narrow ? 1 : p->b_row));
    if (!lnt_b_is_half(r->form))
        tile->b = from;
    else
        tile->b_half = from;
    tile->residual = b->call->residual && r->ends ? set->residual : NULL;
    place_rows(set, tile);
    tile->tap_offset = set->gathered ? &no_offset : p->tap_offset + tap;
    tile->taps = set->gathered ? 1 : taps;
    tile->depth = set->gathered ? taps * r->depth : r->depth;
    tile->before = tap * p->depth + r->first;
    tile->first = first;
    tile->columns = end;
}

/* The columns of B one by one, at to. */
static void lay_out_columns(const lnt_kernel *k, const block *b, float *to)
{
    enum { LINES = 32 };
    const lnt_gemm_plan *p = b->call->plan;
    const void *panel = lnt_b_at(p->b_form, b->call->b, b->call->b_offset[b->product]);
    const int64_t K = (int64_t)(p->taps * p->depth), columns = (int64_t)p->columns,
                  step = K * (int64_t)sizeof *to, line = (int64_t)(p->b_row * sizeof *to);
    if (LNT_TRIMMED && !lnt_b_is_half(p->b_form)) { /* in a few bytes */
        k->kernels->turn((char *)to, step, panel, line, columns, K);
        return;
    }
    float widened[LINES * LNT_PANEL];
    for (int64_t at = 0; at < K; at += LINES) {
        const int64_t n = lnt_least(K - at, LINES);
        const void *lines = lnt_b_at(p->b_form, panel, (size_t)at * p->b_row);
        if (lnt_b_is_half(p->b_form)) {
            p->kernels->widen[p->b_form](lines, widened, (size_t)n * LNT_PANEL);
            lines = widened;
        }
        k->kernels->turn((char *)(to + at), step, lines, line, columns, n);
    }
}

/* scratch: room for the columns of B, laid out, and to gather rows. */
static void run_narrow(const lnt_kernel *k, block *b, float *scratch)
{
    const lnt_gemm_plan *p = b->call->plan;
    depth_range r = depth_block(b, 0);
    lnt_tile tile = common_tile(b, &r);
    const bool lies = !LNT_TRIMMED && p->b_row == 1; /* columns of B are one behind another already */
    if (b->laid_out != b->product && !lies)
        lay_out_columns(k, b, scratch);
    b->laid_out = b->product;
    r.b = lies ? lnt_b_at(LNT_B_F32, b->call->b, b->call->b_offset[b->product]) : scratch;
    r.form = LNT_B_F32;
    tile.b_panel = p->taps * p->depth;
    find_rows(k, b, &r, scratch + p->columns * tile.b_panel);
    for (unsigned t = 0; t < b->tiles; t++) {
        place_tile(b, t, &r, &tile, 0, p->columns);
        p->kernels->narrow(&tile, tile_begin(b, t + 1) - tile_begin(b, t));
    }
}

/* How many columns tiles take before the next rows': what panels the first-level cache holds, so that these rows
 * find them there. */
static size_t columns_at_once(const block *b)
{
    const lnt_gemm_plan *p = b->call->plan;
    const bool all = b->tiles == 1 && !p->kernels->fetches && !p->widens;
    return all ? b->columns : p->panels_at_once * LNT_PANEL;
}

/* What is read of B after block i of K of the columns before n, or NULL. */
static const void *read_next(const block *b, size_t i, size_t n)
{
    const lnt_gemm_plan *p = b->call->plan;
    if (n >= b->column + b->columns && i + 1 < depth_blocks(p)) {
        n = b->column;
        i++;
    } else if (n >= b->column + b->columns)
        i = 0; /* of the next item */
    return n < p->columns && (p->b_row == LNT_PANEL || (p->packs && p->b_column == 1))
               ? lnt_b_at(p->b_form, depth_block(b, i).b, n / LNT_PANEL * p->b_panel)
               : NULL;
}

/* Lets a tile fetch so many elements at from while it is computed, as many as its multiply-adds leave time for. */
static void fetch(const lnt_gemm_plan *p, lnt_tile *tile, const float *from, size_t elements)
{
    enum { LINES_MAX = 8 };
    const int64_t wanted = (int64_t)(elements * p->kernels->element / sizeof(float)),
                  columns = (int64_t)(tile->columns - tile->first);
    const int64_t parts = divide_up(columns, (int64_t)p->kernels->tile_panels * LNT_PANEL);
    const int64_t steps = parts * (int64_t)(tile->taps * (tile->depth / LNT_FETCH_STEP));
    const int64_t lines = steps ? lnt_least(divide_up(wanted, steps * LNT_PANEL), LINES_MAX) : 0;
    tile->ahead = from;
    tile->ahead_lines = (unsigned)lines;
    tile->ahead_step = lines ? (size_t)lnt_least(divide_up(wanted, steps * lines), LNT_PANEL) : 0;
}

/* The panels at next are fetched by all tiles of a block together: this is the share of tile t, as large as that of
 * tile 0. */
static void fetch_panels(const block *b, unsigned t, const depth_range *r, const void *next, lnt_tile *tile)
{
    const lnt_gemm_plan *p = b->call->plan;
    const size_t rows = r->taps * r->depth, lines = p->panels_at_once * rows,
                 share = (size_t)divide_up((int64_t)lines, b->tiles), begin = t * share;
    const bool whole = p->b_panel == rows * LNT_PANEL; /* panels are one behind another */
    if (begin >= lines)
        tile->ahead_lines = 0;
    else if (t == 0)
        fetch(p, tile, next, share * (!lnt_b_is_half(p->b_form) ? LNT_PANEL : LNT_PANEL / 2));
    else
        tile->ahead =
            lnt_b_at(p->b_form, next,
                     whole ? begin * LNT_PANEL : begin / rows * p->b_panel + begin % rows * LNT_PANEL);
}

/* The same where panels are still to be made of rows that lie apart: a tile fetches a line of each. */
static void fetch_lines(const lnt_gemm_plan *p, unsigned t, const void *next, lnt_tile *tile)
{
    tile->ahead = lnt_moved(next, t * LNT_PANEL, sizeof(float));
    tile->ahead_step = p->b_row;
    tile->ahead_lines = t <= p->panels_at_once ? LNT_FETCH_STEP : 0;
}

/* The rows behind those of tile t, as far as it has not read them itself for its last tap. */
static void fetch_rows(const block *b, unsigned t, lnt_tile *tile)
{
    const lnt_gemm_plan *p = b->call->plan;
    const int64_t rows = (tile_begin(b, t + 1) - tile_begin(b, t)) * p->row_step;
    fetch(p, tile, lnt_moved(tile->a[0], tile->tap_offset[tile->taps - 1] + rows, p->kernels->element),
          (size_t)rows);
}

/* Lets tile t fetch the rows behind its own or its share of the panels at next, which are read after these. */
static void fetch_ahead(const block *b, unsigned t, const depth_range *r, bool first, const void *next,
                        lnt_tile *tile)
{
    if (b->call->plan->fetches_rows && first && !b->set[t].gathered && tile->taps)
        fetch_rows(b, t, tile);
    else if (next && b->call->plan->packs)
        fetch_lines(b->call->plan, t, next, tile);
    else if (next)
        fetch_panels(b, t, r, next, tile);
    else
        tile->ahead_lines = 0;
}

/* Panels of `columns` columns, of which the last may have fewer than it has room for, from `rows` rows. Each row is
 * read from end to end: those of a large matrix lie in a page each. */
static void pack_panels(const lnt_kernel *k, size_t b_row, size_t b_column, const float *from, size_t rows,
                        size_t columns, float *to)
{
    enum { LINE = LNT_PANEL * sizeof(float) };
    const size_t panel = rows * LNT_PANEL, whole = columns / LNT_PANEL, rest = columns % LNT_PANEL;
    if (b_column != 1) {
        if (rest)
            memset(to + whole * panel, 0, rows * LINE);
        for (size_t j = 0; j < columns; j += LNT_PANEL, to += panel)
            k->kernels->turn((char *)to, LINE, (const char *)(from + j * b_column),
                             (int64_t)(b_column * sizeof *from), (int64_t)rows,
                             lnt_least((int64_t)(columns - j), LNT_PANEL));
        return;
    }
    for (size_t i = 0; i < rows; i++, from += b_row, to += LNT_PANEL) {
        for (size_t j = 0; j < whole; j++)
            memcpy(to + j * panel, from + j * LNT_PANEL, LINE);
        if (rest)
            lnt_copy_panel_row(from + whole * LNT_PANEL, rest, to + whole * panel);
    }
}

/* Makes panels of floats from column n on, as many as are used at once, for the range r of K. */
static void make_panels(const lnt_kernel *k, const block *b, const depth_range *from, size_t n, size_t columns,
                        float *to, depth_range *r, lnt_tile *tile)
{
    const lnt_gemm_plan *p = b->call->plan;
    const size_t panel = from->taps * from->depth * LNT_PANEL;
    *r = *from;
    r->b = to;
    r->form = LNT_B_F32;
    tile->b_column = n;
    tile->b_row = LNT_PANEL;
    tile->b_panel = panel;
    if (!LNT_TRIMMED && (p->packs || p->packs_rest)) {
        pack_panels(k, p->b_row, p->b_column, (const float *)from->b + n * p->b_column, from->depth, columns,
                    to);
        return;
    }
    for (size_t i = n / LNT_PANEL; i < (n + columns + LNT_PANEL - 1) / LNT_PANEL; i++, to += panel)
        p->kernels->widen[p->b_form](lnt_b_at(p->b_form, from->b, i * p->b_panel), to, panel);
}

static void run_tile(const lnt_gemm_plan *p, const lnt_tile *t, unsigned rows)
{
    if (!lnt_b_is_half(p->b_form) || p->widens || !reads_floats(p))
        p->kernels->tile[rows](t);
    else if (LNT_HAS_WIDENING_TILES && p->rows > 1)
        p->kernels->widening(t, rows);
    else
        p->kernels->row[p->b_form](t);
}

/* Lays down the bias of the block's rows, each in as many columns as tiles take before the next rows': each is added to
 * the zeros that are in the first line until the end. */
static void lay_out_bias(const lnt_kernel *k, const block *b, float *lines)
{
    const lnt_gemm_call *call = b->call;
    const float *bias = call->bias + (size_t)(b->product * call->plan->rows + b->row) % call->bias_product;
    memset(lines, 0, LNT_BIAS_COLUMNS * sizeof *lines);
    for (unsigned i = b->rows; i-- > 0;)
        k->kernels->row->shift_scale(lines, lines + i * LNT_BIAS_COLUMNS, LNT_BIAS_COLUMNS, 0, 1, bias[i]);
}

/* Rows of tile t find it where there may be a residual; columns from `first` on. */
static void place_bias(block *b, unsigned t, size_t first, float *lines, lnt_tile *tile)
{
    const unsigned begin = tile_begin(b, t), rows = tile_begin(b, t + 1) - begin;
    for (unsigned i = 0; i < rows; i++)
        b->set[t].residual[i] =
            lnt_moved(lines, (int64_t)((begin + i) * LNT_BIAS_COLUMNS) - (int64_t)first, sizeof *lines);
    tile->residual = b->set[t].residual;
}

static void run_block(const lnt_kernel *k, block *b, float *scratch)
{
    const lnt_gemm_plan *p = b->call->plan;
    if (p->narrow) {
        run_narrow(k, b, scratch);
        return;
    }
    const size_t fit = columns_at_once(b), end = b->column + b->columns;
    float *bias = LNT_HAS_PLAIN_CONV && p->row_bias && b->call->bias ? scratch : NULL;
    const size_t at_once = bias ? (size_t)lnt_least((int64_t)fit, LNT_BIAS_COLUMNS) : fit;
    if (bias) {
        lay_out_bias(k, b, bias);
        scratch += LNT_BLOCK_ROWS * LNT_BIAS_COLUMNS;
    }
    for (size_t i = 0; i < depth_blocks(p); i++) {
        const depth_range r = depth_block(b, i);
        depth_range made;
        const depth_range *from = &r;
        lnt_tile tile = common_tile(b, &r);
        find_rows(k, b, &r, scratch + p->widened);
        for (size_t n = b->column, stop; n < end; n = stop) {
            const size_t limit = n < p->in_place && p->in_place < end ? p->in_place : end;
            stop = limit - n < at_once ? limit : n + at_once;
            const void *next = p->kernels->fetches ? read_next(b, i, stop) : NULL;
            if ((LNT_HAS_HALVES || !LNT_TRIMMED) && n >= p->in_place) {
                make_panels(k, b, &r, n, stop - n, scratch, &made, &tile);
                from = &made;
            }
            if (is_one_tile(b->call)) {
                place_tile(b, 0, from, &tile, n, stop);
                p->kernels->thin(&tile, b->rows, (size_t)p->row_step, p->columns);
                continue;
            }
            for (unsigned t = 0, first = 0, behind; t < b->tiles; t++, first = behind) {
                behind = tile_begin(b, t + 1);
                if (LNT_TRIMMED || t == 0 || !are_alike(&b->set[t - 1], &b->set[t]))
                    place_tile(b, t, from, &tile, n, stop);
                else
                    place_rows(&b->set[t], &tile);
                if (bias && r.ends)
                    place_bias(b, t, n, bias, &tile);
                if (p->kernels->fetches)
                    fetch_ahead(b, t, &r, n == b->column, next, &tile);
                run_tile(p, &tile, behind - first);
            }
        }
    }
}

static void run_epilogue(lnt_kernel *k, const block *b)
{
    const lnt_gemm_call *call = b->call;
    const lnt_gemm_plan *p = call->plan;
    const int64_t row = b->product * p->epilogue_rows + b->row;
    const int64_t column = b->product * p->epilogue_columns + (int64_t)b->column;
    float *c = lnt_moved(call->c, row * call->ld + column - call->c_first, p->kernels->element);
    lnt_epilogue_run(p->epilogue, k, call->step, c, call->ld, row, b->rows, column, (int64_t)b->columns);
}

/* How the rows and columns of a call are cut, and handed out. */
typedef struct order {
    const lnt_gemm_call *call;
    int64_t row_blocks, column_blocks;
    bool columns_outside;
    bool rows_outside; /* products are columns of the same rows: a thread does all of some rows' */
} order;

/* Where item i of the work lies: of which product, block of rows and of columns. */
static void find_item(const order *o, int64_t i, int64_t *product, int64_t *row, int64_t *column)
{
    const int64_t products = o->call->plan->products;
    if (!LNT_TRIMMED && o->rows_outside) {
        *column = i % o->column_blocks;
        *product = i / o->column_blocks % products;
        *row = i / o->column_blocks / products;
        return;
    }
    const int64_t blocks = o->row_blocks * o->column_blocks, at = i % blocks;
    *product = i / blocks;
    *row = o->columns_outside ? at % o->row_blocks : at / o->column_blocks;
    *column = o->columns_outside ? at / o->row_blocks : at % o->column_blocks;
}

/* The first row of block i of the rows. */
static int64_t row_of_block(const order *o, int64_t i)
{
    const lnt_gemm_plan *p = o->call->plan;
    const int64_t unit = lnt_gemm_has_whole_tiles(p) ? p->tile_rows : 1;
    return i == o->row_blocks ? p->rows : lnt_cut(p->rows / unit, o->row_blocks, i) * unit;
}

/* The first column of block i of n. As planned, tiles of the widest kind make up a block. */
static size_t column_of_block(const lnt_gemm_plan *p, int64_t n, int64_t i)
{
    const int64_t columns = (int64_t)p->columns;
    if (n == 1) /* short sums take little longer than a division */
        return (size_t)(i * columns);
    const int64_t unit = LNT_PANEL * (n == p->column_blocks ? (int64_t)p->kernels->tile_panels : 1);
    return (size_t)lnt_least(lnt_cut(divide_up(columns, unit), n, i) * unit, columns);
}

/* How many rows the last of tall tiles has of the one before, where `rest` are left for it: neither then has 1 to 3
 * rows, or 7, which are 4 and 3, whose sums along K would be split. Nor have tiles that are not tall, so that how many
 * columns there are changes no sum. */
static unsigned taken(unsigned rest)
{
    return rest == 1 ? 4 : rest == 2 || rest == 3 ? 2 : rest == 7 ? 1 : 0;
}

/* Rows [row, end), in tiles: cut as before if they are as many, without a division. */
static void cut_rows(block *b, int64_t row, int64_t end)
{
    const lnt_gemm_plan *p = b->call->plan;
    const bool whole = lnt_gemm_has_whole_tiles(p);
    const unsigned rows = (unsigned)(end - row);
    b->row = row;
    if (b->rows == rows)
        return;
    b->rows = rows;
    b->tiles = (rows + p->tile_rows - 1) / p->tile_rows;
    b->tile_rows = whole ? p->tile_rows : rows / b->tiles;
    b->rows_left = whole ? 0 : rows % b->tiles;
    b->taken = whole && !p->narrow && b->tiles > 1 ? taken(rows % p->tile_rows) : 0;
}

/* Block i of n of the columns, for the block's rows. */
static void run_columns(lnt_kernel *k, block *b, int64_t n, int64_t i, float *gather)
{
    const lnt_gemm_plan *p = b->call->plan;
    b->column = column_of_block(p, n, i);
    b->columns = column_of_block(p, n, i + 1) - b->column;
    run_block(k, b, gather);
    if (p->epilogue)
        run_epilogue(k, b);
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const order *o = arg;
    const lnt_gemm_call *call = o->call;
    const lnt_gemm_plan *p = call->plan;
    float *gather = (float *)(void *)(call->gather + thread * p->gather_bytes);
    block b;
    b.call = call;
    b.laid_out = -1;
    b.rows = 0;
    b.turned = NULL;
    for (int64_t item = begin; item < end; item++) {
        int64_t rows_at, columns_at;
        find_item(o, item, &b.product, &rows_at, &columns_at);
        cut_rows(&b, row_of_block(o, rows_at), row_of_block(o, rows_at + 1));
        run_columns(k, &b, o->column_blocks, columns_at, gather);
    }
    return LNT_OK;
}

/* Threads share the rows of one product, where there are enough, rather than its columns: what one writes it
 * reads itself in the next step. No sum changes: blocks of many rows have no tiles of a few, whose sums along
 * K would be split. Else they share the columns. Each is to have as many blocks as the others. */
static order order_of(const lnt_kernel *k, const lnt_gemm_call *call)
{
    enum {
        MANY_ROWS = 48,
        ROWS = LNT_GEMM_PART,
        TIMES = 8 /* as fast B comes as what another has just written */
    };
    const lnt_gemm_plan *p = call->plan;
    const int64_t threads = k->threads, rows = p->rows / threads;
    const int64_t panels = divide_up((int64_t)p->columns, LNT_PANEL);
    const bool small = (int64_t)(p->columns * p->taps) <= TIMES * p->rows; /* is B */
    order o = {call, p->row_blocks, p->column_blocks, p->columns_outside,
               threads > 1 && p->products > 1 && p->epilogue_columns > 0};
    if (p->products == 1 && rows >= (small ? ROWS : MANY_ROWS)) {
        o.columns_outside &= threads == 1;
        o.row_blocks = divide_up(p->row_blocks, threads) * threads;
    } else if (p->products * o.row_blocks % threads && panels >= threads) {
        o.column_blocks = at_least(p->column_blocks / threads, 1) * threads;
    }
    return o;
}

lnt_status lnt_gemm_run(lnt_kernel *k, const lnt_gemm_call *call)
{
    const lnt_gemm_plan *p = call->plan;
    LNT_ASSERT(p->tile_rows > 0 && (p->depth_parts == 1 || p->tap_blocks == p->taps));
    LNT_ASSERT(p->gather_bytes == 0 || lnt_is_aligned(call->gather, LNT_ALIGN));
    LNT_ASSERT(!p->epilogue || (call->step && call->step->out[0]));
    order o = order_of(k, call);
    const int64_t items = p->products * o.row_blocks * o.column_blocks;
    if (p->rows == 0 || p->columns == 0 || items == 0)
        return LNT_OK;
    if (items == 1 || p->work <= LNT_SHARED_WORK)
        return run_items(k, &o, 0, items, 0);
    const double grain = 2 * LNT_ITEM_WORK_MIN * (double)items / p->work;
    return lnt_parallel(k, items, (int64_t)ceil(grain), run_items, &o);
}

void lnt_gemm_part(lnt_kernel *k, const lnt_gemm_call *call, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_gemm_plan *p = call->plan;
    LNT_ASSERT(begin < end && end <= p->rows);
    LNT_ASSERT(end - begin >= LNT_GEMM_PART || end - begin == p->rows || lnt_gemm_has_parts(p));
    float *gather = (float *)(void *)(call->gather + thread * p->gather_bytes);
    const int64_t blocks = divide_up(end - begin, LNT_BLOCK_ROWS / p->tile_rows * p->tile_rows);
    block b;
    b.call = call;
    b.laid_out = -1;
    b.rows = 0;
    b.turned = NULL;
    for (b.product = 0; b.product < p->products; b.product++)
        for (int64_t i = 0; i < blocks; i++) {
            cut_rows(&b, begin + lnt_cut(end - begin, blocks, i),
                     begin + lnt_cut(end - begin, blocks, i + 1));
            for (int64_t column = 0; column < p->column_blocks; column++)
                run_columns(k, &b, p->column_blocks, column, gather);
        }
}

/* ---- packing at run time ---- */

typedef struct pack_call {
    const lnt_packed *p;
    lnt_dtype type;
    const void *src;
    void *dst;
} pack_call;

/* Rows of a few panels at a time, which are lines side by side: those of one would be a page each. */
static void pack_matrices(const lnt_kernel *k, const pack_call *c, int64_t begin, int64_t end)
{
    enum { TOGETHER = LNT_PACK_PANELS };
    const int64_t K = c->p->K, N = c->p->N, across = divide_up(N, LNT_PANEL);
    const bool turned = c->p->source == LNT_SOURCE_NK;
    const int64_t row = turned ? 1 : N, column = turned ? K : 1;
    const bool bytes = LNT_PACKS_BYTES && lnt_packed_is_int8(c->p);
    const int64_t size = bytes ? 1 : sizeof(float),
                  panel_bytes = (bytes ? (K + 3) / 4 * 4 : K) * LNT_PANEL * size;
    char *const to = c->dst;
    int32_t *const sums = (int32_t *)(void *)(to + (bytes ? lnt_packed_sums_at(c->p) : 0));
    for (int64_t n; K > 0 && begin < end; begin += n) {
        const int64_t panel = begin % across, first = panel * LNT_PANEL;
        n = lnt_least(lnt_least(across - panel, end - begin), TOGETHER);
        const void *from = (const char *)c->src + (begin / across * K * N + first * column) * size;
        void *panels = to + begin * panel_bytes;
        const size_t columns = (size_t)lnt_least(n * LNT_PANEL, N - first);
        if (bytes)
            k->kernels->int8->pack(from, (size_t)N, (size_t)K, columns, c->type == LNT_UINT8 ? 0x80 : 0,
                                   panels, sums + begin * LNT_QPANEL);
        else
            pack_panels(k, (size_t)row, (size_t)column, from, (size_t)K, columns, panels);
    }
}

static lnt_status pack_task(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const pack_call *c = arg;
    const bool bytes = LNT_PACKS_BYTES && c->p->layout == LNT_LAYOUT_PANEL_I8 &&
                       c->p->source == LNT_SOURCE_KN && k->kernels->int8->pack;
    if (bytes || (!LNT_TRIMMED && c->p->layout == LNT_LAYOUT_PANEL_F32 && c->p->source <= LNT_SOURCE_NK))
        pack_matrices(k, c, begin, end);
    else
        lnt_pack_panels(c->p, c->type, c->src, c->dst, (size_t)begin, (size_t)end);
    return LNT_OK;
}

lnt_status lnt_gemm_pack(lnt_kernel *k, const lnt_packed *p, lnt_dtype type, const void *src, void *dst)
{
    LNT_ASSERT(lnt_is_aligned(dst, LNT_ALIGN));
    pack_call c = {p, type, src, dst};
    const int64_t panel = (int64_t)p->K * LNT_PANEL;
    return lnt_parallel(k, (int64_t)lnt_packed_panel_count(p), LNT_ITEM_WORK_MIN / at_least(panel, 1) + 1,
                        pack_task, &c);
}
