/* inputs.h — where a session's inputs come from when nobody recorded them: files, extents given by name, zeros
 * or seeded random numbers. */
#ifndef LNT_CLI_DATA_INPUTS_H
#define LNT_CLI_DATA_INPUTS_H

#include "cli/data/cases.h"

typedef struct lnt_feed {
    lnt_tensor *tensor; /* per input; data NULL where none was given */
    uint32_t n;
    uint32_t rate; /* Hz of the audio files read; 0 if there were none */
} lnt_feed;

/* What becomes of inputs without a file, but for states. */
typedef enum lnt_feed_rest {
    LNT_FEED_REQUIRED, /* they are an error */
    LNT_FEED_LEAVE,    /* they are left out: the run says which of them it needs */
    LNT_FEED_SHAPE,    /* extents only; where shapes depend on contents the golden vectors' or zeros */
    LNT_FEED_RANDOM    /* they are seeded, floats only: anything else is an error */
} lnt_feed_rest;

typedef struct lnt_feed_options {
    const lnt_texts *dims;  /* --dim NAME=N */
    const lnt_texts *files; /* --input NAME=FILE */
    lnt_feed_rest rest;
    uint64_t seed;
    uint32_t rate; /* audio is brought to this rate; 0: as it is in the file */
} lnt_feed_options;

/* Reads the files and makes up the inputs that have none: extents come from the model, else from --dim. */
lnt_status lnt_feed_make(lnt_opened *o, const lnt_feed_options *how, lnt_feed *feed, lnt_error *err);
/* Gives the session all inputs, states included; --dim names that are no input's extent become bounds. */
lnt_status lnt_feed_session(const lnt_opened *o, const lnt_feed_options *how, const lnt_feed *feed,
                            lnt_session *s, lnt_error *err);
void lnt_feed_free(lnt_feed *feed);

/* The tensor in a file: .npy .npz .pb .wav .flac .ogg, anything else raw. like gives type and extents
 * (unknown ones negative); *rate receives the rate of audio. */
lnt_status lnt_feed_file(const char *path, const lnt_value_info *like, uint32_t want_rate, lnt_tensor *out,
                         uint32_t *rate, lnt_error *err);

#endif
