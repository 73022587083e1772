/* roialign.inc.h — RoiAlign and DeformConv in one type, R; included by roialign.c with R, NAME and ROW. */

/* Four neighbors of (y, x) and their weights: 0 of those that are not there. */
static void NAME(neighbors)(int64_t height, int64_t width, R y, R x, NAME(lnt_tap) tap[4])
{
    const int64_t cut_y = (int64_t)y, cut_x = (int64_t)x;
    const int64_t top = cut_y - ((R)cut_y > y), left = cut_x - ((R)cut_x > x);
    const R fy = y - (R)top, fx = x - (R)left;
    const bool up = top >= 0 && top < height, down = top >= -1 && top < height - 1;
    const bool before = left >= 0 && left < width, behind = left >= -1 && left < width - 1;
    const R above = up ? 1 - fy : 0, below = down ? fy : 0;
    const int64_t at = top * width + left;
    tap[0] = (NAME(lnt_tap)){up && before ? at : 0, above * (before ? 1 - fx : 0)};
    tap[1] = (NAME(lnt_tap)){up && behind ? at + 1 : 0, above * (behind ? fx : 0)};
    tap[2] = (NAME(lnt_tap)){down && before ? at + width : 0, below * (before ? 1 - fx : 0)};
    tap[3] = (NAME(lnt_tap)){down && behind ? at + width + 1 : 0, below * (behind ? fx : 0)};
}

/* A point of a region: brought to the image's border within one element, nothing beyond. */
static void NAME(roi_point)(const roialign *p, R y, R x, NAME(lnt_tap) tap[4])
{
    const R bottom = (R)(p->height - 1), right = (R)(p->width - 1);
    if (!(y >= -1 && y <= (R)p->height && x >= -1 && x <= (R)p->width)) {
        memset(tap, 0, 4 * sizeof *tap);
        return;
    }
    NAME(neighbors)
    (p->height, p->width, y < 0 ? 0 : y > bottom ? bottom : y, x < 0 ? 0 : x > right ? right : x, tap);
}

/* A bin of size [h, w] from [y, x] on, sampled at [n_y, n_x] points. */
typedef struct NAME(roi_bin) {
    R y, x, h, w;
    int64_t n_y, n_x;
} NAME(roi_bin);

/* Bins of one region, side by side, for some channels. */
typedef struct NAME(roi_bins) {
    lnt_kernel *k;
    const roialign *p;
    const R *x; /* of the region's image */
    R *y;       /* the first of the outputs whose taps are known */
    int64_t channels;
    NAME(lnt_taps) taps; /* 4 of each point */
} NAME(roi_bins);

/* y[c * y_plane + i] = the largest part at any of an output's points. */
static void NAME(max_taps)(const NAME(lnt_taps) * taps, const R *x, int64_t plane, R *y, int64_t y_plane,
                           int64_t channels)
{
    for (int64_t c = 0; c < channels; c++, x += plane, y += y_plane) {
        const NAME(lnt_tap) *tap = taps->tap;
        for (int64_t i = 0; i < taps->points; i++) {
            const NAME(lnt_tap) *const end = tap + taps->count[i];
            const bool onto = i == 0 && taps->onto;
            R most = onto ? y[i] : tap < end ? tap->weight * x[tap->at] : 0;
            for (; tap < end; tap += 4) {
                R part[4];
#pragma GCC unroll 4
                for (int t = 0; t < 4; t++)
                    part[t] = tap[t].weight * x[tap[t].at];
                const R a = part[0] > part[1] ? part[0] : part[1], b = part[2] > part[3] ? part[2] : part[3];
                const R largest = a > b ? a : b;
                most = largest > most ? largest : most;
            }
            y[i] = most;
        }
    }
}

/* Pixels: y[i * pixel + c] = output i of channel c of x [plane][pixel]. A point's taps are two pairs of neighbors. */
static void NAME(sum_pixels)(const roialign *p, const NAME(lnt_taps) * taps, const R *x, R *y,
                             int64_t channels)
{
    const NAME(lnt_tap) *tap = taps->tap;
    for (int64_t i = 0; i < taps->points; i++, y += p->channels) {
        const NAME(lnt_tap) *const end = tap + taps->count[i];
        if (i > 0 || !taps->onto)
            memset(y, 0, (size_t)channels * sizeof *y);
        for (; tap < end; tap += 2)
            ROW(p)->add_scaled(y, x + tap->at * p->channels, (tap[1].at - tap->at) * p->channels,
                               (const R[]){tap->weight, tap[1].weight}, 2, channels);
    }
}

/* y[i * pixel + c] = the largest part of channel c at any of output i's points. */
static void NAME(max_pixels)(const roialign *p, const NAME(lnt_taps) * taps, const R *x, R *y,
                             int64_t channels)
{
    const NAME(lnt_tap) *tap = taps->tap;
    for (int64_t i = 0; i < taps->points; i++, y += p->channels) {
        const NAME(lnt_tap) *const end = tap + taps->count[i];
        if (i > 0 || !taps->onto)
            for (int64_t c = 0; c < channels; c++)
                y[c] = tap < end ? tap->weight * x[tap->at * p->channels + c] : 0;
        for (; tap < end; tap++) {
            const R *from = x + tap->at * p->channels;
            for (int64_t c = 0; c < channels; c++) {
                const R part = tap->weight * from[c];
                y[c] = part > y[c] ? part : y[c];
            }
        }
    }
}

/* Outputs of the taps known; the last one goes on. A deadline ends it: a bin may have millions of points. */
static lnt_status NAME(write_bins)(NAME(roi_bins) * r)
{
    const roialign *p = r->p;
    if (p->last)
        (p->maximum ? NAME(max_pixels) : NAME(sum_pixels))(p, &r->taps, r->x, r->y, r->channels);
    else
        (p->maximum ? NAME(max_taps) : NAME(lnt_sum_taps))(&r->taps, r->x, p->height * p->width, r->y,
                                                           p->out_height * p->out_width, r->channels);
    r->y += (r->taps.points - 1) * (p->last ? p->channels : 1);
    r->taps.points = 1;
    r->taps.used = r->taps.count[0] = 0;
    r->taps.onto = true;
    return lnt_poll(r->k);
}

static lnt_status NAME(add_point)(NAME(roi_bins) * r, R y, R x, R share)
{
    if (r->taps.used == LNT_TAPS)
        LNT_TRY(NAME(write_bins)(r));
    NAME(lnt_tap) *tap = r->taps.tap + r->taps.used;
    NAME(roi_point)(r->p, y, x, tap);
    for (int t = 0; t < 4; t++)
        tap[t].weight *= share;
    r->taps.used += 4;
    r->taps.count[r->taps.points - 1] += 4;
    return LNT_OK;
}

/* Points outside count as 0; many of them are not looked at, for the largest part they are one. */
static lnt_status NAME(add_bin)(NAME(roi_bins) * r, const NAME(roi_bin) * bin)
{
    const roialign *p = r->p;
    const int64_t n_y = bin->n_y, n_x = bin->n_x;
    const R share = p->maximum || n_y * n_x == 0 ? 1 : 1 / (R)(n_y * n_x);
    int64_t top, bottom, left, right;
    points_near((double)bin->y, (double)(bin->h / (R)n_y), n_y, p->height, &top, &bottom);
    points_near((double)bin->x, (double)(bin->w / (R)n_x), n_x, p->width, &left, &right);
    /* The first taps must have room: an output goes on only from some of its own. */
    if (r->taps.points == LNT_TAPS_POINTS || r->taps.used == LNT_TAPS)
        LNT_TRY(NAME(write_bins)(r));
    r->taps.count[r->taps.points++] = 0;
    if (p->maximum && (bottom - top) * (right - left) < n_y * n_x)
        LNT_TRY(NAME(add_point)(r, -2, -2, 0));
    for (int64_t i = top; i < bottom; i++) {
        const R y = bin->y + ((R)i + (R)0.5) * bin->h / (R)n_y;
        for (int64_t j = left; j < right; j++)
            LNT_TRY(NAME(add_point)(r, y, bin->x + ((R)j + (R)0.5) * bin->w / (R)n_x, share));
    }
    return LNT_OK;
}

/* Points along an extent of a bin. */
static int64_t NAME(points_of)(const roialign *p, R extent)
{
    const double most = 0x1p15;
    if (p->ratio > 0)
        return p->ratio;
    return extent > 0 ? (int64_t)ceil((double)extent < most ? (double)extent : most) : 0;
}

/* Bin b of a region. */
static NAME(roi_bin) NAME(bin_of)(const roialign *p, const R *roi, int64_t b)
{
    const R shift = p->half_pixel ? (R)0.5 : 0, scale = (R)p->scale;
    const R left = roi[0] * scale - shift, top = roi[1] * scale - shift;
    R width = roi[2] * scale - shift - left, height = roi[3] * scale - shift - top;
    if (!p->half_pixel) {
        width = width > 1 ? width : 1;
        height = height > 1 ? height : 1;
    }
    const R h = height / (R)p->out_height, w = width / (R)p->out_width;
    return (NAME(roi_bin)){.y = top + (R)(b / p->out_width) * h,
                           .x = left + (R)(b % p->out_width) * w,
                           .h = h,
                           .w = w,
                           .n_y = NAME(points_of)(p, h),
                           .n_x = NAME(points_of)(p, w)};
}

/* Item: a bin of a region, for a block of channels. */
static lnt_status NAME(bins)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const roialign_job *j = arg;
    const roialign *p = j->p;
    const int64_t bins = p->out_height * p->out_width, plane = p->height * p->width;
    NAME(roi_bins) r;
    (void)thread;
    r.k = k;
    r.p = p;
    for (int64_t item = begin, last; item < end; item = last) {
        const int64_t n = item / bins / p->blocks, c = item / bins % p->blocks * CHANNELS, b = item % bins;
        const int64_t left = p->channels - c;
        last = end - item < bins - b ? end : item + bins - b;
        const int64_t image = j->batch[n] * p->channels * plane, region = n * p->channels * bins;
        r.x = (const R *)j->x + image + c * (p->last ? 1 : plane);
        r.y = (R *)j->y + region + (p->last ? b * p->channels + c : c * bins + b);
        r.channels = left < CHANNELS ? left : CHANNELS;
        r.taps.points = r.taps.used = 0;
        r.taps.onto = false;
        for (; item < last; item++) {
            const NAME(roi_bin) bin = NAME(bin_of)(p, (const R *)j->rois + n * 4, item % bins);
            LNT_TRY(NAME(add_bin)(&r, &bin));
        }
        LNT_TRY(NAME(write_bins)(&r));
    }
    return LNT_OK;
}

/* Tap t of the kernel at output position (oy, ox): four neighbors of where the offsets move it. */
static void NAME(deform_tap)(const deform_job *j, int64_t entry, int64_t oy, int64_t ox, int64_t t,
                             NAME(lnt_tap) tap[4])
{
    const lnt_window *w = &j->p->w;
    const int64_t points = w->out[1] * w->out[2], here = oy * w->out[2] + ox;
    const R *offset = (const R *)j->offset + (entry + t) * 2 * points + here;
    const R factor = j->mask ? ((const R *)j->mask)[(entry + t) * points + here] : 1;
    const int64_t ky = t / w->kernel[2], kx = t % w->kernel[2];
    const R y = (R)(oy * w->stride[1] - w->before[1] + ky * w->dilation[1]) + offset[0];
    const R x = (R)(ox * w->stride[2] - w->before[2] + kx * w->dilation[2]) + offset[points];
    memset(tap, 0, 4 * sizeof *tap);
    if (y > -1 && y < (R)w->in[1] && x > -1 && x < (R)w->in[2])
        NAME(neighbors)(w->in[1], w->in[2], y, x, tap);
    for (int i = 0; i < 4; i++)
        tap[i].weight *= factor;
}

/* The values output position (oy, ox) depends on, [channels][taps], at positions moved by the offsets. */
static void NAME(deform_gather)(const deform_job *j, int64_t image, int64_t oy, int64_t ox, R *value)
{
    const deform *p = j->p;
    const int64_t plane = p->w.in[1] * p->w.in[2], per_group = p->channels / p->offset_groups;
    NAME(lnt_taps) taps;
    taps.onto = false;
    for (int64_t g = 0; g < p->offset_groups; g++)
        for (int64_t t = 0; t < p->taps; t += taps.points) {
            const int64_t entry = (image * p->offset_groups + g) * p->taps, rest = p->taps - t;
            taps.points = rest < LNT_TAPS / 4 ? rest : LNT_TAPS / 4;
            for (int64_t i = 0; i < taps.points; i++) {
                taps.count[i] = 4;
                NAME(deform_tap)(j, entry, oy, ox, t + i, taps.tap + 4 * i);
            }
            NAME(lnt_sum_taps)
            (&taps, (const R *)j->x + (image * p->channels + g * per_group) * plane, plane,
             value + g * per_group * p->taps + t, p->taps, per_group);
        }
}

static lnt_status NAME(deform_points)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const deform_job *j = arg;
    const deform *p = j->p;
    const int64_t points = p->w.out[1] * p->w.out[2], depth = p->channels / p->groups * p->taps;
    R *value = (R *)((char *)j->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / points, here = item % points;
        NAME(deform_gather)(j, image, here / p->w.out[2], here % p->w.out[2], value);
        for (int64_t f = 0; f < p->filters; f++) {
            const int64_t group = f / (p->filters / p->groups);
            const R bias = j->bias ? ((const R *)j->bias)[f] : 0;
            ((R *)j->y)[(image * p->filters + f) * points + here] =
                bias + ROW(p)->dot((const R *)j->weights + f * depth, value + group * depth, depth);
        }
    }
    return LNT_OK;
}
