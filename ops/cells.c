/* cells.c — which types the level's table converts, and which plain loops do. */
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

void lnt_cells_from_float(const lnt_cells *c, lnt_dtype to, const float *src, void *dst, int64_t n)
{
    switch (to) { /* integers saturate here, but not in the table */
    case LNT_FLOAT16: c->store[LNT_CELL_F16](src, dst, 1, n); return;
    case LNT_BFLOAT16: c->store[LNT_CELL_BF16](src, dst, 1, n); return;
    default: lnt_elements_from_float(to, src, dst, n); return;
    }
}
