/* inputs.h — where a session's inputs come from when nobody recorded them: files, extents given by name, zeros
 * or seeded random numbers. */
#ifndef LNT_CLI_DATA_INPUTS_H
#define LNT_CLI_DATA_INPUTS_H

#include "cli/data/cases.h"

typedef struct lnt_inputs {
    lnt_tensor *tensor; /* per input; data NULL where none was given */
    uint32_t n;
    uint32_t rate; /* Hz of the audio files read; 0 if there were none */
} lnt_inputs;

/* What becomes of inputs without a file, but for states. */
typedef enum lnt_inputs_rest {
    LNT_INPUTS_REQUIRED, /* they are an error */
    LNT_INPUTS_LEAVE,    /* they are left out: the run says which of them it needs */
    LNT_INPUTS_SHAPE,    /* extents only; where shapes depend on contents the golden vectors' or zeros */
    LNT_INPUTS_RANDOM    /* they are seeded: floats, and what has a range; anything else is an error */
} lnt_inputs_rest;

typedef struct lnt_inputs_options {
    const lnt_texts *dims;  /* --dim NAME=N */
    const lnt_texts *files; /* --input NAME=FILE */
    lnt_inputs_rest rest;
    const lnt_texts *ranges; /* --range NAME=LOW:HIGH, of LNT_INPUTS_RANDOM */
    uint64_t seed;
    uint32_t rate; /* audio is brought to this rate; 0: as it is in the file */
} lnt_inputs_options;

/* Reads the files and makes up the inputs that have none: extents come from the model, else from --dim. */
lnt_status lnt_inputs_make(lnt_opened *o, const lnt_inputs_options *how, lnt_inputs *inputs, lnt_error *err);
/* Gives the session all inputs, states included; --dim names that are no input's extent become bounds. */
lnt_status lnt_inputs_set(const lnt_opened *o, const lnt_inputs_options *how, const lnt_inputs *inputs,
                          lnt_session *s, lnt_error *err);
void lnt_inputs_free(lnt_inputs *inputs);

/* The tensor in a file: .npy .npz .pb .wav .flac .ogg, anything else raw. like gives type and extents
 * (unknown ones negative); *rate receives the rate of audio. */
lnt_status lnt_input_read(const char *path, const lnt_value_info *like, uint32_t want_rate, lnt_tensor *out,
                          uint32_t *rate, lnt_error *err);

/* t as a tensor of this type, if its bytes are that: bfloat16 in uint16 and small types in uint8 or int8, as
 * numpy keeps what it has no type for. */
lnt_tensor lnt_tensor_as(const lnt_tensor *t, lnt_dtype type);

#endif
