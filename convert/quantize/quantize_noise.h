/* quantize_noise.h — how far a quantized model's numbers are from the float model's: signal-to-noise ratios.
 *
 *     SNR = 10 * log10(sum of want^2 / sum of (got - want)^2)    in dB
 *
 * Sums are kept rather than ratios, so that several runs, or several pieces of one tensor, count as one. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_NOISE_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_NOISE_H

#include <stdint.h>

typedef struct lnt_noise {
    double signal, error;  /* sums of squares */
    double worst, largest; /* magnitudes: of an error; of an element of want */
} lnt_noise;

enum { LNT_SNR_MOST = 200 }; /* dB: no noise at all */

/* Adds count elements. All zeros: nothing added yet. */
void lnt_noise_add(lnt_noise *n, const float *want, const float *got, int64_t count);
/* dB, in 0..LNT_SNR_MOST; 0 where the noise is no number. */
double lnt_noise_snr(const lnt_noise *n);

#endif
