/* qconv_image.c — int8 input images in the kernels' layout, and the records of packed weights. */
#include "ops/quant/qconv.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

/* ---- records ---- */

/* Few channels waste less when those of a line of taps are padded together. */
static bool goes_by_lines(const lnt_node *node, const lnt_operand *weights)
{
    enum { CHANNELS_MOST = 2 }; /* with more, transposing images by quads is faster */
    const lnt_attr *dilations = lnt_attr_find(node, "dilations");
    const int64_t depth = weights->dims[1], line = weights->dims[weights->rank - 1] * depth;
    return lnt_attr_i(node, "group", 1) == 1 && depth <= CHANNELS_MOST &&
           (!dilations || (dilations->type == LNT_ATTR_INTS && dilations->count == weights->rank - 2u &&
                           dilations->i[dilations->count - 1] == 1)) &&
           (line + 3) / 4 * 4 < weights->dims[weights->rank - 1] * ((depth + 3) / 4 * 4);
}

static bool panels_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record)
{
    const int64_t groups = lnt_attr_i(node, "group", 1);
    int64_t taps = 1;
    if (weights->rank < 3 || weights->rank > 2 + LNT_WINDOW_AXES || groups < 1 || groups > INT32_MAX ||
        weights->dims[0] % groups)
        return false;
    for (unsigned i = 2; i < weights->rank; i++)
        if (weights->dims[i] < 1 || __builtin_mul_overflow(taps, weights->dims[i], &taps) || taps > INT16_MAX)
            return false;
    const int64_t columns = weights->dims[0] / groups, depth = weights->dims[1];
    if (columns < 1 || columns > INT32_MAX || depth < 1 || depth > INT32_MAX / INT16_MAX)
        return false;
    *record =
        lnt_packed_panels(LNT_SOURCE_CONV, (uint32_t)groups, (uint32_t)(depth * taps), (uint32_t)columns);
    record->layout = goes_by_lines(node, weights) ? LNT_LAYOUT_LINES_I8 : LNT_LAYOUT_PANEL_I8;
    record->taps = (uint32_t)taps;
    for (unsigned i = 2; i < weights->rank; i++)
        record->kernel[i - 2] = (uint32_t)weights->dims[i];
    return true;
}

bool lnt_qlinear_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record)
{
    if (!panels_record(node, weights, record))
        return false;
    if (record->N == 1 && record->K == record->taps && record->taps <= LNT_QTAPS_MAX)
        record->layout = LNT_LAYOUT_DEPTHWISE_I8;
    return true;
}

bool lnt_qconv_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record)
{
    enum { COLUMNS = 4, TERMS = 8, CHANNELS = 8, TAPS = 3 }; /* fewer do not pay */
    if (!lnt_qlinear_record(node, weights, record))
        return false;
    return lnt_qconv_is_depthwise(record) ? record->groups >= CHANNELS && record->taps >= TAPS
                                          : record->N >= COLUMNS && record->K >= TERMS;
}

/* ---- transposition of 8-bit elements ---- */

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

/* Swaps the columns of row a, `bits` further on, with those of row b. */
static inline void swap_corners(uint64_t *a, uint64_t *b, unsigned bits, uint64_t mask)
{
    const uint64_t differ = ((*a >> bits) ^ *b) & mask;
    *b ^= differ;
    *a ^= differ << bits;
}

/* Transposes 8 x 8 elements in three steps: blocks of 4, 2 and 1 are swapped across the diagonal. */
static void transpose_square(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step,
                             uint64_t flip)
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

void lnt_transpose_bytes(const uint8_t *src, int64_t rows, int64_t columns, int64_t src_step, uint8_t *dst,
                         int64_t dst_step, uint8_t flip)
{
    const uint64_t flips = flip * 0x0101010101010101u;
    if (!flip && rows >= 16 && columns >= 16) {
        lnt_turn_apart(dst, dst_step, src, src_step, rows, columns, 1);
        return;
    }
    if (rows < 8 || columns < 8) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                dst[c * dst_step + r] = src[r * src_step + c] ^ flip;
        return;
    }
    for (int64_t i = 0; i < columns; i += 8) { /* the last squares begin early enough to be whole */
        const int64_t c = i + 8 <= columns ? i : columns - 8;
        for (int64_t j = 0; j < rows; j += 8) {
            const int64_t r = j + 8 <= rows ? j : rows - 8;
            transpose_square(src + r * src_step + c, src_step, dst + c * dst_step + r, dst_step, flips);
        }
    }
}

/* ---- images ---- */

/* Bytes from the start of an image to line (z, y). */
static int64_t line_at(const lnt_qimage *m, int64_t z, int64_t y)
{
    return (z * m->extent[1] + y) * m->extent[2] * m->pixel;
}

/* Taps along x of a kernel without dilation are contiguous, unless the channels of other groups are between. */
static lnt_status find_runs(lnt_site *site, lnt_qimage *m)
{
    const lnt_window *w = &m->w;
    const bool joined = m->groups == 1 && w->dilation[2] == 1;
    const int64_t taps = joined ? 1 : w->kernel[2];
    m->run = (joined ? w->kernel[2] : 1) * m->padded;
    m->terms = m->run;
    m->run = (m->run + 3) / 4 * 4;
    m->runs = w->kernel[0] * w->kernel[1] * taps;
    ptrdiff_t *offset = m->run_offset =
        lnt_bump_alloc(site->memory, (size_t)m->runs * sizeof *offset, site->err);
    if (!offset)
        return LNT_E_MEMORY;
    for (int64_t z = 0; z < w->kernel[0]; z++)
        for (int64_t y = 0; y < w->kernel[1]; y++)
            for (int64_t x = 0; x < taps; x++)
                *offset++ = (ptrdiff_t)(line_at(m, z * w->dilation[0], y * w->dilation[1]) +
                                        x * w->dilation[2] * m->pixel);
    return LNT_OK;
}

lnt_status lnt_qimage_bind(lnt_site *site, const lnt_window *w, int64_t groups, lnt_order order,
                           bool is_signed, const lnt_packed *weights, bool takes_signed, lnt_qimage *m)
{
    const lnt_operand *x = site->in[0];
    const bool lines = weights->layout == LNT_LAYOUT_LINES_I8;
    const int64_t depth = x->dims[1] / groups, padded = lines ? depth : (depth + 3) / 4 * 4;
    const bool empty = x->dims[0] == 0 || lnt_volume(w->out) == 0;
    int64_t bytes = padded * groups;
    *m = (lnt_qimage){.w = *w,
                      .batch = x->dims[0],
                      .groups = groups,
                      .depth = depth,
                      .padded = padded,
                      .pixel = padded * groups,
                      .plain = order == LNT_ORDER_PLAIN && x->dims[1] > 1,
                      .flip = is_signed ? 0x80 : 0,
                      .direct = depth == padded && (!is_signed || takes_signed) && !lines};
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        m->extent[a] = empty ? 0 : lnt_window_at(w, a, w->out[a] - 1, w->kernel[a] - 1) + w->before[a] + 1;
        m->direct &= w->before[a] == 0 && m->extent[a] <= w->in[a];
    }
    m->direct &= !m->plain || lnt_volume(w->in) == 1;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        m->extent[a] = m->direct ? w->in[a] : m->extent[a];
        LNT_REQUIRE(lnt_mul_i64(bytes, m->extent[a], &bytes), site->err, LNT_E_LIMIT,
                    "the padded input is too large");
    }
    m->image = bytes;
    LNT_REQUIRE(lnt_mul_i64(bytes, m->batch, &bytes) && bytes < PTRDIFF_MAX / 2, site->err, LNT_E_LIMIT,
                "the padded input is too large");
    m->bytes = m->direct ? 0 : (size_t)bytes + LNT_QIMAGE_SLACK;
    return find_runs(site, m);
}

typedef struct image_job {
    const lnt_qimage *m;
    const uint8_t *input, *zero;
    uint8_t *images;
} image_job;

/* Pixels of padding: the zero point, and 0 where no channel is. */
static void pad_pixels(const lnt_qimage *m, uint8_t zero, int64_t n, uint8_t *to)
{
    if (n <= 0)
        return;
    memset(to, zero, (size_t)(n * m->pixel));
    for (int64_t at = 0; m->depth < m->padded && at < n * m->pixel; at += m->padded)
        memset(to + at + m->depth, 0, (size_t)(m->padded - m->depth));
}

typedef uint8_t sixteen __attribute__((vector_size(16)));
enum { SIXTEEN = sizeof(sixteen) };

/* Quads of the bytes at each of four places: pairs of neighbors, then pairs of these. */
static inline void zip_quads(const uint8_t *const *from, sixteen flip, const sixteen *keep, uint8_t *to)
{
    sixteen x[4];
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++) {
        memcpy(&x[i], from[i], SIXTEEN);
        x[i] = (x[i] ^ flip) & keep[i];
    }
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
    const sixteen even[] = {LOW(x[0], x[2]), HIGH(x[0], x[2])}, odd[] = {LOW(x[1], x[3]), HIGH(x[1], x[3])};
    const sixteen quads[] = {LOW(even[0], odd[0]), HIGH(even[0], odd[0]), LOW(even[1], odd[1]), HIGH(even[1], odd[1])};
#undef LOW
#undef HIGH
    memcpy(to, quads, sizeof quads);
}

/* n pixels of up to four channels as quads; channels of a pixel are `channel` bytes apart, pixels `step`. */
static void copy_quads(const uint8_t *from, int64_t depth, int64_t channel, int64_t step, int64_t n,
                       uint8_t flip, uint8_t *to, int64_t to_step)
{
    const int64_t second = depth > 1 ? channel : 0, third = depth > 2 ? 2 * channel : 0,
                  fourth = depth > 3 ? 3 * channel : 0;
    const uint8_t keep[4] = {0xff, depth > 1 ? 0xff : 0, depth > 2 ? 0xff : 0, depth > 3 ? 0xff : 0};
    if (step == 1 && to_step == 4 && n >= SIXTEEN) {
        sixteen kept[4];
        for (unsigned i = 0; i < 4; i++)
            kept[i] = keep[i] + (sixteen){0};
        for (int64_t i = 0; i < n; i += SIXTEEN) {
            const uint8_t *at = from + lnt_least(i, n - SIXTEEN);
            zip_quads((const uint8_t *const[]){at, at + second, at + third, at + fourth}, flip + (sixteen){0}, kept,
                      to + 4 * lnt_least(i, n - SIXTEEN));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++, from += step, to += to_step) {
        to[0] = from[0] ^ flip;
        to[1] = (from[second] ^ flip) & keep[1];
        to[2] = (from[third] ^ flip) & keep[2];
        to[3] = (from[fourth] ^ flip) & keep[3];
    }
}

static void copy_group(const uint8_t *from, int64_t depth, uint8_t flip, uint8_t *to, int64_t padded)
{
    lnt_qflip_bytes(from, depth, flip, to);
    memset(to + depth, 0, (size_t)(padded - depth));
}

/* A few channels of each of n groups, more than a quad, with 0 behind them. What a quad takes of the next group is
 * masked, which is faster than calls. */
static void copy_groups(const uint8_t *from, int64_t depth, int64_t n, uint8_t flip, uint8_t *to,
                        int64_t padded)
{
    const uint8_t kept[4] = {0xff, depth % 4 > 1 ? 0xff : 0, depth % 4 > 2 ? 0xff : 0, 0};
    const uint32_t flips = flip * 0x01010101u;
    uint32_t keep, quad;
    memcpy(&keep, kept, sizeof keep);
    for (; n > 1; n--, from += depth, to += padded)
        for (int64_t c = 0; c < padded; c += 4) {
            memcpy(&quad, from + c, sizeof quad);
            quad = c + 4 < padded ? quad ^ flips : (quad ^ flips) & keep;
            memcpy(to + c, &quad, sizeof quad);
        }
    if (n > 0)
        copy_group(from, depth, flip, to, padded);
}

/* n pixels of a channels-last line. */
static void copy_pixels(const lnt_qimage *m, const uint8_t *from, int64_t n, uint8_t *to)
{
    enum { FEW = 32 };
    if (m->depth == m->padded) {
        lnt_qflip_bytes(from, n * m->pixel, m->flip, to);
        return;
    }
    if (m->padded == 4) {
        copy_quads(from, m->depth, 1, m->depth, n * m->groups, m->flip, to, 4);
        return;
    }
    if (m->depth < FEW) {
        copy_groups(from, m->depth, n * m->groups, m->flip, to, m->padded);
        return;
    }
    for (int64_t i = 0; i < n * m->groups; i++, from += m->depth, to += m->padded)
        copy_group(from, m->depth, m->flip, to, m->padded);
}

/* n pixels from rows of planes, which are `plane` bytes apart. */
static void transpose_pixels(const lnt_qimage *m, const uint8_t *from, int64_t plane, int64_t n, uint8_t *to)
{
    for (int64_t g = 0; g < m->groups; g++, from += m->depth * plane, to += m->padded) {
        if (m->padded == 4) {
            copy_quads(from, m->depth, plane, 1, n, m->flip, to, m->pixel);
            continue;
        }
        lnt_transpose_bytes(from, m->depth, n, plane, to, m->pixel, m->flip);
        for (int64_t i = 0; m->depth < m->padded && i < n; i++)
            memset(to + i * m->pixel + m->depth, 0, (size_t)(m->padded - m->depth));
    }
}

/* Is nothing added around the image, and nothing cut off? Then its lines follow one another on both sides. */
static bool is_whole(const lnt_qimage *m)
{
    bool whole = m->plain;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        whole = whole && m->extent[a] == m->w.in[a] && m->w.before[a] == 0;
    return whole;
}

/* Item: a line of an image. */
static lnt_status fill_lines(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const image_job *j = arg;
    const lnt_qimage *m = j->m;
    const lnt_window *w = &m->w;
    const int64_t width = m->extent[2], volume = lnt_volume(w->in),
                  left = w->before[2] > 0 ? w->before[2] : 0;
    const int64_t skipped = w->before[2] < 0 ? -w->before[2] : 0, room = width - left;
    const int64_t n = w->in[2] - skipped < room ? w->in[2] - skipped : room;
    const int64_t lines = m->extent[0] * m->extent[1];
    const bool whole = is_whole(m);
    (void)k, (void)thread;
    for (int64_t line = begin, some; line < end; line += some) {
        some = whole ? lnt_least(end - line, lines - line % lines) : 1;
        const int64_t i = line / lines, y = line % m->extent[1] - w->before[1],
                      z = line / m->extent[1] % m->extent[0] - w->before[0];
        uint8_t *to = j->images + line * width * m->pixel;
        if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || n <= 0) {
            pad_pixels(m, j->zero[i], width, to);
            continue;
        }
        const int64_t at = (z * w->in[1] + y) * w->in[2] + skipped, channels = m->groups * m->depth;
        const uint8_t *image = j->input + i * volume * channels;
        pad_pixels(m, j->zero[i], left, to);
        if (m->plain)
            transpose_pixels(m, image + at, volume, some * n, to + left * m->pixel);
        else
            copy_pixels(m, image + at * channels, n, to + left * m->pixel);
        pad_pixels(m, j->zero[i], room - n, to + (left + n) * m->pixel);
    }
    return LNT_OK;
}

lnt_status lnt_qimage_fill(lnt_kernel *k, const lnt_qimage *m, const uint8_t *input, const uint8_t *zero,
                           uint8_t *images)
{
    LNT_ASSERT(!m->direct && m->bytes >= LNT_QIMAGE_SLACK);
    image_job job = {.m = m, .input = input, .zero = zero, .images = images};
    memset(images + m->bytes - LNT_QIMAGE_SLACK, 0, LNT_QIMAGE_SLACK);
    return lnt_parallel(k, m->batch * m->extent[0] * m->extent[1], 1 + 32768 / (m->extent[2] * m->pixel + 1),
                        fill_lines, &job);
}

void lnt_qimage_rows(const lnt_qimage *m, const uint8_t *images, int64_t group, int64_t columns,
                     lnt_qrow_set *set)
{
    const lnt_window *w = &m->w;
    const int64_t plane = lnt_volume(w->out), step = w->stride[2] * m->pixel, pixel = m->groups * columns;
    int64_t image = set->first / plane, at = set->first % plane;
    int64_t x = at % w->out[2], y = at / w->out[2] % w->out[1], z = at / (w->out[2] * w->out[1]);
    for (unsigned i = 0; i < set->n;) {
        const uint8_t *a = images + image * m->image + line_at(m, z * w->stride[0], y * w->stride[1]) +
                           x * step + group * m->padded;
        int64_t out = (set->first + i) * pixel + group * columns;
        const unsigned end = i + (unsigned)lnt_least(w->out[2] - x, set->n - i);
        for (; i < end; i++, a += step, out += pixel) {
            set->a[i] = a;
            set->out[i] = out;
        }
        x = 0;
        if (++y == w->out[1]) {
            y = 0;
            if (++z == w->out[0]) {
                z = 0;
                image++;
            }
        }
    }
}
