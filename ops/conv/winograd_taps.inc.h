/* winograd_taps.inc.h — Winograd's transforms of 3x3 taps, part of ops/conv/conv_kernels.inc.h: for weights that are
 * stored as they are, and transformed in each run. Vectors hold features. The matrices G are those of
 * ops/conv/winograd.h: of large tiles of floats, of small ones of halves. */

enum { TAPS = LNT_WINOGRAD_TAPS };

/* y = G x, along one axis. */
LNT_INLINE void winograd_filter(const vf *x, vf *y)
{
#if defined(LNT_SIMD_FP16)
    const vf half = v_splat(0.5f), even = half * (x[0] + x[2]), odd = half * x[1];
    y[0] = x[0];
    y[1] = even + odd;
    y[2] = even - odd;
    y[3] = x[2];
#else
    const vf at_p = v_fma(v_splat(-1 / 3.0f), x[2], v_splat(-2 / 3.0f) * x[0]);
    const vf at_q = v_fma(v_splat(1 / 3.0f), x[2], v_splat(1 / 6.0f) * x[0]);
    const vf p = v_splat((float)(2 / 3. * LNT_WINOGRAD_P)) * x[1];
    const vf q = v_splat((float)(LNT_WINOGRAD_Q / 6)) * x[1];
    y[0] = x[0];
    y[1] = at_p - p;
    y[2] = at_p + p;
    y[3] = at_q + q;
    y[4] = at_q - q;
    y[5] = x[2];
#endif
}

/* Where there are registers for all of a filter, nothing of it goes through memory. */
#if defined(__aarch64__)
#define EACH(n, ...) UNROLL_FOR(n, __VA_ARGS__)
#else
#define EACH(n, ...) _Pragma("GCC unroll 1") for (__VA_ARGS__)
#endif

void COMMON(taps)(const lnt_winograd_taps *w)
{
#if defined(LNT_SIMD_FP16)
    enum { PATCH = LNT_WINOGRAD_SMALL_PATCH };
#else
    enum { PATCH = LNT_WINOGRAD_PATCH };
#endif
    const size_t tap = w->w_tap, point = w->u_point, count = w->n;
    const elem *const taps = ELEMS(w->w);
    elem *const points = ELEMS_OUT(w->u);
    LNT_ASSERT(count % LNT_PANEL == 0 && LNT_PANEL % LNT_VL == 0);
    for (size_t n = 0; n < count; n += LNT_VL) {
        vf half[PATCH][TAPS], g[TAPS], y[PATCH];
        EACH(3, unsigned j = 0; j < TAPS; j++)
        {
            UNROLL_FOR(3, unsigned i = 0; i < TAPS; i++)
                g[i] = v_load(taps + n + (i * TAPS + j) * tap);
            winograd_filter(g, y);
            UNROLL_FOR(6, unsigned i = 0; i < PATCH; i++)
                half[i][j] = y[i];
        }
        elem *to = points + n;
        EACH(6, unsigned i = 0; i < PATCH; i++, to += PATCH * point)
        {
            winograd_filter(half[i], y);
            UNROLL_FOR(6, unsigned j = 0; j < PATCH; j++)
                v_store(to + j * point, y[j]);
        }
    }
}
