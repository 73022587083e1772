/* fold.inc.h — a line of outputs of a transposed convolution whose taps meet, part of ops/conv/conv_kernels.inc.h. */

enum { FOLD_VECTORS = 2, FOLD_LANES = 8 };
_Static_assert(LNT_VL <= FOLD_LANES, "the longest mask");

/* Lanes [low, high) are -1, the others 0. */
LNT_INLINE vi fold_mask(ptrdiff_t low, ptrdiff_t high)
{
    static const int32_t edge[3 * FOLD_LANES] = {[FOLD_LANES] = -1, -1, -1, -1, -1, -1, -1, -1};
    low = low < 0 ? 0 : low > LNT_VL ? LNT_VL : low;
    high = high < 0 ? 0 : high > LNT_VL ? LNT_VL : high;
    return vi_load(edge + FOLD_LANES - low) & vi_load(edge + 2 * FOLD_LANES - high);
}

/* Outputs of phase p, `vectors` of them from pixel i on; inner: what taps come to them are whole vectors. Taps that are
 * further right come from pixels further left. */
LNT_INLINE void fold_pixels(const lnt_fold *f, size_t p, ptrdiff_t i, const unsigned vectors,
                            const bool inner)
{
    const vf low = v_splat(f->low), high = v_splat(f->high);
    float *c = f->c + p * f->phase + i;
    vf acc[FOLD_VECTORS];
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
        acc[j] = v_splat(f->bias);
    for (size_t t = p; t < f->taps; t += f->stride, i--) {
        const float *x = f->x + (ptrdiff_t)(t * f->tap) + i;
        const ptrdiff_t left = (ptrdiff_t)f->width - i;
        const size_t lines = LNT_VL > 1 || (i >= 0 && left > 0) ? f->lines : 0;
        const vi mask = fold_mask(-i, left);
        for (size_t l = 0; l < lines; l++, x += f->line)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc[j] += inner ? v_load(x + j * LNT_VL) : v_select(mask, v_load(x + j * LNT_VL), v_splat(0));
    }
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
        v_store(c + j * LNT_VL, v_min(high, v_max(low, acc[j])));
}

void LNT_SIMD_NAME(lnt_conv_fold)(const lnt_fold *f)
{
    for (size_t p = 0; p < f->stride; p++)
        for (size_t i = 0, n; i < f->pixels; i += n * LNT_VL) {
            n = LNT_VL > 1 && i >= f->taps && i + FOLD_VECTORS * LNT_VL <= f->width ? FOLD_VECTORS : 1;
            if (LNT_VL == 1)
                fold_pixels(f, p, (ptrdiff_t)i, 1, true);
            else if (n == 1)
                fold_pixels(f, p, (ptrdiff_t)i, 1, false);
            else
                fold_pixels(f, p, (ptrdiff_t)i, FOLD_VECTORS, true);
        }
}
