/* fourier.inc.h — transforms in one type, R, a few side by side; included by fourier.c with R, LANES, NAME and LOAD,
 * STORE, which read and write elements of the operator's type as R. */

typedef R NAME(lanes) __attribute__((vector_size(16)));

/* The same element of LANES transforms. */
typedef struct NAME(cell) {
    NAME(lanes) re, im;
} NAME(cell);

typedef struct NAME(root) {
    R re, im;
} NAME(root);

INLINE NAME(cell) NAME(multiply)(NAME(cell) a, NAME(root) b)
{
    return (NAME(cell)){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

INLINE NAME(cell) NAME(add)(NAME(cell) a, NAME(cell) b)
{
    return (NAME(cell)){a.re + b.re, a.im + b.im};
}

INLINE NAME(cell) NAME(subtract)(NAME(cell) a, NAME(cell) b)
{
    return (NAME(cell)){a.re - b.re, a.im - b.im};
}

/* Transforms of m elements, as many as a factor says, into one: in place. step: of the roots. */
static void NAME(join_two)(const fourier *p, NAME(cell) * x, int64_t m, int64_t step)
{
    const NAME(root) *root = p->root;
    for (int64_t k = 0; k < m; k++) {
        const NAME(cell) a = x[k], b = NAME(multiply)(x[m + k], root[k * step]);
        x[k] = NAME(add)(a, b);
        x[m + k] = NAME(subtract)(a, b);
    }
}

static void NAME(join_four)(const fourier *p, NAME(cell) * x, int64_t m, int64_t step)
{
    const R sign = p->inverse ? -1 : 1;
    const NAME(root) *root = p->root;
    for (int64_t k = 0; k < m; k++) {
        const NAME(cell) a = x[k], b = NAME(multiply)(x[m + k], root[k * step]);
        const NAME(cell) c = NAME(multiply)(x[2 * m + k], root[2 * k * step]);
        const NAME(cell) d = NAME(multiply)(x[3 * m + k], root[3 * k * step]);
        const NAME(cell) ac = NAME(add)(a, c), bd = NAME(add)(b, d), a_c = NAME(subtract)(a, c),
                         b_d = NAME(subtract)(b, d);
        const NAME(cell) turned = {b_d.im * sign, b_d.re * -sign}; /* by a quarter */
        x[k] = NAME(add)(ac, bd);
        x[m + k] = NAME(add)(a_c, turned);
        x[2 * m + k] = NAME(subtract)(ac, bd);
        x[3 * m + k] = NAME(subtract)(a_c, turned);
    }
}

/* part: room for a factor. */
static void NAME(join_any)(const fourier *p, int64_t factor, NAME(cell) * x, int64_t m, int64_t step,
                           NAME(cell) * part)
{
    const int64_t turn = p->length / factor;
    const NAME(root) *root = p->root;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < factor; q++)
            part[q] = NAME(multiply)(x[q * m + k], root[q * k * step]);
        for (int64_t r = 0; r < factor; r++) {
            NAME(cell) total = part[0];
            for (int64_t q = 1, at = r * turn; q < factor; q++) {
                total = NAME(add)(total, NAME(multiply)(part[q], root[at]));
                at += r * turn;
                at -= at < p->length ? 0 : p->length;
            }
            x[r * m + k] = total;
        }
    }
}

/* dst[k] = sum over j < n of src[j * stride] * root[j * k * length / n], k < n. part: room for a factor. */
static void NAME(transform)(const fourier *p, unsigned level, int64_t n, const NAME(cell) * src,
                            int64_t stride, NAME(cell) * dst, NAME(cell) * part)
{
    if (n == 1) {
        *dst = *src;
        return;
    }
    const int64_t f = p->factor[level], m = n / f, step = p->length / n;
    for (int64_t q = 0; q < f; q++)
        NAME(transform)(p, level + 1, m, src + q * stride, stride * f, dst + q * m, part);
    if (f == 4)
        NAME(join_four)(p, dst, m, step);
    else if (f == 2)
        NAME(join_two)(p, dst, m, step);
    else
        NAME(join_any)(p, f, dst, m, step, part);
}

/* Sample t of each transform. Of real signals two make a complex one: item 2 l and 2 l + 1 are the parts of lane l. */
static NAME(cell) NAME(read)(const fourier_job *j, const int64_t *at, int64_t t, R weight)
{
    const fourier *p = j->p;
    NAME(cell) s;
    for (unsigned l = 0; l < LANES; l++) {
        s.re[l] = LOAD(p, j->x, (at[l << p->paired] + t) * p->in_parts) * weight;
        s.im[l] = p->in_parts == 2 ? LOAD(p, j->x, (at[l] + t) * 2 + 1) * weight
                  : p->paired      ? LOAD(p, j->x, at[2 * l + 1] + t) * weight
                                   : 0;
    }
    return s;
}

/* One-sided halves of the spectra of two real signals, a and b: a + i b, whole. */
static void NAME(read_halves)(const fourier_job *j, const int64_t *at, NAME(cell) * x)
{
    const fourier *p = j->p;
    const int64_t n = p->length;
    for (int64_t k = 0; k <= n / 2; k++)
        for (unsigned l = 0; l < LANES; l++) {
            R a[2] = {0, 0}, b[2] = {0, 0};
            for (unsigned part = 0; part < p->in_parts && k < p->in; part++) {
                a[part] = LOAD(p, j->x, (at[2 * l] + k * p->inner) * p->in_parts + part);
                b[part] = LOAD(p, j->x, (at[2 * l + 1] + k * p->inner) * p->in_parts + part);
            }
            if (k == 0 || 2 * k == n)
                a[1] = b[1] = 0;
            x[k].re[l] = a[0] - b[1];
            x[k].im[l] = a[1] + b[0];
            if (k == 0 || 2 * k == n)
                continue;
            x[n - k].re[l] = a[0] + b[1];
            x[n - k].im[l] = b[0] - a[1];
        }
}

/* Elements 0 to out of each transform, in steps of p->inner from to[]. */
static void NAME(write)(const fourier_job *j, const NAME(cell) * y, const int64_t *to, unsigned items)
{
    const fourier *p = j->p;
    const R scale = (R)p->scale;
    for (int64_t t = 0; t < p->out; t++) {
        NAME(cell) a = y[t], b = {y[t].im, -y[t].re};
        if (p->paired && !p->inverse) {
            const NAME(cell) c =
                y[t ? p->length - t : 0]; /* the spectrum of the real part is even, that of the other odd */
            a = (NAME(cell)){(y[t].re + c.re) / 2, (y[t].im - c.im) / 2};
            b = (NAME(cell)){(y[t].im + c.im) / 2, (c.re - y[t].re) / 2};
        }
        for (unsigned i = 0; i < items; i++) {
            const NAME(cell) *from = p->paired && i & 1 ? &b : &a;
            const int64_t at = (to[i] + t * p->inner) * p->out_parts;
            STORE(p, j->y, at, from->re[i >> p->paired] * scale);
            if (p->out_parts == 2)
                STORE(p, j->y, at + 1, from->im[i >> p->paired] * scale);
        }
    }
}

static lnt_status NAME(transforms)(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const fourier_job *j = arg;
    const fourier *p = j->p;
    NAME(cell) *x = (NAME(cell) *)(void *)(j->scratch + thread * p->thread_bytes);
    NAME(cell) *y = x + p->length, *part = y + p->length;
    const unsigned most = LANES << p->paired;
    (void)k;
    for (int64_t item = begin * most; item < end * most; item += most) {
        const unsigned items = j->transforms - item < most ? (unsigned)(j->transforms - item) : most;
        int64_t at[2 * LANES], to[2 * LANES];
        for (unsigned i = 0; i < most; i++)
            place(j, item + (i < items ? i : 0), &at[i], &to[i]);
        if (p->inverse && p->one_sided)
            NAME(read_halves)(j, at, x);
        else
            for (int64_t t = 0; t < p->length; t++)
                x[t] = t < j->samples ? NAME(read)(j, at, t * p->inner, (R)weight_at(j, t))
                                      : (NAME(cell)){{0}, {0}};
        NAME(transform)(p, 0, p->length, x, 1, y, part);
        NAME(write)(j, y, to, items);
    }
    return LNT_OK;
}

static void NAME(fill_roots)(const fourier *p)
{
    const double turn = (p->inverse ? 2 : -2) * 3.14159265358979323846 / (double)p->length;
    NAME(root) *root = p->root;
    for (int64_t k = 0; k < p->length; k++)
        root[k] = (NAME(root)){(R)cos(turn * (double)k), (R)sin(turn * (double)k)};
}
