/* window_functions.c — HannWindow, HammingWindow, BlackmanWindow. */
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/number.h"

#include <math.h>

lnt_status lnt_shape_window(lnt_site *site)
{
    int64_t size;
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "output_datatype", LNT_FLOAT));
    lnt_set_dims(site, 0, 1, &(int64_t){LNT_DIM_UNKNOWN});
    LNT_TRY(lnt_value_int(site, 0, 0, &size));
    if (size < 0)
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "a window of %lld", (long long)size);
    lnt_set_dims(site, 0, 1, &size);
    return LNT_OK;
}

/* sum of a[i] cos(i * 2 pi n / period). */
typedef struct window_params {
    lnt_dtype dtype;
    double a[3], period;
} window_params;

static lnt_status run_window(lnt_kernel *k, const lnt_step *s)
{
    const window_params *p = s->params;
    LNT_ASSERT(p->period > 0 && s->out[0]->rank == 1);
    void *out = lnt_out(k, s, 0);
    for (int64_t n = 0; n < s->out[0]->dims[0]; n++) {
        const double angle = 2 * 3.14159265358979323846 * (double)n / p->period;
        lnt_store_number(p->dtype, out, n, p->a[0] + p->a[1] * cos(angle) + p->a[2] * cos(2 * angle));
    }
    return LNT_OK;
}

static lnt_status bind_window(lnt_site *site, double a0, double a1, double a2)
{
    window_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    const int64_t size = site->out[0]->dims[0];
    const bool periodic = lnt_attr_i(site->node, "periodic", 1) != 0;
    *p = (window_params){(lnt_dtype)site->out[0]->dtype, {a0, a1, a2}, (double)(periodic ? size : size - 1)};
    if (size == 1) /* a window of one element lets all of it pass */
        *p = (window_params){p->dtype, {1, 0, 0}, 1};
    if (lnt_element_size(site->out[0]) == 0)
        return lnt_bind_unsupported_type(site, p->dtype);
    site->step->run = run_window;
    return LNT_OK;
}

lnt_status lnt_bind_hann_window(lnt_site *site)
{
    return bind_window(site, 0.5, -0.5, 0);
}

lnt_status lnt_bind_hamming_window(lnt_site *site)
{
    return bind_window(site, 25.0 / 46, -21.0 / 46, 0);
}

lnt_status lnt_bind_blackman_window(lnt_site *site)
{
    return bind_window(site, 0.42, -0.5, 0.08);
}
