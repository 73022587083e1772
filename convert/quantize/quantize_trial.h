/* quantize_trial.h — a trial of quantized layers at work (quantize_trial.c, quantize_layer.c). */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_TRIAL_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_TRIAL_H

#include "convert/emit/emit.h"
#include "convert/emit/trial_model.h"
#include "convert/quantize/quantize_static.h"

/* Signal and noise, summed up. */
typedef struct lnt_noise {
    double signal, error, worst, largest;
} lnt_noise;

enum { LNT_SNR_MOST = 200 }; /* dB: no noise at all */

void lnt_noise_add(lnt_noise *n, const float *want, const float *got, int64_t count);
/* dB; 0 where the noise is no number. */
double lnt_noise_snr(const lnt_noise *n);

/* Measures layer l by itself on what the session's last run has left in the values it reads: exactness, time,
 * multiplications. Layers of fixed meaning must have been lowered. */
lnt_status lnt_measure_layer(lnt_graph *g, const lnt_qlayers *layers, lnt_session *s, lnt_qlayer *l,
                             lnt_error *err);
/* Can it be? In subgraphs what a layer reads cannot be fetched. */
bool lnt_can_measure(const lnt_qlayers *layers, const lnt_qlayer *l);
/* The values it reads and gives, as far as they must be fetched for it. */
lnt_status lnt_fetch_layer(const lnt_graph *g, lnt_session *s, const lnt_qlayer *l, lnt_error *err);

#endif
