/* roialign.inc.h — RoiAlign and DeformConv in one type, R; included by roialign.c with R, NAME and ROW. */

/* Four neighbours of (y, x) and their weights. */
static void NAME(neighbours)(int64_t height, int64_t width, R y, R x, int64_t at[4], R weight[4])
{
    const R top = (R)floor((double)y), left = (R)floor((double)x), fy = y - top, fx = x - left;
    for (int i = 0; i < 4; i++) {
        const int64_t iy = (int64_t)top + i / 2, ix = (int64_t)left + i % 2;
        weight[i] = (i / 2 ? fy : 1 - fy) * (i % 2 ? fx : 1 - fx);
        at[i] = 0;
        if (iy < 0 || iy >= height || ix < 0 || ix >= width)
            weight[i] = 0;
        else
            at[i] = iy * width + ix;
    }
}

/* A point of a region: brought to the image's border within one element, nothing beyond. */
static void NAME(roi_point)(const roialign *p, R y, R x, int64_t at[4], R weight[4])
{
    const R bottom = (R)(p->height - 1), right = (R)(p->width - 1);
    if (!(y >= -1 && y <= (R)p->height && x >= -1 && x <= (R)p->width)) {
        memset(at, 0, 4 * sizeof *at);
        memset(weight, 0, 4 * sizeof *weight);
        return;
    }
    NAME(neighbours)
    (p->height, p->width, y < 0 ? 0 : y > bottom ? bottom : y, x < 0 ? 0 : x > right ? right : x, at, weight);
}

/* A bin of size [h, w] from [y, x] on, sampled at [n_y, n_x] points. */
typedef struct NAME(roi_bin) {
    R y, x, h, w;
    int64_t n_y, n_x;
} NAME(roi_bin);

/* A bin of the first channels of x. Points outside count as 0; many of them are not looked at. */
static void NAME(sample)(const roialign *p, const R *x, R *y, int64_t channels, const NAME(roi_bin) * bin)
{
    const int64_t plane = p->height * p->width, step = p->out_height * p->out_width;
    const int64_t n_y = bin->n_y, n_x = bin->n_x;
    const R share = n_y * n_x > 1 ? 1 / (R)(n_y * n_x) : 1;
    int64_t top, bottom, left, right;
    points_near((double)bin->y, (double)(bin->h / (R)n_y), n_y, p->height, &top, &bottom);
    points_near((double)bin->x, (double)(bin->w / (R)n_x), n_x, p->width, &left, &right);
    bool first = (bottom - top) * (right - left) == n_y * n_x;
    for (int64_t c = 0; c < channels; c++)
        y[c * step] = 0;
    for (int64_t i = top * (right - left); i < bottom * (right - left); i++, first = false) {
        const int64_t row = i / (right - left), column = left + i % (right - left);
        int64_t at[4];
        R weight[4];
        NAME(roi_point)
        (p, bin->y + ((R)row + (R)0.5) * bin->h / (R)n_y, bin->x + ((R)column + (R)0.5) * bin->w / (R)n_x, at,
         weight);
        for (int64_t c = 0; c < channels; c++) {
            const R *v = x + c * plane;
            R *to = y + c * step, total = 0, largest = weight[0] * v[at[0]];
            for (int t = 0; t < 4; t++) {
                const R part = weight[t] * v[at[t]];
                total += part;
                largest = part > largest ? part : largest;
            }
            if (!p->maximum)
                *to += total * share;
            else if (first || largest > *to)
                *to = largest;
        }
    }
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
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t n = item / p->blocks / bins, b = item / p->blocks % bins;
        const int64_t c = item % p->blocks * CHANNELS, left = p->channels - c;
        const NAME(roi_bin) bin = NAME(bin_of)(p, (const R *)j->rois + n * 4, b);
        NAME(sample)
        (p, (const R *)j->x + (j->batch[n] * p->channels + c) * plane,
         (R *)j->y + (n * p->channels + c) * bins + b, left < CHANNELS ? left : CHANNELS, &bin);
    }
    return LNT_OK;
}

/* The values output position (oy, ox) hangs on, [channels][taps], at positions moved by the offsets. */
static void NAME(deform_gather)(const deform_job *j, int64_t image, int64_t oy, int64_t ox, R *value)
{
    const deform *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t points = w->out[1] * w->out[2], here = oy * w->out[2] + ox, plane = w->in[1] * w->in[2];
    const int64_t per_group = p->channels / p->offset_groups;
    for (int64_t g = 0; g < p->offset_groups; g++)
        for (int64_t t = 0; t < p->taps; t++) {
            const int64_t entry = (image * p->offset_groups + g) * p->taps + t;
            const R *offset = (const R *)j->offset + entry * 2 * points + here;
            const R factor = j->mask ? ((const R *)j->mask)[entry * points + here] : 1;
            const int64_t ky = t / w->kernel[2], kx = t % w->kernel[2];
            const R y = (R)(oy * w->stride[1] - w->before[1] + ky * w->dilation[1]) + offset[0];
            const R x = (R)(ox * w->stride[2] - w->before[2] + kx * w->dilation[2]) + offset[points];
            int64_t at[4] = {0};
            R weight[4] = {0};
            if (y > -1 && y < (R)w->in[1] && x > -1 && x < (R)w->in[2])
                NAME(neighbours)(w->in[1], w->in[2], y, x, at, weight);
            for (int64_t c = g * per_group; c < (g + 1) * per_group; c++) {
                const R *v = (const R *)j->x + (image * p->channels + c) * plane;
                value[c * p->taps + t] = factor * (weight[0] * v[at[0]] + weight[1] * v[at[1]] +
                                                   weight[2] * v[at[2]] + weight[3] * v[at[3]]);
            }
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
