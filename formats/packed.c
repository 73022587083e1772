/* packed.c — sizes, packing and unpacking of weights, for every layout.
 *
 * All layouts but the depthwise one are rows of panels that differ in where element (k, n) comes from. That
 * is an affine map: n, tap and channel each have a stride in the ONNX operand. */
#include "formats/packed.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "formats/panel_row.h"

#include <string.h>

lnt_packed lnt_packed_panels(lnt_source source, uint32_t groups, uint32_t K, uint32_t N)
{
    return (lnt_packed){.layout = LNT_LAYOUT_PANEL_F32,
                        .source = (uint16_t)source,
                        .groups = groups,
                        .phases = 1,
                        .taps = 1,
                        .K = K,
                        .N = N,
                        .gates = 1,
                        .kernel = {1, 1, 1},
                        .stride = {1, 1, 1},
                        .dilation = {1, 1, 1}};
}

/* ---- size and sanity ---- */

/* True if a * b * c is product. */
static bool is_product(const uint32_t f[3], uint32_t product)
{
    uint64_t ab = (uint64_t)f[0] * f[1], abc;
    return !__builtin_mul_overflow(ab, f[2], &abc) && abc == product && product > 0;
}

static bool all_ones(const uint32_t f[3])
{
    return f[0] == 1 && f[1] == 1 && f[2] == 1;
}

/* The layouts of floats, by their elements: those of panels, depthwise weights and gates follow each other. */
enum { ARRANGEMENTS = 3, ELEMENTS = LNT_HAS_HALVES ? 3 : 1 };
static const struct {
    lnt_dtype type;
    unsigned first;
} element[] = {{LNT_FLOAT, LNT_LAYOUT_PANEL_F32},
               {LNT_FLOAT16, LNT_LAYOUT_PANEL_F16},
               {LNT_BFLOAT16, LNT_LAYOUT_PANEL_BF16}};

/* Which elements the record's layout has; ELEMENTS if it is none of floats. */
static unsigned element_of(const lnt_packed *p)
{
    unsigned i = 0;
    while (i < ELEMENTS && (p->layout < element[i].first || p->layout >= element[i].first + ARRANGEMENTS))
        i++;
    return i;
}

/* Are its elements floats of 16 bits? */
static bool is_narrow(const lnt_packed *p)
{
    const unsigned i = element_of(p);
    return LNT_HAS_HALVES && i > 0 && i < ELEMENTS;
}

lnt_dtype lnt_packed_element(const lnt_packed *p)
{
    const unsigned i = element_of(p);
    return i < ELEMENTS ? element[i].type : LNT_INT8;
}

lnt_packed lnt_packed_as(const lnt_packed *p, lnt_dtype type)
{
    const unsigned from = element_of(p);
    lnt_packed as = *p;
    LNT_ASSERT(from < ELEMENTS);
    for (unsigned to = 0; to < ELEMENTS; to++)
        if (element[to].type == type)
            as.layout = (uint16_t)(p->layout - element[from].first + element[to].first);
    return as;
}

/* The layout of floats of 32 bits that is arranged alike; of others their own. */
static unsigned arrangement(const lnt_packed *p)
{
    return element_of(p) < ELEMENTS ? lnt_packed_as(p, LNT_FLOAT).layout : p->layout;
}

static bool fields_agree(const lnt_packed *p)
{
    if (!is_product(p->kernel, p->taps) || !is_product(p->stride, p->phases) || p->K % p->taps)
        return false;
    if (!p->dilation[0] || !p->dilation[1] || !p->dilation[2])
        return false;
    const bool phased = p->source == LNT_SOURCE_CONVT, conv = phased || p->source == LNT_SOURCE_CONV;
    if (!phased && (p->phases != 1 || !all_ones(p->dilation)))
        return false;
    if (!conv && p->taps != 1)
        return false;
    switch (arrangement(p)) {
    case LNT_LAYOUT_PANEL_I8:
    case LNT_LAYOUT_PANEL_I8_FULL:
        return !phased && (p->source == LNT_SOURCE_GATES
                               ? p->gates >= 1 && p->gates <= 4
                               : p->source >= LNT_SOURCE_KN && p->source <= LNT_SOURCE_CONV && p->gates == 1);
    case LNT_LAYOUT_LINES_I8:
        return p->source == LNT_SOURCE_CONV && p->gates == 1 && p->groups == 1 && p->taps > 1;
    case LNT_LAYOUT_DEPTHWISE_I8: return p->source == LNT_SOURCE_CONV && p->gates == 1 && p->K == p->taps;
    case LNT_LAYOUT_DEPTHWISE_F32: return p->source == LNT_SOURCE_CONV && p->gates == 1;
    case LNT_LAYOUT_PANEL_F32:
        return p->source >= LNT_SOURCE_KN && p->source <= LNT_SOURCE_CONVT && p->gates == 1;
    case LNT_LAYOUT_GATES_F32: return p->source == LNT_SOURCE_GATES && p->gates >= 1 && p->gates <= 4;
    default: return false;
    }
}

static bool is_depthwise(const lnt_packed *p)
{
    return arrangement(p) == LNT_LAYOUT_DEPTHWISE_F32 || p->layout == LNT_LAYOUT_DEPTHWISE_I8;
}

bool lnt_packed_is_int8(const lnt_packed *p)
{
    return (p->layout >= LNT_LAYOUT_PANEL_I8 && p->layout <= LNT_LAYOUT_DEPTHWISE_I8) ||
           p->layout == LNT_LAYOUT_LINES_I8;
}

/* Columns in a panel. */
static size_t width_of(const lnt_packed *p)
{
    return lnt_packed_is_int8(p) ? LNT_QPANEL : LNT_PANEL;
}

/* Columns that are padded together: those of a panel, or of a gate before the next gate. */
static size_t columns_together(const lnt_packed *p)
{
    return p->source == LNT_SOURCE_GATES ? LNT_PANEL : width_of(p);
}

/* Taps that are side by side, padded to whole quads together: those along the last axis that has any, or one. */
static size_t taps_in_line(const lnt_packed *p)
{
    unsigned last = 2;
    while (last > 0 && p->kernel[last] == 1)
        last--;
    return p->layout == LNT_LAYOUT_LINES_I8 ? p->kernel[last] : 1;
}

/* Quads of a line; false if that overflows. */
static bool quads_of_line(const lnt_packed *p, size_t *quads)
{
    size_t bytes;
    if (!lnt_mul_size(taps_in_line(p), p->K / p->taps, &bytes))
        return false;
    *quads = bytes / 4 + (bytes % 4 > 0);
    return true;
}

/* Where byte [tap][channel] of a column stands in its panel. */
static size_t byte_at(const lnt_packed *p, size_t tap, size_t channel)
{
    const size_t line = taps_in_line(p), channels = p->K / p->taps, quads = (line * channels + 3) / 4;
    const size_t byte = tap % line * channels + channel;
    return (tap / line * quads + byte / 4) * 4 * LNT_QPANEL + byte % 4;
}

/* Bytes of an element of a row of columns: a float of 32 or 16 bits, a quad of bytes or their sum. */
static size_t element_bytes(const lnt_packed *p)
{
    return is_narrow(p) ? sizeof(uint16_t) : sizeof(float);
}

/* Rows of columns: of floats; of quads of bytes and their sum. */
static bool rows_of(const lnt_packed *p, size_t *rows)
{
    *rows = p->K;
    if (!lnt_packed_is_int8(p) || is_depthwise(p))
        return true;
    size_t quads;
    return quads_of_line(p, &quads) && lnt_mul_size(p->taps / taps_in_line(p), quads, rows) &&
           lnt_add_size(*rows, 1, rows);
}

bool lnt_packed_bytes(const lnt_packed *p, size_t *bytes)
{
    if (!fields_agree(p) || p->N > UINT32_MAX - LNT_PANEL)
        return false;
    size_t columns, n, rows;
    if (is_depthwise(p)) {
        if (!lnt_mul_size(p->groups, p->N, &columns) || columns > SIZE_MAX - LNT_PANEL)
            return false;
        n = lnt_round_up(columns, width_of(p));
    } else if (!lnt_mul_size(lnt_round_up(p->N, columns_together(p)), p->gates, &columns) ||
               !lnt_mul_size(columns, p->groups, &n)) {
        return false;
    }
    if (p->layout == LNT_LAYOUT_DEPTHWISE_I8)
        return lnt_add_size(p->K, sizeof(int32_t), &rows) && lnt_mul_size(n, rows, bytes);
    return rows_of(p, &rows) && lnt_mul_size(n, rows, &n) && lnt_mul_size(n, element_bytes(p), bytes);
}

size_t lnt_packed_panel_bytes(const lnt_packed *p)
{
    LNT_ASSERT(lnt_packed_is_int8(p));
    const size_t line = taps_in_line(p);
    return p->taps / line * ((line * (p->K / p->taps) + 3) / 4) * 4 * LNT_QPANEL;
}

size_t lnt_packed_sums_at(const lnt_packed *p)
{
    LNT_ASSERT(lnt_packed_is_int8(p));
    const size_t panels = lnt_packed_panel_count(p);
    return panels * (is_depthwise(p) ? (size_t)p->taps * LNT_QPANEL : lnt_packed_panel_bytes(p));
}

bool lnt_packed_is_floats(const lnt_packed *p)
{
    return arrangement(p) == LNT_LAYOUT_PANEL_F32;
}

bool lnt_packed_alike(const lnt_packed *a, const lnt_packed *b)
{
    lnt_packed same = *b;
    if ((a->layout == LNT_LAYOUT_PANEL_I8 && b->layout == LNT_LAYOUT_PANEL_I8_FULL) ||
        arrangement(a) == arrangement(b))
        same.layout = a->layout;
    return memcmp(a, &same, sizeof same) == 0;
}

/* Extents of the ONNX operand after its leading axes of `groups`, as the record has them. */
static const char *check_matrix(const lnt_packed *p, unsigned rank, const int64_t *dims)
{
    const bool gates = p->source == LNT_SOURCE_GATES;
    int64_t groups;
    if (rank < 2 || !lnt_count(dims, rank - 2, &groups) || groups != p->groups)
        return "groups of the packed record do not fit the constant";
    const int64_t rows = p->source == LNT_SOURCE_KN ? p->K : (int64_t)p->N * p->gates;
    const int64_t columns = p->source == LNT_SOURCE_KN ? p->N : p->K;
    if ((gates && rank != 3) || dims[rank - 2] != rows || dims[rank - 1] != columns)
        return "K and N of the packed record do not fit the constant";
    return NULL;
}

static const char *check_kernel(const lnt_packed *p, unsigned rank, const int64_t *dims)
{
    if (rank < 3 || rank > 5)
        return "packed convolution weights must have rank 3 to 5";
    for (unsigned i = 0; i < 3; i++)
        if (p->kernel[i] != (i + 2 < rank ? dims[i + 2] : 1))
            return "the kernel of the packed record does not fit the constant";
    const int64_t channels = p->K / p->taps;
    const bool transposed = p->source == LNT_SOURCE_CONVT;
    if (dims[0] != (int64_t)p->groups * (transposed ? channels : p->N) ||
        dims[1] != (transposed ? p->N : channels))
        return "channels of the packed record do not fit the constant";
    return NULL;
}

const char *lnt_packed_check(const lnt_packed *p, lnt_dtype type, unsigned rank, const int64_t *dims)
{
    size_t bytes;
    if (!lnt_packed_bytes(p, &bytes))
        return "the packed record contradicts itself";
    if (lnt_packed_is_int8(p) ? type != LNT_INT8 && type != LNT_UINT8 : type != LNT_FLOAT)
        return "the packed record is for constants of another type";
    return p->source == LNT_SOURCE_CONV || p->source == LNT_SOURCE_CONVT ? check_kernel(p, rank, dims)
                                                                         : check_matrix(p, rank, dims);
}

/* ---- panels ---- */

/* Does tap t of the kernel belong to phase r? Both count in row-major order. */
static bool in_phase(const lnt_packed *p, uint32_t t, uint32_t r)
{
    for (unsigned i = 3; i-- > 0; t /= p->kernel[i], r /= p->stride[i])
        if ((uint64_t)(t % p->kernel[i]) * p->dilation[i] % p->stride[i] != r % p->stride[i])
            return false;
    return true;
}

/* How many taps of axis i there are in phase r of it. */
static size_t axis_taps(const lnt_packed *p, unsigned i, uint32_t r)
{
    const uint32_t kernel = p->kernel[i], stride = p->stride[i];
    if (p->dilation[i] == 1)
        return r < kernel ? (kernel - r - 1) / stride + 1 : 0;
    size_t n = 0;
    for (uint32_t t = 0; t < kernel; t++)
        n += (uint64_t)t * p->dilation[i] % stride == r;
    return n;
}

static size_t phase_taps(const lnt_packed *p, uint32_t phase)
{
    size_t n = 1;
    for (unsigned i = 3; i-- > 0; phase /= p->stride[i])
        n *= axis_taps(p, i, phase % p->stride[i]);
    return n;
}

/* Number of the tap that comes i-th. */
static uint32_t tap_at(const lnt_packed *p, uint32_t i)
{
    LNT_ASSERT(i < p->taps);
    return p->source == LNT_SOURCE_CONVT ? p->taps - 1 - i : i;
}

/* Where the columns of a panel are in the ONNX operand: element (tap, channel, column) is at
 * base + tap * per_tap + channel * per_channel + column * per_column. */
typedef struct panel_source {
    size_t base, per_tap, per_channel, per_column;
    unsigned columns; /* that exist */
    uint32_t phase;
} panel_source;

static size_t panels_across(const lnt_packed *p)
{
    return lnt_round_up(p->N, columns_together(p)) / width_of(p);
}

size_t lnt_packed_panel_count(const lnt_packed *p)
{
    if (is_depthwise(p))
        return lnt_round_up((size_t)p->groups * p->N, width_of(p)) / width_of(p);
    return p->groups * (size_t)p->phases * panels_across(p) * p->gates;
}

static panel_source source_of(const lnt_packed *p, size_t panel)
{
    LNT_ASSERT(panel < lnt_packed_panel_count(p));
    const size_t N = p->N, K = p->K, taps = p->taps, width = width_of(p);
    const size_t parts = columns_together(p) / width, across = panels_across(p) / parts;
    const size_t part = panel % parts, gate = panel / parts % p->gates, block = panel / parts / p->gates;
    const size_t phase = block / across % p->phases, group = block / across / p->phases;
    const size_t first = (block % across * parts + part) * width, left = N > first ? N - first : 0;
    panel_source s = {.per_tap = 1, .phase = (uint32_t)phase};
    s.columns = (unsigned)(left < width ? left : width);
    switch (p->source) {
    case LNT_SOURCE_KN: s.per_column = 1, s.per_channel = N; break;
    case LNT_SOURCE_CONV: s.per_column = K, s.per_channel = taps; break;
    case LNT_SOURCE_CONVT: s.per_column = taps, s.per_channel = N * taps; break;
    default: s.per_column = K, s.per_channel = 1; break;
    }
    s.base = (group * p->gates + gate) * N * K + first * s.per_column;
    return s;
}

/* Elements before the panel. */
static size_t panel_start(const lnt_packed *p, size_t panel)
{
    if (p->phases == 1)
        return panel * p->K * LNT_PANEL;
    const size_t across = panels_across(p), in_group = panel % (p->phases * across);
    const size_t phase = in_group / across, channels = p->K / p->taps;
    size_t taps = 0;
    for (uint32_t r = 0; r < phase; r++)
        taps += phase_taps(p, r);
    const size_t own = phase_taps(p, (uint32_t)phase);
    const size_t rows = panel / (p->phases * across) * across * p->K + taps * channels * across +
                        in_group % across * own * channels;
    return rows * LNT_PANEL;
}

typedef float quad __attribute__((vector_size(16)));

static quad load_quad(const float *p)
{
    quad q;
    memcpy(&q, p, sizeof q);
    return q;
}

/* dst[c][n] = src[n][c] for a square of four; rows of dst are a panel's. */
static inline void turn_quads(const float *src, size_t step, float *dst)
{
    const quad a = load_quad(src), b = load_quad(src + step);
    const quad c = load_quad(src + 2 * step), d = load_quad(src + 3 * step);
    const quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    const quad ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const quad bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    const quad bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    const quad rows[4] = {__builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5),
                          __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
                          __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5),
                          __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)};
    for (unsigned i = 0; i < 4; i++)
        memcpy(dst + i * LNT_PANEL, &rows[i], sizeof rows[i]);
}

static void pack_rows(const float *src, const panel_source *s, size_t channels, float *dst)
{
    if (s->per_channel == 1 && s->columns == LNT_PANEL)
        for (; channels >= 4; channels -= 4, src += 4, dst += 4 * LNT_PANEL)
            for (size_t n = 0; n < LNT_PANEL; n += 4)
                turn_quads(src + n * s->per_column, s->per_column, dst + n);
    for (size_t c = 0; c < channels; c++, dst += LNT_PANEL) {
        const float *row = src + c * s->per_channel;
        unsigned n = 0;
        if (s->per_column == 1) {
            lnt_copy_panel_row(row, s->columns, dst);
            continue;
        }
        for (; n < s->columns; n++)
            dst[n] = row[n * s->per_column];
        for (; n < LNT_PANEL; n++)
            dst[n] = 0.0f;
    }
}

static void unpack_rows(const float *src, const panel_source *s, size_t channels, float *dst)
{
    for (size_t c = 0; c < channels; c++, src += LNT_PANEL)
        for (unsigned n = 0; n < s->columns; n++)
            dst[c * s->per_channel + n * s->per_column] = src[n];
}

/* ---- panels of 16 bits ---- */

/* A row of a panel, or a run of depthwise weights, to and from elements of 16 bits. */
static void narrow(lnt_dtype type, const float *src, size_t n, uint16_t *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = type == LNT_FLOAT16 ? lnt_float_to_f16(src[i]) : lnt_float_to_bf16(src[i]);
}

static void widen(lnt_dtype type, const uint16_t *src, size_t n, float *dst)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = type == LNT_FLOAT16 ? lnt_f16_to_float(src[i]) : lnt_bf16_to_float(src[i]);
}

static void pack_narrow_rows(lnt_dtype type, const float *src, const panel_source *s, size_t channels,
                             uint16_t *dst)
{
    float row[LNT_PANEL];
    for (size_t c = 0; c < channels; c++, dst += LNT_PANEL) {
        pack_rows(src + c * s->per_channel, s, 1, row);
        narrow(type, row, LNT_PANEL, dst);
    }
}

static void unpack_narrow_rows(lnt_dtype type, const uint16_t *src, const panel_source *s, size_t channels,
                               float *dst)
{
    float row[LNT_PANEL];
    for (size_t c = 0; c < channels; c++, src += LNT_PANEL) {
        widen(type, src, LNT_PANEL, row);
        unpack_rows(row, s, 1, dst + c * s->per_channel);
    }
}

/* ---- panels of bytes ---- */

/* Where weights may be given at run time, and there is room. */
#if defined(__x86_64__)
enum { PACKS_FOUR_ROWS = true };
#else
enum { PACKS_FOUR_ROWS = false };
#endif
#define LOW_OF(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_OF(a, b)                                                                                        \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

typedef uint8_t sixteen __attribute__((vector_size(16)));
typedef uint16_t eight_pairs __attribute__((vector_size(16)));

/* Rows of a panel, four at a time: pairs of two and two are made pairs of pairs. Rows behind the last are 0, as are
 * columns. */
static void pack_four_rows(const uint8_t *row, size_t step, size_t rows, size_t columns, uint8_t flip,
                           int8_t *dst, int32_t *sums)
{
    typedef int16_t eight __attribute__((vector_size(16)));
    enum { ADDED = 128 /* rows whose sums fit in 16 bits */ };
    const sixteen lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                  some = (sixteen)(lane < (uint8_t)columns);
    const size_t near = columns < LNT_QPANEL ? (LNT_QPANEL - columns + step - 1) / step : 0; /* the end */
    eight sum[2] = {{0}};
    for (size_t c = 0; c < rows; c += 4, dst += 4 * LNT_QPANEL) {
        sixteen x[4];
        if (c + 4 + near <= rows)
            _Pragma("GCC unroll 4") for (unsigned i = 0; i < 4; i++)
                memcpy(&x[i], row + (c + i) * step, sizeof x[i]);
        else
            for (unsigned i = 0; i < 4; i++) {
                x[i] = (sixteen){0} ^ flip;
                if (c + i < rows)
                    memcpy(&x[i], row + (c + i) * step, columns);
            }
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; i++) {
            x[i] = (x[i] ^ flip) & some;
            sum[0] += (eight)LOW_OF(x[i], x[i]) >> 8;
            sum[1] += (eight)HIGH_OF(x[i], x[i]) >> 8;
        }
        for (unsigned half = 0; half < 2; half++) {
            const eight_pairs a = (eight_pairs)(half ? HIGH_OF(x[0], x[1]) : LOW_OF(x[0], x[1])),
                              b = (eight_pairs)(half ? HIGH_OF(x[2], x[3]) : LOW_OF(x[2], x[3]));
            const eight_pairs low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
                              high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
            memcpy(dst + half * 32, &low, sizeof low);
            memcpy(dst + half * 32 + 16, &high, sizeof high);
        }
        if (c % ADDED != ADDED - 4 && c + 4 < rows)
            continue;
        for (unsigned n = 0; n < LNT_QPANEL; n++)
            sums[n] += sum[n / 8][n % 8];
        sum[0] = sum[1] = (eight){0};
    }
}

/* flip is exclusive-or-ed to each byte: 0x80 moves uint8 by -128. */
static void pack_quads(const lnt_packed *p, const uint8_t *src, uint8_t flip, size_t panel, int8_t *dst,
                       int32_t *sums)
{
    const panel_source s = source_of(p, panel);
    const size_t channels = p->K / p->taps;
    memset(sums, 0, LNT_QPANEL * sizeof *sums);
    if (PACKS_FOUR_ROWS && p->taps == 1 && s.per_column == 1) {
        pack_four_rows(src + s.base, s.per_channel, channels, s.columns, flip, dst, sums);
        return;
    }
    memset(dst, 0, lnt_packed_panel_bytes(p));
    for (size_t t = 0; t < p->taps; t++) {
        const uint8_t *rows = src + s.base + t * s.per_tap;
        for (size_t c = 0; c < channels; c++) {
            const uint8_t *row = rows + c * s.per_channel;
            int8_t *to = dst + byte_at(p, t, c);
            for (size_t n = 0; n < s.columns; n++) {
                to[4 * n] = (int8_t)(row[n * s.per_column] ^ flip);
                sums[n] += to[4 * n];
            }
        }
    }
}

static void unpack_quads(const lnt_packed *p, const int8_t *src, uint8_t flip, size_t panel, uint8_t *dst)
{
    const panel_source s = source_of(p, panel);
    const size_t channels = p->K / p->taps;
    for (size_t t = 0; t < p->taps; t++)
        for (size_t c = 0; c < channels; c++) {
            const int8_t *row = src + byte_at(p, t, c);
            uint8_t *to = dst + s.base + t * s.per_tap + c * s.per_channel;
            for (size_t n = 0; n < s.columns; n++)
                to[n * s.per_column] = (uint8_t)row[4 * n] ^ flip;
        }
}

/* ---- panels of floats ---- */

/* Gives the end of the panel, which is where the next one begins. */
static char *pack_panel(const lnt_packed *p, const float *src, size_t panel, char *to)
{
    panel_source s = source_of(p, panel);
    const size_t channels = p->K / p->taps;
    const lnt_dtype type = lnt_packed_element(p);
    const bool in_line = channels == 1 && p->phases == 1 && p->source == LNT_SOURCE_CONV;
    const size_t run = in_line ? p->K : channels; /* the taps of one channel are side by side */
    s.per_channel = in_line ? 1 : s.per_channel;
    for (uint32_t i = 0; run > 0 && i < (in_line ? 1 : p->taps); i++) { /* no memory holds taps of nothing */
        const uint32_t t = tap_at(p, i);
        if (!in_phase(p, t, s.phase))
            continue;
        if (!is_narrow(p))
            pack_rows(src + s.base + t * s.per_tap, &s, run, (float *)(void *)to);
        else
            pack_narrow_rows(type, src + s.base + t * s.per_tap, &s, run, (uint16_t *)(void *)to);
        to += run * LNT_PANEL * element_bytes(p);
    }
    return to;
}

static const char *unpack_panel(const lnt_packed *p, const char *from, size_t panel, float *dst)
{
    const panel_source s = source_of(p, panel);
    const size_t channels = p->K / p->taps;
    const lnt_dtype type = lnt_packed_element(p);
    for (uint32_t i = 0; channels > 0 && i < p->taps; i++) {
        const uint32_t t = tap_at(p, i);
        if (!in_phase(p, t, s.phase))
            continue;
        if (!is_narrow(p))
            unpack_rows((const float *)(const void *)from, &s, channels, dst + s.base + t * s.per_tap);
        else
            unpack_narrow_rows(type, (const uint16_t *)(const void *)from, &s, channels,
                               dst + s.base + t * s.per_tap);
        from += channels * LNT_PANEL * element_bytes(p);
    }
    return from;
}

/* ---- depthwise: the features of all groups side by side ---- */

/* Where element k = [tap][channel] of a feature is among its ONNX elements. */
static size_t depthwise_at(const lnt_packed *p, size_t k)
{
    const size_t channels = p->K / p->taps;
    return k % channels * p->taps + k / channels;
}

/* Element k of the features from `first` on, as many as a panel has columns. */
static void pack_depthwise_line(const lnt_packed *p, const float *src, size_t k, size_t first, float *line)
{
    const size_t features = (size_t)p->groups * p->N;
    for (size_t f = 0; f < LNT_PANEL; f++)
        line[f] = first + f < features ? src[(first + f) * p->K + depthwise_at(p, k)] : 0.0f;
}

static void pack_depthwise(const lnt_packed *p, const float *src, void *dst, size_t first, size_t last)
{
    const size_t padded = lnt_round_up((size_t)p->groups * p->N, LNT_PANEL);
    const lnt_dtype type = lnt_packed_element(p);
    float line[LNT_PANEL];
    for (size_t k = 0; k < p->K; k++)
        for (size_t f = first * LNT_PANEL; f < last * LNT_PANEL; f += LNT_PANEL) {
            pack_depthwise_line(p, src, k, f, is_narrow(p) ? line : (float *)dst + k * padded + f);
            if (is_narrow(p))
                narrow(type, line, LNT_PANEL, (uint16_t *)dst + k * padded + f);
        }
}

static void unpack_depthwise(const lnt_packed *p, const void *src, float *dst)
{
    const size_t features = (size_t)p->groups * p->N, padded = lnt_round_up(features, LNT_PANEL);
    const lnt_dtype type = lnt_packed_element(p);
    for (size_t k = 0; k < p->K; k++)
        for (size_t f = 0; f < features; f++) {
            float *to = dst + f * p->K + depthwise_at(p, k);
            if (!is_narrow(p))
                *to = ((const float *)src)[k * padded + f];
            else
                widen(type, (const uint16_t *)src + k * padded + f, 1, to);
        }
}

static void pack_depthwise_bytes(const lnt_packed *p, const uint8_t *src, uint8_t flip, int8_t *dst,
                                 size_t first, size_t last)
{
    const size_t channels = (size_t)p->groups * p->N, padded = lnt_round_up(channels, LNT_QPANEL);
    int32_t *sums = (int32_t *)(void *)(dst + lnt_packed_sums_at(p));
    for (size_t c = first * LNT_QPANEL; c < last * LNT_QPANEL; c++) {
        sums[c] = 0;
        for (size_t t = 0; t < p->taps; t++) {
            dst[t * padded + c] = c < channels ? (int8_t)(src[c * p->taps + t] ^ flip) : 0;
            sums[c] += dst[t * padded + c];
        }
    }
}

static void unpack_depthwise_bytes(const lnt_packed *p, const uint8_t *src, uint8_t flip, uint8_t *dst)
{
    const size_t channels = (size_t)p->groups * p->N, padded = lnt_round_up(channels, LNT_QPANEL);
    for (size_t t = 0; t < p->taps; t++)
        for (size_t c = 0; c < channels; c++)
            dst[c * p->taps + t] = src[t * padded + c] ^ flip;
}

/* ---- whole constants ---- */

void lnt_pack_panels(const lnt_packed *p, lnt_dtype type, const void *src, void *dst, size_t begin,
                     size_t end)
{
    LNT_ASSERT(begin <= end && end <= lnt_packed_panel_count(p));
    LNT_ASSERT(lnt_is_aligned(dst, 16));
    const uint8_t flip = type == LNT_UINT8 ? 0x80 : 0;
    if (arrangement(p) == LNT_LAYOUT_DEPTHWISE_F32) {
        pack_depthwise(p, src, dst, begin, end);
    } else if (p->layout == LNT_LAYOUT_DEPTHWISE_I8) {
        pack_depthwise_bytes(p, src, flip, dst, begin, end);
    } else if (lnt_packed_is_int8(p)) {
        const size_t bytes = lnt_packed_panel_bytes(p);
        int32_t *sums = (int32_t *)(void *)((int8_t *)dst + lnt_packed_sums_at(p));
        for (size_t i = begin; i < end; i++)
            pack_quads(p, src, flip, i, (int8_t *)dst + i * bytes, sums + i * LNT_QPANEL);
    } else {
        char *to = (char *)dst + panel_start(p, begin) * element_bytes(p);
        for (size_t i = begin; i < end; i++)
            to = pack_panel(p, src, i, to);
    }
}

void lnt_pack(const lnt_packed *p, lnt_dtype type, const void *src, void *dst)
{
    lnt_pack_panels(p, type, src, dst, 0, lnt_packed_panel_count(p));
}

void lnt_unpack(const lnt_packed *p, lnt_dtype type, const void *src, void *dst)
{
    LNT_ASSERT(lnt_is_aligned(src, 16));
    const uint8_t flip = type == LNT_UINT8 ? 0x80 : 0;
    const size_t panels = lnt_packed_panel_count(p),
                 bytes = lnt_packed_is_int8(p) ? lnt_packed_panel_bytes(p) : 0;
    if (arrangement(p) == LNT_LAYOUT_DEPTHWISE_F32)
        unpack_depthwise(p, src, dst);
    else if (p->layout == LNT_LAYOUT_DEPTHWISE_I8)
        unpack_depthwise_bytes(p, src, flip, dst);
    else if (lnt_packed_is_int8(p))
        for (size_t i = 0; i < panels; i++)
            unpack_quads(p, (const int8_t *)src + i * bytes, flip, i, dst);
    else
        for (size_t i = 0; i < panels; i++)
            src = unpack_panel(p, src, i, dst);
}
