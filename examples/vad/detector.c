/* detector.c — silero VAD, step by step. */
#include "detector.h"

#include <string.h>

lnt_status detector_start(detector *d, const lnt_model *model, lnt_session *session, lnt_error *err)
{
    const int input = lnt_model_find_input(model, "input"), sr = lnt_model_find_input(model, "sr");
    *d = (detector){.session = session, .rate = VAD_RATE};
    /* The memory of inputs is read in every run: set once, filled again for each step. */
    const lnt_tensor frame = {LNT_FLOAT, 2, {1, VAD_CONTEXT + VAD_STEP}, d->frame, sizeof d->frame};
    const lnt_status status = lnt_set_input(session, (uint32_t)input, &frame, err);
    if (status != LNT_OK)
        return status;
    return lnt_set_input(session, (uint32_t)sr, &(lnt_tensor){LNT_INT64, 0, {0}, &d->rate, sizeof d->rate},
                         err);
}

lnt_status detector_step(detector *d, const float *samples, size_t n, float *probability, lnt_error *err)
{
    lnt_tensor out;
    memmove(d->frame, d->frame + VAD_STEP, VAD_CONTEXT * sizeof *d->frame);
    memcpy(d->frame + VAD_CONTEXT, samples, n * sizeof *samples);
    memset(d->frame + VAD_CONTEXT + n, 0, (VAD_STEP - n) * sizeof *d->frame);
    lnt_status status = lnt_run(d->session, err);
    if (status == LNT_OK)
        status = lnt_get_output(d->session, 0, &out, err);
    if (status == LNT_OK)
        *probability = *(const float *)out.data;
    return status;
}
