/* detector.h — silero VAD, step by step: 512 new samples behind the last 64 of the step before. The model was
 * converted with its recurrent state declared (--state stateN=state): the session carries it. */
#ifndef VAD_DETECTOR_H
#define VAD_DETECTOR_H

#include <linnet.h>
#include <stddef.h>

enum { VAD_RATE = 16000, VAD_CONTEXT = 64, VAD_STEP = 512 };

typedef struct detector {
    lnt_session *session;
    int64_t rate;
    float frame[VAD_CONTEXT + VAD_STEP];
} detector;

/* The detector must stay where it is for as long as the session runs: its memory is the inputs'. */
lnt_status detector_start(detector *d, const lnt_model *model, lnt_session *session, lnt_error *err);
/* How likely samples[0..n), n at most VAD_STEP, are speech; silence is put behind them. */
lnt_status detector_step(detector *d, const float *samples, size_t n, float *probability, lnt_error *err);

/* Speech in 16-bit samples from standard input, told as it begins and ends; 0, or 1 after a message to stderr. */
int vad_live(const lnt_model *model, lnt_session *session);

#endif
