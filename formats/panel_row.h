/* panel_row.h — rows of panels (formats/packed.h), for those that pack them. */
#ifndef LNT_FORMATS_PANEL_ROW_H
#define LNT_FORMATS_PANEL_ROW_H

#include "formats/packed.h"

#include <string.h>

/* A row of a panel, whose first `columns` elements are contiguous. Quad by quad: a memcpy of all of it is a
 * slow one where short code is asked for, and a call elsewhere. The last quad ends with the row. */
static inline void lnt_copy_panel_row(const float *src, size_t columns, float *dst)
{
    enum { QUAD = 4 * sizeof(float) };
    size_t n = 0;
    _Pragma("GCC unroll 4") for (unsigned i = 0; i < LNT_PANEL; i += 4) memset(dst + i, 0, QUAD);
    for (; n + 4 <= columns; n += 4)
        memcpy(dst + n, src + n, QUAD);
    if (n > 0 && n < columns)
        memcpy(dst + columns - 4, src + columns - 4, QUAD);
    if (n > 0)
        return;
    if (columns & 2)
        memcpy(dst, src, 2 * sizeof *dst);
    if (columns & 1)
        dst[columns - 1] = src[columns - 1];
}

#endif
