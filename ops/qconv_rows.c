/* qconv_rows.c — neighbourhoods of pixels in channels-last images of bytes, and the record of their weights.
 */
#include "ops/qconv.h"

#include <string.h>

bool lnt_qconv_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record)
{
    enum { COLUMNS = 4, TERMS = 8 }; /* fewer do not pay */
    const int64_t groups = lnt_attr_i(node, "group", 1);
    int64_t taps = 1;
    if (weights->rank < 3 || weights->rank > 2 + LNT_WINDOW_AXES || groups < 1 || weights->dims[0] % groups)
        return false;
    for (unsigned i = 2; i < weights->rank; i++)
        if (__builtin_mul_overflow(taps, weights->dims[i], &taps) || taps > INT16_MAX)
            return false;
    const int64_t columns = weights->dims[0] / groups, depth = weights->dims[1];
    if (columns < COLUMNS || depth < 1 || depth > INT32_MAX / INT16_MAX || depth * taps < TERMS ||
        columns > INT32_MAX)
        return false;
    *record =
        lnt_packed_panels(LNT_SOURCE_CONV, (uint32_t)groups, (uint32_t)(depth * taps), (uint32_t)columns);
    record->layout = LNT_LAYOUT_PANEL_I8;
    record->taps = (uint32_t)taps;
    for (unsigned i = 2; i < weights->rank; i++)
        record->kernel[i - 2] = (uint32_t)weights->dims[i];
    return true;
}

/* ---- bytes turned ---- */

static inline uint64_t load_row(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(x) : x;
}

static inline void store_row(uint8_t *p, uint64_t x)
{
    x = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(x) : x;
    memcpy(p, &x, sizeof x);
}

/* Columns `bits` further on in row a change places with those of row b. */
static inline void swap_corners(uint64_t *a, uint64_t *b, unsigned bits, uint64_t mask)
{
    const uint64_t differ = ((*a >> bits) ^ *b) & mask;
    *b ^= differ;
    *a ^= differ << bits;
}

/* 8 x 8 bytes: halves, quarters and neighbours of a square change corners. */
static void turn_square(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step, uint64_t flip)
{
    uint64_t w[8];
    for (int i = 0; i < 8; i++)
        w[i] = load_row(src + i * src_step) ^ flip;
    for (int i = 0; i < 4; i++)
        swap_corners(&w[i], &w[i + 4], 32, 0x00000000ffffffffu);
    for (int i = 0; i < 8; i += i % 2 ? 3 : 1)
        swap_corners(&w[i], &w[i + 2], 16, 0x0000ffff0000ffffu);
    for (int i = 0; i < 8; i += 2)
        swap_corners(&w[i], &w[i + 1], 8, 0x00ff00ff00ff00ffu);
    for (int i = 0; i < 8; i++)
        store_row(dst + i * dst_step, w[i]);
}

void lnt_turn_bytes(const uint8_t *src, int64_t rows, int64_t columns, int64_t src_step, uint8_t *dst,
                    int64_t dst_step, uint8_t flip)
{
    const int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    const uint64_t flips = flip * 0x0101010101010101u;
    for (int64_t c = 0; c < whole_columns; c += 8)
        for (int64_t r = 0; r < whole_rows; r += 8)
            turn_square(src + r * src_step + c, src_step, dst + c * dst_step + r, dst_step, flips);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            dst[c * dst_step + r] = src[r * src_step + c] ^ flip;
}

/* ---- neighbourhoods ---- */

lnt_qneighbours lnt_qneighbours_bind(const lnt_window *w, int64_t groups, int64_t depth)
{
    lnt_qneighbours n = {.w = *w, .pixel = groups * depth, .depth = depth, .padded = (depth + 3) / 4 * 4};
    bool single = true;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        single &= w->kernel[a] == 1 && w->before[a] == 0 && w->after[a] == 0;
    n.lies = single && depth == n.padded;
    n.runs = groups == 1 && depth == n.padded && w->dilation[2] == 1;
    return n;
}

/* Up to 4 channels of a pixel as one quad, zeros behind them. */
static inline void gather_quad(const uint8_t *from, int64_t depth, uint8_t *to)
{
    uint8_t quad[4] = {from[0], depth > 1 ? from[1] : 0, depth > 2 ? from[2] : 0, depth > 3 ? from[3] : 0};
    memcpy(to, quad, sizeof quad);
}

/* Taps along x of one line of the image, NULL where the line is padding; first is the position of tap 0. */
static void gather_line(const lnt_qneighbours *n, const uint8_t *line, int64_t first, uint8_t zero,
                        uint8_t *row)
{
    const lnt_window *w = &n->w;
    const int64_t taps = w->kernel[2], d = w->dilation[2];
    if (n->runs && line && first >= 0 && first + taps <= w->in[2]) {
        memcpy(row, line + first * n->pixel, (size_t)(taps * n->padded));
        return;
    }
    if (n->padded == 4 && line && first >= 0 && first + (taps - 1) * d < w->in[2]) {
        for (int64_t t = 0; t < taps; t++, row += 4)
            gather_quad(line + (first + t * d) * n->pixel, n->depth, row);
        return;
    }
    for (int64_t t = 0; t < taps; t++, row += n->padded) {
        const int64_t x = first + t * d;
        if (line && x >= 0 && x < w->in[2])
            memcpy(row, line + x * n->pixel, (size_t)n->depth);
        else
            memset(row, zero, (size_t)n->depth);
        if (n->padded > n->depth)
            memset(row + n->depth, 0, (size_t)(n->padded - n->depth));
    }
}

const uint8_t *lnt_qneighbours_of(const lnt_qneighbours *n, const uint8_t *image, int64_t o, int64_t group,
                                  uint8_t zero, uint8_t *row)
{
    const lnt_window *w = &n->w;
    const int64_t oz = o / (w->out[1] * w->out[2]), oy = o / w->out[2] % w->out[1], ox = o % w->out[2];
    const uint8_t *at = image + group * n->depth;
    const int64_t x = lnt_window_at(w, 2, ox, 0), width = w->in[2] * n->pixel;
    if (n->lies)
        return at + ((oz * w->stride[0] * w->in[1] + oy * w->stride[1]) * w->in[2] + x) * n->pixel;
    uint8_t *to = row;
    for (int64_t tz = 0; tz < w->kernel[0]; tz++)
        for (int64_t ty = 0; ty < w->kernel[1]; ty++, to += w->kernel[2] * n->padded) {
            const int64_t z = lnt_window_at(w, 0, oz, tz), y = lnt_window_at(w, 1, oy, ty);
            const bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
            gather_line(n, inside ? at + (z * w->in[1] + y) * width : NULL, x, zero, to);
        }
    return row;
}
