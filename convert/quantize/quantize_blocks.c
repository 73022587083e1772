/* quantize_blocks.c — see quantize_blocks.h. */
#include "convert/quantize/quantize_blocks.h"

#include "base/half.h"
#include "base/lnt_assert.h"
#include "convert/graph/edit.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, LARGEST = 15, HALF = 8 };

/* ---- a block ---- */

typedef struct coded {
    float scale;
    double gain; /* the sum of squares less the squared error */
    int zero;
} coded;

static inline int number_of(float w, float inverse, float zero)
{
    return (int)(fminf(fmaxf(w * inverse + zero, 0), LARGEST) + 0.5f);
}

/* The best scale for the numbers that w are by this one, and what it gains. */
static coded fit_scale(const float *w, int64_t n, float scale, int zero)
{
    LNT_ASSERT(n % LANES == 0 && zero >= 0 && zero <= LARGEST);
    const float inverse = 1 / scale, origin = (float)zero;
    float met[LANES] = {0}, squares[LANES] = {0}, product = 0, square = 0;
    for (int64_t i = 0; i < n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float d = (float)(number_of(w[i + k], inverse, origin) - zero);
            met[k] += w[i + k] * d;
            squares[k] += d * d;
        }
    for (int k = 0; k < LANES; k++) {
        product += met[k];
        square += squares[k];
    }
    const double gain = (double)product * (double)product / fmax((double)square, 1);
    return square > 0 ? (coded){product / square, gain, zero} : (coded){scale, 0, zero};
}

/* Clips at less and less of the range. */
static void search_ranges(const float *w, int64_t n, float low, float high, int zero, coded *best)
{
    enum { RANGES = 8, ROUNDS = 2 };
    const float above = zero < LARGEST ? high / (float)(LARGEST - zero) : 0,
                below = zero ? -low / (float)zero : 0;
    const float whole = fmaxf(above, below);
    for (int r = 0; r < RANGES; r++) {
        float scale = whole * (1 - 0.06f * (float)r);
        for (int i = 0; i < ROUNDS && scale > 0 && isfinite(1 / scale); i++) {
            const coded c = fit_scale(w, n, scale, zero);
            if (c.gain > best->gain)
                *best = c;
            scale = c.scale;
        }
    }
}

static coded best_code(const float *w, int64_t n)
{
    float low = 0, high = 0;
    coded best = {0, 0, HALF};
    for (int64_t i = 0; i < n; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
    }
    if (!(high > low))
        return best;
    const int middle = (int)(-low / (high - low) * LARGEST + 0.5f);
    search_ranges(w, n, low, high, HALF, &best);
    for (int zero = middle - 1; zero <= middle + 1; zero++)
        if (zero >= 0 && zero <= LARGEST && zero != HALF)
            search_ranges(w, n, low, high, zero, &best);
    return best;
}

/* ---- a constant ---- */

typedef struct writer {
    const float *from; /* element (k, n) at k * k_step + n * n_step */
    int64_t K, N, k_step, n_step, block, blocks;
    float factor;
    uint8_t *weights, *zeros; /* those of lnt_blocks */
    float *scales, *w;        /* w: a block's */
    bool halves, centered;
} writer;

/* The block's floats, behind K zeros; false: one is not finite. */
static bool take_block(const writer *t, int64_t n, int64_t b)
{
    float bad = 0;
    for (int64_t i = 0; i < t->block; i++) {
        const int64_t k = b * t->block + i;
        t->w[i] = k < t->K ? t->from[k * t->k_step + n * t->n_step] * t->factor : 0;
        bad += t->w[i] * 0;
    }
    return bad == 0;
}

/* As a half, if it is as exact as halves are. */
static float round_scale(writer *t, float scale)
{
    const float half = lnt_f16_to_float(lnt_float_to_f16(scale));
    if (fabsf(half - scale) <= scale * 0x1p-11f)
        return half;
    t->halves = false;
    return scale;
}

static void put_block(writer *t, int64_t n, int64_t b)
{
    const coded c = best_code(t->w, t->block);
    const float scale = round_scale(t, c.scale), inverse = scale > 0 ? 1 / scale : 0;
    uint8_t *to = t->weights + (n * t->blocks + b) * (t->block / 2);
    for (int64_t i = 0; i < t->block; i += 2)
        to[i / 2] = (uint8_t)(number_of(t->w[i], inverse, (float)c.zero) |
                              number_of(t->w[i + 1], inverse, (float)c.zero) << 4);
    t->scales[n * t->blocks + b] = scale;
    t->zeros[n * ((t->blocks + 1) / 2) + b / 2] |= (uint8_t)(c.zero << (b % 2 * 4));
    t->centered &= c.zero == HALF;
}

static bool put_all(writer *t)
{
    for (int64_t b = 0; b < t->blocks; b++)
        for (int64_t n = 0; n < t->N; n++) {
            if (!take_block(t, n, b))
                return false;
            put_block(t, n, b);
        }
    return true;
}

static lnt_status add_constants(lnt_graph *g, const char *name, const writer *t, lnt_blocks *made)
{
    const int64_t weights[] = {t->N, t->blocks, t->block / 2}, scales = t->N * t->blocks,
                  zeros[] = {t->N, (t->blocks + 1) / 2};
    made->weights =
        lnt_graph_add_constant(g, name, LNT_UINT8, 3, weights, t->weights, (size_t)(scales * t->block / 2));
    made->scales = lnt_add_floats(g, name, 1, &scales, t->scales);
    if (!t->centered)
        made->zeros =
            lnt_graph_add_constant(g, name, LNT_UINT8, 2, zeros, t->zeros, (size_t)(zeros[0] * zeros[1]));
    if (made->weights == LNT_NONE || made->scales == LNT_NONE || (!t->centered && made->zeros == LNT_NONE))
        return LNT_E_MEMORY;
    g->value[made->scales].stored_as = t->halves ? LNT_FLOAT16 : 0;
    return LNT_OK;
}

/* Room for what is written, as one allocation. */
static void *make_room(const lnt_graph *g, writer *t)
{
    const size_t blocks = (size_t)(t->N * t->blocks), floats = (blocks + (size_t)t->block) * sizeof(float);
    const size_t weights = blocks * (size_t)t->block / 2, zeros = (size_t)(t->N * ((t->blocks + 1) / 2));
    char *room = lnt_alloc_zero(g->memory.allocator, floats + weights + zeros, 1, g->err);
    if (!room)
        return NULL;
    t->scales = (float *)(void *)room;
    t->w = t->scales + blocks;
    t->weights = (uint8_t *)room + floats;
    t->zeros = t->weights + weights;
    return room;
}

lnt_status lnt_quantize_blocks(lnt_graph *g, const char *name, const lnt_operand *value, bool turned,
                               float factor, int64_t block, lnt_blocks *made)
{
    writer t = {.from = value->data,
                .K = value->dims[turned],
                .N = value->dims[!turned],
                .block = block,
                .factor = factor,
                .halves = true,
                .centered = true};
    LNT_ASSERT(value->rank == 2 && block >= LNT_BLOCK_LEAST && (block & (block - 1)) == 0);
    t.blocks = (t.K + block - 1) / block;
    t.k_step = turned ? 1 : t.N;
    t.n_step = turned ? t.K : 1;
    *made = (lnt_blocks){LNT_NONE, LNT_NONE, LNT_NONE};
    void *room = make_room(g, &t);
    if (!room)
        return LNT_E_MEMORY;
    const lnt_status status = put_all(&t) ? add_constants(g, name, &t, made) : LNT_OK;
    lnt_free(g->memory.allocator, room);
    return status;
}
