/* cells.c — which types the level's table converts, and which plain loops do. */
#include "ops/vectorize.h"

#include "ops/cells.h"

#include "ops/element.h"

void lnt_cells_to_float(const lnt_cells *c, lnt_dtype from, const void *src, float *dst, int64_t n)
{
    switch (from) {
    case LNT_FLOAT16: c->load[LNT_CELL_F16](dst, src, 1, n); return;
    case LNT_BFLOAT16: c->load[LNT_CELL_BF16](dst, src, 1, n); return;
    case LNT_UINT8: c->load[LNT_CELL_U8](dst, src, 1, n); return;
    case LNT_INT8: c->load[LNT_CELL_I8](dst, src, 1, n); return;
    case LNT_UINT16: c->load[LNT_CELL_U16](dst, src, 1, n); return;
    case LNT_INT16: c->load[LNT_CELL_I16](dst, src, 1, n); return;
    case LNT_INT32: c->load[LNT_CELL_I32](dst, src, 1, n); return;
    default: lnt_elements_to_float(from, src, dst, n); return;
    }
}

/* Integers of low to high, which the table alone would not saturate. */
static void store_within(const lnt_cells *c, lnt_cell cell, float low, float high, const float *src,
                         uint8_t *dst, int64_t n)
{
    enum { BLOCK = 256 };
    const int64_t size = cell == LNT_CELL_U8 || cell == LNT_CELL_I8 ? 1 : 2;
    for (float inside[BLOCK]; n > 0; n -= BLOCK, src += BLOCK, dst += BLOCK * size) {
        const int64_t count = n < BLOCK ? n : BLOCK;
        for (int64_t i = 0; i < count; i++) {
            const float above = src[i] > low ? src[i] : low, within = above < high ? above : high;
            inside[i] = src[i] == src[i] ? within : 0;
        }
        c->store[cell](inside, dst, 1, count);
    }
}

void lnt_cells_from_float(const lnt_cells *c, lnt_dtype to, const float *src, void *dst, int64_t n)
{
    switch (to) {
    case LNT_FLOAT16: c->store[LNT_CELL_F16](src, dst, 1, n); return;
    case LNT_BFLOAT16: c->store[LNT_CELL_BF16](src, dst, 1, n); return;
    case LNT_UINT8: store_within(c, LNT_CELL_U8, 0, UINT8_MAX, src, dst, n); return;
    case LNT_INT8: store_within(c, LNT_CELL_I8, INT8_MIN, INT8_MAX, src, dst, n); return;
    case LNT_UINT16: store_within(c, LNT_CELL_U16, 0, UINT16_MAX, src, dst, n); return;
    case LNT_INT16: store_within(c, LNT_CELL_I16, INT16_MIN, INT16_MAX, src, dst, n); return;
    default: lnt_elements_from_float(to, src, dst, n); return;
    }
}

void lnt_cells_round(float *x, int64_t n)
{
    const float ulp_of_one = 0x1.8p23f;
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] + ulp_of_one) - ulp_of_one;
}
