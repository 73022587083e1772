/* quantize_noise.c — see quantize_noise.h. */
#include "convert/quantize/quantize_noise.h"

#include "base/lnt_assert.h"

#include <math.h>

void lnt_noise_add(lnt_noise *n, const float *want, const float *got, int64_t count)
{
    LNT_ASSERT(count >= 0);
    for (int64_t i = 0; i < count; i++) {
        const double w = want[i], d = w == got[i] ? 0 : (double)got[i] - w;
        n->signal += w * w;
        n->error += d * d;
        n->worst = fabs(d) <= n->worst ? n->worst : fabs(d); /* NaN stays */
        n->largest = fmax(n->largest, fabs(w));
    }
}

double lnt_noise_snr(const lnt_noise *n)
{
    if (n->error == 0)
        return LNT_SNR_MOST;
    const double snr = n->signal > 0 ? 10 * log10(n->signal / n->error) : 0;
    return isfinite(snr) ? fmin(snr, LNT_SNR_MOST) : 0;
}
