/* pooling.inc.h — pooling in one type, R; included by pooling.c with R, NAME, ROW and POOL.
 *
 * Maxima and sums are taken axis by axis. Plain images: the rows a window covers are joined into one row,
 * then that row's neighbors into outputs. Channels-last images: the pixels a window covers are joined, all
 * channels at once. */

/* acc += |x| ** order */
static void NAME(add_powers)(const pool *p, R *acc, const R *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] += (R)pow(fabs((double)x[i]), p->order);
}

/* Takes n elements of the input into the accumulators. */
static void NAME(take)(const pool *p, R *acc, const R *x, int64_t n)
{
    if (p->kind == MAX)
        ROW(p)->max_to(acc, x, n);
    else if (p->kind == AVERAGE)
        ROW(p)->add(acc, x, n);
    else if (p->order == 1)
        ROW(p)->add_abs(acc, x, n);
    else if (p->order == 2)
        ROW(p)->add_squares(acc, x, n);
    else
        NAME(add_powers)(p, acc, x, n);
}

static void NAME(start)(const pool *p, R *acc, int64_t n)
{
    if (p->kind != MAX && n > 0) /* of none there may be no address */
        memset(acc, 0, (size_t)n * sizeof *acc);
    for (int64_t i = 0; p->kind == MAX && i < n; i++)
        acc[i] = (R)-INFINITY;
}

/* Turns sums into results: count elements went into each. */
static void NAME(finish)(const pool *p, R *y, int64_t n, int64_t count)
{
    if (p->kind == AVERAGE) {
        ROW(p)->shift_scale(y, y, n, 0, count ? 1 / (R)count : 0, 0);
        return;
    }
    if (p->kind == LP && p->order != 1)
        for (int64_t i = 0; i < n; i++)
            y[i] = (R)(p->order == 2 ? sqrt((double)y[i]) : pow((double)y[i], 1 / p->order));
}

/* Rows that are to be joined into one: few at a time, so that the result stays in registers. An initializer
 * would set all of them, which takes longer than to join a few. */
typedef struct NAME(gather) {
    const R *rows[ROWS_MAX];
    int64_t n;
} NAME(gather);

static void NAME(gather_end)(const pool *p, NAME(gather) * g, R *to, int64_t width)
{
    if (g->n > 1 || (g->n == 1 && g->rows[0] != to))
        (p->kind == MAX ? ROW(p)->max_rows : ROW(p)->sum_rows)(g->rows, g->n, to, width);
}

/* Adds row to what is joined into `to`, which holds the start value if the rows need work one by one (Lp). */
static void NAME(gather_add)(const pool *p, NAME(gather) * g, const R *row, R *to, int64_t width)
{
    if (p->kind == LP) {
        NAME(take)(p, to, row, width);
        return;
    }
    if (g->n == ROWS_MAX) {
        NAME(gather_end)(p, g, to, width);
        g->rows[0] = to;
        g->n = 1;
    }
    g->rows[g->n++] = row;
}

/* Finds the lines that the windows of a row of outputs cover; how many there are. None where they are joined at
 * `inside` already: they need work one by one, are too many, too short, or there is none. */
static int64_t NAME(lines_of_row)(const pool *p, const R *x, const row_place *at, const R **lines, R *inside)
{
    const lnt_window *w = &p->w;
    NAME(gather) g;
    int64_t z0, z1, y0, y1, n = 0;
    lnt_window_taps(w, 0, at->o[0], &z0, &z1);
    lnt_window_taps(w, 1, at->o[1], &y0, &y1);
    const int64_t all = (z1 - z0) * (y1 - y0);
    const bool join = p->kind == LP || all > ROWS_MAX || w->in[2] < LNT_POOL_WIDE;
    g.n = 0;
    if (p->kind == LP || all == 0)
        NAME(start)(p, inside, w->in[2]);
    for (int64_t tz = z0; tz < z1; tz++)
        for (int64_t ty = y0; ty < y1; ty++) {
            const int64_t iz = lnt_window_at(w, 0, at->o[0], tz), iy = lnt_window_at(w, 1, at->o[1], ty);
            const R *line = x + (iz * w->in[1] + iy) * w->in[2];
            if (join)
                NAME(gather_add)(p, &g, line, inside, w->in[2]);
            else
                lines[n++] = line;
        }
    NAME(gather_end)(p, &g, inside, w->in[2]);
    return n;
}

/* of->rows rows of outputs from `at` on, whose windows have as many lines and as many that count. */
static void NAME(window_rows)(const pool_job *j, const row_place *at, lnt_pool_lines *of, R *acc)
{
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const R *x = (const R *)j->x + at->image * lnt_volume(w->in), *lines[ROWS_MAX];
    R *y = (R *)j->y + at->row * w->out[2];
    const int64_t n = NAME(lines_of_row)(p, x, at, lines, acc + p->inside);
    of->begin = at->part * p->part;
    of->end = lnt_least(of->begin + p->part, w->out[2]);
    of->rows = n ? of->rows : 1;
    if (p->kind == MAX) {
        POOL(p)->max_window(of, lines, n, acc, y);
        return;
    }
    const int64_t count = p->kind == AVERAGE ? lines_counted(p, at) : 1;
    POOL(p)->sum_window(of, lines, n, acc, y, count ? 1 / (R)count : 0, p->share);
    if (p->kind == LP)
        NAME(finish)(p, y + of->begin, of->end - of->begin, 1);
}

/* Rows of outputs of plain images: at a time some of a plane, or those of a place in p->planes planes. */
static lnt_status NAME(plain_rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t of_plane = w->out[0] * w->out[1];
    R *acc = (R *)((char *)j->scratch + thread * p->thread_bytes);
    lnt_pool_lines of = {.in = w->in[2],
                         .inside = p->inside,
                         .stride = w->stride[2],
                         .taps = p->taps,
                         .dilation = w->dilation[2],
                         .together = p->together,
                         .acc_step = p->padded};
    row_place at = place_of_row(p, begin);
    (void)k;
    NAME(start)(p, acc, p->together * p->padded + LNT_POOL_SLACK);
    for (int64_t item = begin; item < end;) {
        const int64_t planes = at.row % of_plane ? 1 : lnt_least(p->planes, (end - item) / of_plane);
        if (planes > 1) {
            of.line_step = lnt_volume(w->in);
            of.y_step = of_plane * w->out[2];
            of.rows = planes;
            for (int64_t row = 0; row < of_plane; row++, next_row(p, &at, 1))
                NAME(window_rows)(j, &at, &of, acc);
            at.image += planes - 1;
            at.row += (planes - 1) * of_plane;
            item += planes * of_plane;
            continue;
        }
        of.line_step = w->stride[1] * w->in[2];
        of.y_step = w->out[2];
        of.rows = rows_alike(p, &at, end - item);
        NAME(window_rows)(j, &at, &of, acc);
        next_row(p, &at, of.rows);
        item += of.rows;
    }
    return LNT_OK;
}

/* One output of a channels-last image, pixel by pixel: Lp norms, windows without any pixel. */
static void NAME(deep_pixel)(const pool_job *j, int64_t image, const int64_t o[3], R *y)
{
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t C = p->channels;
    int64_t z, z1, y0, y1, x0, x1;
    lnt_window_taps(w, 1, o[1], &y0, &y1);
    lnt_window_taps(w, 2, o[2], &x0, &x1);
    NAME(start)(p, y, C);
    for (lnt_window_taps(w, 0, o[0], &z, &z1); z < z1; z++)
        for (int64_t ty = y0; ty < y1; ty++)
            for (int64_t tx = x0; tx < x1; tx++) {
                const int64_t iz = lnt_window_at(w, 0, o[0], z), iy = lnt_window_at(w, 1, o[1], ty);
                const int64_t line = (image * w->in[0] + iz) * w->in[1] + iy;
                const int64_t at = line * w->in[2] + lnt_window_at(w, 2, o[2], tx);
                NAME(take)(p, y, (const R *)j->x + at * j->in_pixel, C);
            }
}

/* Rows of one image that the windows of a row of outputs cover. */
typedef struct NAME(deep_window) {
    int64_t image, o[3];
    const R *lines[ROWS_MAX];
    int64_t n;     /* of lines */
    int64_t count; /* of rows in the average */
} NAME(deep_window);

/* Outputs from d->o[2] to before end: they have the same taps along x. */
static void NAME(deep_run)(const pool_job *j, const NAME(deep_window) * d, int64_t end, R *y)
{
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t C = p->channels, n = end - d->o[2], in = j->in_pixel, out = j->out_pixel;
    int64_t x0, x1;
    const int64_t count = d->count * counted(p, 2, d->o[2], &x0, &x1);
    if (p->kind == LP || d->n == 0 || x0 == x1) {
        for (int64_t i = 0; i < n; i++)
            NAME(deep_pixel)(j, d->image, (int64_t[]){d->o[0], d->o[1], d->o[2] + i}, y + i * out);
    } else {
        const R *from[ROWS_MAX];
        for (int64_t l = 0; l < d->n; l++)
            from[l] = d->lines[l] + lnt_window_at(w, 2, d->o[2], x0) * in;
        (p->kind == MAX ? POOL(p)->max_pixels : POOL(p)->sum_pixels)(from, d->n, x1 - x0, w->dilation[2] * in,
                                                                     y, out, n, w->stride[2] * in, C);
    }
    const int64_t together = out == C ? n : 1;
    for (int64_t i = 0; i < n; i += together)
        NAME(finish)(p, y + i * out, together * C, count);
}

/* Finds the rows d->lines: all of them, or one that joins them in acc where windows share much. */
static void NAME(find_lines)(const pool_job *j, NAME(deep_window) * d, R *acc)
{
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t line = w->in[2] * j->in_pixel;
    NAME(gather) g;
    int64_t z, z1, y0, y1;
    g.n = 0;
    d->count = counted(p, 0, d->o[0], &z, &z1) * counted(p, 1, d->o[1], &y0, &y1);
    d->n = 0;
    const int64_t all = (z1 - z) * (y1 - y0);
    const bool join = all > ROWS_MAX || (all > 1 && p->joins);
    if (p->kind == LP)
        return;
    for (; z < z1; z++)
        for (int64_t ty = y0; ty < y1; ty++) {
            const int64_t iz = lnt_window_at(w, 0, d->o[0], z), iy = lnt_window_at(w, 1, d->o[1], ty);
            const R *row = (const R *)j->x + ((d->image * w->in[0] + iz) * w->in[1] + iy) % j->lines * line;
            if (join)
                NAME(gather_add)(p, &g, row, acc, line);
            else
                d->lines[d->n++] = row;
        }
    if (join) {
        NAME(gather_end)(p, &g, acc, line);
        d->lines[d->n++] = acc;
    }
}

/* Rows of outputs of channels-last images. */
static lnt_status NAME(deep_rows)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const lnt_window *w = &p->w;
    R *acc = (R *)((char *)j->scratch + thread * p->thread_bytes);
    (void)k;
    row_place at = place_of_row(p, begin);
    for (int64_t item = begin; item < end; item++, next_row(p, &at, 1)) {
        const int64_t from = at.part * p->part, to = lnt_least(from + p->part, w->out[2]);
        NAME(deep_window) d;
        d.image = at.image;
        d.o[0] = at.o[0];
        d.o[1] = at.o[1];
        d.o[2] = from;
        R *y = (R *)j->y + at.row * w->out[2] * j->out_pixel;
        NAME(find_lines)(j, &d, acc);
        while (d.o[2] < to) {
            const int64_t ox = d.o[2], inner = p->inner[1] < to ? p->inner[1] : to,
                          end_x = ox >= p->inner[0] && ox < inner ? inner : ox + 1;
            NAME(deep_run)(j, &d, end_x, y + ox * j->out_pixel);
            d.o[2] = end_x;
        }
    }
    return LNT_OK;
}

/* Whole plain images to one number each. */
static lnt_status NAME(plain_images)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const int64_t n = p->positions;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const R *x = (const R *)j->x + i * n;
        R *y = (R *)j->y + i;
        if (sizeof(R) == sizeof(float) && p->kind == MAX && n < A_CALL) {
            R largest = (R)-INFINITY;
            bool is_nan = false;
            for (int64_t e = 0; e < n; e++) {
                largest = x[e] > largest ? x[e] : largest;
                is_nan |= x[e] != x[e];
            }
            *y = is_nan ? (R)NAN : largest;
        } else if (p->kind == MAX)
            *y = ROW(p)->max(x, n);
        else if (p->kind == AVERAGE && n < A_CALL) {
            R sum = 0;
            for (int64_t e = 0; e < n; e++)
                sum += x[e];
            *y = sum / (R)n;
        } else if (p->kind == AVERAGE)
            *y = ROW(p)->sum(x, n) / (R)n;
        else {
            *y = p->order == 1 ? ROW(p)->sum_abs(x, n) : p->order == 2 ? ROW(p)->sum_squares(x, n) : 0;
            for (int64_t e = 0; e < n && p->order != 1 && p->order != 2; e++)
                NAME(add_powers)(p, y, x + e, 1);
            NAME(finish)(p, y, 1, n);
        }
    }
    return LNT_OK;
}

/* Parts of whole channels-last images to one row of channels each. */
static lnt_status NAME(deep_images)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const int64_t C = p->channels;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const R *x = (const R *)j->x + i / p->parts * p->positions * C;
        R *sums = (R *)(p->parts > 1 ? j->scratch : j->y) + i * C;
        NAME(gather) g;
        g.n = 0;
        if (p->kind == LP || p->positions == 0)
            NAME(start)(p, sums, C);
        const int64_t stop = lnt_cut(p->positions, p->parts, i % p->parts + 1);
        for (int64_t e = lnt_cut(p->positions, p->parts, i % p->parts); e < stop; e++)
            NAME(gather_add)(p, &g, x + e * C, sums, C);
        NAME(gather_end)(p, &g, sums, C);
    }
    return LNT_OK;
}

/* What becomes of the sums of whole images. */
static lnt_status NAME(join_images)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const pool_job *j = arg;
    const pool *p = j->p;
    const int64_t C = p->channels;
    (void)k, (void)thread;
    for (int64_t image = begin; image < end; image++) {
        R *y = (R *)j->y + image * C;
        NAME(gather) g;
        g.n = 0;
        for (int64_t part = 0; p->parts > 1 && part < p->parts; part++)
            NAME(gather_add)(p, &g, (const R *)j->scratch + (image * p->parts + part) * C, y, C);
        NAME(gather_end)(p, &g, y, C);
        NAME(finish)(p, y, C, p->positions);
    }
    return LNT_OK;
}

/* For the outputs of a row whose windows have a tap at element `at` of a plane and every `stride` behind it: *best is
 * that where what is there is larger than what is at *best. */
static void NAME(pick_larger)(const void *plane, int64_t at, int64_t stride, int64_t *best, int64_t outputs)
{
    const R *x = plane;
    for (int64_t o = 0; o < outputs; o++, at += stride) {
        const R now = x[at], most = x[best[o]];
        const int64_t larger = -(int64_t)(now > most) | (-(int64_t)(now != now) & -(int64_t)(most == most));
        best[o] ^= (best[o] ^ at) & larger; /* never a branch: there is no telling which way */
    }
}
