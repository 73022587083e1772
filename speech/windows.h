/* windows.h — a sentence's sound, computed piece by piece from the value where `convert` has found a cut. */
#ifndef LNT_SPEECH_WINDOWS_H
#define LNT_SPEECH_WINDOWS_H

#include "base/memory.h"
#include "runtime/linnet.h"

typedef struct lnt_windows {
    const char *value;               /* NULL: the model has no cut */
    int64_t left, right, hop, align; /* metadata of formats/FORMAT.md */
    float gain;                      /* of the sound */
    int64_t size;                    /* frames of a window; 0: they grow */
    uint64_t frame_ns;               /* how long a frame plays */
    float *latent, *piece;           /* [channels, frames]: of the sentence, of a window */
    size_t latent_room, piece_room;  /* elements */
} lnt_windows;

/* Receives n samples that come next. */
typedef lnt_status (*lnt_windows_emit)(void *user, const float *x, size_t n);

/* Reads what the model's metadata say; rate: samples a second; size: 0, or frames of each window. */
lnt_status lnt_windows_open(lnt_windows *w, const lnt_model *model, uint32_t rate, int64_t size,
                            lnt_error *err);
void lnt_windows_free(lnt_windows *w);

/* Has the session compute what the inputs that are set make of the cut, then sound, output number `output`, of that. */
lnt_status lnt_windows_run(lnt_windows *w, lnt_session *session, uint32_t output, lnt_windows_emit emit,
                           void *user, lnt_error *err);

#endif
