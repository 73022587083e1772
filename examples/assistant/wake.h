/* wake.h — is a word said? openWakeWord's chain of three models, 80 ms at a time. */
#ifndef ASSISTANT_WAKE_H
#define ASSISTANT_WAKE_H

#include <linnet.h>

/* Samples of a step and of what it sees again; mels, of a frame, and frames of an embedding; numbers of an embedding,
 * and embeddings of a word. */
enum {
    WAKE_STEP = 1280,
    WAKE_OVERLAP = 480,
    WAKE_MELS = 32,
    WAKE_FRAMES = 76,
    WAKE_SIZE = 96,
    WAKE_PAST = 16
};

typedef struct wake {
    lnt_session *mels, *embedding, *word;
    float heard[WAKE_OVERLAP + WAKE_STEP];
    float frames[WAKE_FRAMES * WAKE_MELS];
    float past[WAKE_PAST * WAKE_SIZE];
} wake;

/* As if it had been silent until now. Its memory is the models' inputs: it must stay where it is. */
lnt_status wake_start(wake *w, lnt_session *mels, lnt_session *embedding, lnt_session *word, lnt_error *err);
/* How likely the word ends in the next samples[0..WAKE_STEP), which are -32768 to 32767. */
lnt_status wake_step(wake *w, const float *samples, float *likely, lnt_error *err);

#endif
