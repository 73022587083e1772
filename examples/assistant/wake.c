/* wake.c — is a word said? Eight frames of mels come of each step, the last 76 give an embedding, the last 16 of those
 * tell how likely the word has just been said. */
#include "wake.h"

#include <string.h>

enum { SILENT_STEPS = 30 /* so that a word at the beginning has a past */ };

/* Drops the first of `of` floats for `n` new ones behind them. */
static void append(float *all, size_t of, const float *fresh, size_t n)
{
    memmove(all, all + n, (of - n) * sizeof *all);
    memcpy(all + of - n, fresh, n * sizeof *all);
}

/* The output, of `n` floats at least. */
static lnt_status run(lnt_session *session, size_t n, const float **out, lnt_error *err)
{
    lnt_tensor t;
    lnt_status status = lnt_run(session, err);
    if (status == LNT_OK)
        status = lnt_get_output(session, 0, &t, err);
    if (status == LNT_OK && (t.dtype != LNT_FLOAT || t.bytes < n * sizeof(float)))
        status = LNT_E_SHAPE;
    if (status == LNT_OK)
        *out = t.data;
    return status;
}

lnt_status wake_start(wake *w, lnt_session *mels, lnt_session *embedding, lnt_session *word, lnt_error *err)
{
    static const float silence[WAKE_STEP];
    float likely;
    *w = (wake){.mels = mels, .embedding = embedding, .word = word};
    for (int i = 0; i < WAKE_FRAMES * WAKE_MELS; i++)
        w->frames[i] = 1;
    /* The memory of inputs is read in every run: set once, filled again for each step. */
    const lnt_tensor heard = {LNT_FLOAT, 2, {1, WAKE_OVERLAP + WAKE_STEP}, w->heard, sizeof w->heard};
    const lnt_tensor frames = {LNT_FLOAT, 4, {1, WAKE_FRAMES, WAKE_MELS, 1}, w->frames, sizeof w->frames};
    const lnt_tensor past = {LNT_FLOAT, 3, {1, WAKE_PAST, WAKE_SIZE}, w->past, sizeof w->past};
    lnt_status status = lnt_set_input(mels, 0, &heard, err);
    if (status == LNT_OK)
        status = lnt_set_input(embedding, 0, &frames, err);
    if (status == LNT_OK)
        status = lnt_set_input(word, 0, &past, err);
    for (int i = 0; i < SILENT_STEPS && status == LNT_OK; i++)
        status = wake_step(w, silence, &likely, err);
    return status;
}

lnt_status wake_step(wake *w, const float *samples, float *likely, lnt_error *err)
{
    enum { FRESH = 8 * WAKE_MELS };
    const float *out;
    float mels[FRESH];
    append(w->heard, WAKE_OVERLAP + WAKE_STEP, samples, WAKE_STEP);
    lnt_status status = run(w->mels, FRESH, &out, err);
    if (status != LNT_OK)
        return status;
    for (int i = 0; i < FRESH; i++)
        mels[i] = out[i] / 10 + 2; /* as the embedding was trained */
    append(w->frames, WAKE_FRAMES * WAKE_MELS, mels, FRESH);
    status = run(w->embedding, WAKE_SIZE, &out, err);
    if (status != LNT_OK)
        return status;
    append(w->past, WAKE_PAST * WAKE_SIZE, out, WAKE_SIZE);
    status = run(w->word, 1, &out, err);
    if (status == LNT_OK)
        *likely = *out;
    return status;
}
