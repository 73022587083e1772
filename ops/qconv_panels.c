/* qconv_panels.c — convolutions of bytes by panels: an image is brought to channels-last order, the
 * neighbourhoods of a few pixels are gathered as rows and multiplied with the packed weights. */
#include "ops/qconv.h"

#include "base/checked.h"
#include "ops/gemm_driver.h"

#include <string.h>

enum { PIXELS = 28, TURN = 64 }; /* pixels gathered, or turned to channels-last, at a time */

/* Pixels [begin, end) of the image to channels-last order, as uint8. */
static lnt_status turn_pixels(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_qconv_job *j = arg;
    const lnt_qconv *p = j->p;
    const int64_t size = p->w.in[0] * p->w.in[1] * p->w.in[2];
    const uint8_t flip = p->x_signed ? 0x80 : 0;
    (void)k, (void)thread;
    for (int64_t first = begin; first < end; first += TURN) {
        const int64_t last = first + TURN < end ? first + TURN : end;
        lnt_turn_bytes(j->x + first, p->channels, last - first, size, j->image + first * p->channels,
                       p->channels, flip);
    }
    return LNT_OK;
}

/* A panel's raw sums [pixels][16] to the output [filter][position] from position `at` on, zero points taken
 * out. */
static void store_panel(const lnt_qconv_job *j, int32_t *acc, const int32_t *row_sums, int64_t pixels,
                        int64_t group, int64_t panel, int64_t at)
{
    const lnt_qconv *p = j->p;
    const int64_t first = panel * LNT_QPANEL, plane = p->w.out[0] * p->w.out[1] * p->w.out[2];
    const int64_t n = p->columns - first < LNT_QPANEL ? p->columns - first : LNT_QPANEL;
    const int64_t f = group * p->columns + first;
    const int32_t *sums = j->column_sums + (group * p->panels + panel) * LNT_QPANEL;
    const uint32_t terms = (uint32_t)(p->taps * p->depth);
    uint8_t bytes[PIXELS * LNT_QPANEL];
    for (int64_t i = 0; i < pixels; i++) {
        const uint32_t rest = (uint32_t)row_sums[i] - terms * (uint32_t)j->x_zero;
        int32_t *row = acc + i * LNT_QPANEL;
        p->row->take_zeros(row, n, j->x_zero, sums, (int32_t)rest, j->zero + f, j->bias + f);
        if (p->linear)
            p->row->requantise_each(row, bytes + i * LNT_QPANEL, n, j->scale + f, j->y_zero, j->y_signed);
    }
    if (p->linear) {
        lnt_turn_bytes(bytes, pixels, n, LNT_QPANEL, j->y + f * plane + at, plane, 0);
        return;
    }
    for (int64_t c = 0; c < n; c++) {
        int32_t *y = (int32_t *)(void *)j->y + (f + c) * plane + at;
        for (int64_t i = 0; i < pixels; i++)
            y[i] = acc[i * LNT_QPANEL + c];
    }
}

static int32_t sum_of(const uint8_t *row, int64_t n)
{
    int32_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += row[i];
    return total;
}

/* Item: a block of pixels of a group. */
static lnt_status convolve_pixels(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_qconv_job *j = arg;
    const lnt_qconv *p = j->p;
    const int64_t plane = p->w.out[0] * p->w.out[1] * p->w.out[2], blocks = (plane + PIXELS - 1) / PIXELS;
    uint8_t *rows = (uint8_t *)j->scratch + p->thread_at + thread * p->thread_bytes;
    const uint8_t *a[PIXELS];
    int32_t acc[PIXELS * LNT_QPANEL], row_sums[PIXELS];
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item / blocks, at = item % blocks * PIXELS;
        const int64_t pixels = plane - at < PIXELS ? plane - at : PIXELS;
        for (int64_t i = 0; i < pixels; i++) {
            a[i] = lnt_qneighbours_of(&p->rows, j->image, at + i, group, (uint8_t)j->x_zero,
                                      rows + i * p->row_bytes);
            row_sums[i] = j->sums_count ? sum_of(a[i], p->row_bytes) : 0;
        }
        for (int64_t panel = 0; panel < p->panels; panel++) {
            const int8_t *b = j->packed + (group * p->panels + panel) * p->row_bytes * LNT_QPANEL;
            for (int64_t i = 0; i < pixels; i += p->kernels->rows) {
                const unsigned n = pixels - i < p->kernels->rows ? (unsigned)(pixels - i) : p->kernels->rows;
                p->kernels->tile(a + i, n, b, p->row_bytes / 4, acc + i * LNT_QPANEL);
            }
            store_panel(j, acc, row_sums, pixels, group, panel, at);
        }
    }
    return LNT_OK;
}

lnt_status lnt_qconv_run_panels(lnt_kernel *k, lnt_qconv_job *j)
{
    const lnt_qconv *p = j->p;
    const int64_t size = p->w.in[0] * p->w.in[1] * p->w.in[2],
                  plane = p->w.out[0] * p->w.out[1] * p->w.out[2];
    const uint8_t *x = j->x;
    const size_t out_bytes = (size_t)(p->filters * plane) * lnt_dtype_size(j->s->out[0]->dtype);
    j->image = (uint8_t *)j->scratch + p->image_at;
    j->packed = p->pack ? (const int8_t *)j->scratch + p->packed_at : (const int8_t *)j->w;
    j->column_sums = (const int32_t *)(const void *)(j->packed + lnt_packed_sums_at(&p->record));
    j->x_zero += p->x_signed ? 128 : 0;
    j->sums_count = false;
    for (int64_t f = 0; f < p->filters; f++) {
        j->zero[f] -= p->w_signed ? 0 : 128;
        j->sums_count |= j->zero[f] != 0;
    }
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, p->w_signed ? LNT_INT8 : LNT_UINT8, j->w,
                              j->scratch + p->packed_at));
    const int64_t blocks = (plane + PIXELS - 1) / PIXELS,
                  work = PIXELS * p->row_bytes * LNT_QPANEL * p->panels;
    for (int64_t image = 0; image < p->batch; image++, j->y += out_bytes) {
        j->x = x + image * p->channels * size;
        LNT_TRY(lnt_parallel(k, size, TURN * (1 + 1024 / (p->channels + 1)), turn_pixels, j));
        LNT_TRY(lnt_parallel(k, p->groups * blocks, 1 + 524288 / (work + 1), convolve_pixels, j));
    }
    return LNT_OK;
}

lnt_status lnt_qconv_bind_panels(lnt_site *site, lnt_qconv *p)
{
    size_t packed;
    LNT_REQUIRE(lnt_packed_bytes(&p->record, &packed), site->err, LNT_E_LIMIT, "the weights are too large");
    p->depth = p->channels / p->groups;
    p->columns = p->filters / p->groups;
    p->row_bytes = lnt_qrow_bytes(&p->record);
    p->panels = lnt_qpanels(&p->record);
    p->rows = lnt_qneighbours_bind(&p->w, p->groups, p->depth);
    p->pack = !site->in[p->w_in]->packed;
    p->thread_bytes = lnt_round_up((size_t)(PIXELS * p->row_bytes), LNT_ALIGN);
    p->image_at = p->thread_at + p->thread_bytes * site->threads;
    p->packed_at =
        p->image_at + lnt_round_up((size_t)(p->channels * p->w.in[0] * p->w.in[1] * p->w.in[2]), LNT_ALIGN);
    lnt_bind_scratch(site, p->packed_at + (p->pack ? packed : 0));
    return LNT_OK;
}
