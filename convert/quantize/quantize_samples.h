/* quantize_samples.h — inputs that a model is run on while it is quantized: recorded ones, or one that is
 * made up. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_SAMPLES_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_SAMPLES_H

#include "convert/quantize/quantize.h"

typedef struct lnt_samples {
    const lnt_quantize_options *options;
    const lnt_graph *graph; /* of the model */
    size_t n;
    uint32_t n_inputs;
    lnt_tensor *input; /* [n][n_inputs]; without data: a state that goes on from the sample before */
    /* What comes back (lnt_samples_find_states): for each input of a sample the output of the one before
     * that it was, or LNT_NONE. What the last two runs gave of these, [2][n_outputs]. */
    uint32_t *from, n_outputs;
    lnt_tensor *last;
    unsigned turn; /* the half of last that the next run reads */
} lnt_samples;

/* Reads up to `most` of the samples of the options; without any there is one, made up in its first run. All
 * but options and graph zeros before; freed in any case. */
lnt_status lnt_samples_read(lnt_samples *s, const lnt_model *m, size_t most, lnt_error *err);
void lnt_samples_free(lnt_samples *s);

/* Runs recorded samples on the float model in `session`: inputs that were recorded as an output of the sample
 * before are states, whether declared or not. From then on they are what the model that runs has given. */
lnt_status lnt_samples_find_states(lnt_samples *s, const lnt_model *m, lnt_session *session, lnt_error *err);
/* Does the sample behind i go on with the states that i leaves? */
bool lnt_samples_go_on(const lnt_samples *s, size_t i);
lnt_status lnt_samples_run(lnt_samples *s, lnt_session *session, size_t i, lnt_error *err);
/* The same for the first run of all, which tries a few extents where the sample has to be made up. */
lnt_status lnt_samples_run_first(lnt_samples *s, const lnt_model *m, lnt_session *session, size_t i,
                                 lnt_error *err);

#endif
