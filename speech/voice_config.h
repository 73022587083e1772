/* voice_config.h — what Piper's JSON says of a voice: sampling rate, front end, symbols, speakers. */
#ifndef LNT_SPEECH_VOICE_CONFIG_H
#define LNT_SPEECH_VOICE_CONFIG_H

#include "base/memory.h"
#include "runtime/linnet.h"

/* The model's metadata that hold it. */
#define LNT_VOICE_CONFIG_KEY "piper"

typedef struct lnt_symbol {
    uint32_t code;     /* Unicode's */
    uint32_t first, n; /* its ids */
} lnt_symbol;

typedef struct lnt_speaker {
    const char *name;
    int64_t id;
} lnt_speaker;

typedef struct lnt_symbol_silence {
    uint32_t code;
    double seconds; /* behind it */
} lnt_symbol_silence;

typedef struct lnt_voice_config {
    uint32_t rate;
    const char *espeak; /* espeak-ng's voice; NULL, and no ARPAbet: symbols are the text's own characters */
    bool arpabet;       /* symbols are those of phones.h, by the model's lexicon */
    float noise, length, noise_w;
    const lnt_symbol *symbol; /* sorted by code */
    size_t n_symbols;
    const int64_t *id;
    lnt_symbol begin, pad, end; /* "^", "_" and "$" */
    uint32_t n_speakers;
    const lnt_speaker *speaker; /* those with a name */
    size_t n_named;
    const lnt_symbol_silence *silence;
    size_t n_silences;
} lnt_voice_config;

/* Reads the JSON text[0..bytes) into memory of the bump's. LNT_E_UNSUPPORTED for what a voice may ask for and this
 * front end does not do. */
lnt_status lnt_voice_config_read(const char *text, size_t bytes, lnt_bump *memory, lnt_voice_config *config,
                                 lnt_error *err);
/* What the model's metadata hold under the key; NULL: nothing. */
const char *lnt_voice_metadata(const lnt_model *model, const char *key);
/* NULL if the voice has none of it. */
const lnt_symbol *lnt_symbol_of(const lnt_voice_config *config, uint32_t code);

#endif
