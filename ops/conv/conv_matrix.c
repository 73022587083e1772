/* conv_matrix.c — Conv of one tap between images in ONNX order: the weights, for each group a matrix [features,
 * channels], times the planes, [channels, pixels] of an image's group, are planes. Neither image is brought into
 * another order; the bias is one of rows. */
#include "base/checked.h"
#include "ops/conv/conv.h"
#include "ops/gemm/matmul.h"

static lnt_status run_matrix(lnt_kernel *k, const lnt_step *s)
{
    const lnt_matmul *m = s->params;
    const lnt_conv_images none = {.element = sizeof(float)};
    LNT_TRY(lnt_matmul_run(k, s));
    return lnt_conv_finish(k, s, &none, m->store.program);
}

lnt_status lnt_conv_bind_matrix(lnt_site *site, const lnt_conv *g)
{
    int64_t matrices;
    if (!lnt_mul_i64(g->batch, g->groups, &matrices) || matrices > INT32_MAX)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "too many images");
    lnt_matmul *m = lnt_bind_params(site, sizeof *m);
    size_t *offsets = lnt_bump_alloc(site->memory, (2 * (size_t)matrices + 1) * sizeof *offsets, site->err);
    if (!m || !offsets)
        return LNT_E_MEMORY;
    *m = (lnt_matmul){.p = {.M = g->features, .K = g->channels, .N = lnt_volume(g->w.out), .alpha = 1},
                      .a = 1,
                      .row_bias = true,
                      .matrices_a = g->groups,
                      .matrices_b = matrices,
                      .batch = matrices,
                      .offset_a = offsets,
                      .offset_b = offsets + matrices};
    for (int64_t i = 0; i < matrices; i++) {
        offsets[i] = (size_t)(i % g->groups * g->features * g->channels);
        offsets[matrices + i] = (size_t)i;
    }
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &m->store));
    LNT_TRY(lnt_matmul_plan(site, m, 0));
    site->step->run = run_matrix;
    return LNT_OK;
}
