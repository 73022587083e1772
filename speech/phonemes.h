/* phonemes.h — a text as sentences of symbols, and symbols as ids, by Piper's rules. */
#ifndef LNT_SPEECH_PHONEMES_H
#define LNT_SPEECH_PHONEMES_H

#include "speech/espeak.h"
#include "speech/lexicon.h"
#include "speech/voice_config.h"

/* Sentence k is code[end[k - 1]..end[k]); the first begins at 0. Arrays of lnt_grow. */
typedef struct lnt_script {
    uint32_t *code; /* Unicode's, of symbols */
    size_t n, room;
    size_t *end;
    size_t n_sentences, ends_room;
} lnt_script;

/* Takes text, in form LNT_VOICE_TEXT or LNT_VOICE_PHONEMES, apart; memory is for what passes on the way. lexicon is of
 * voices of ARPAbet alone. */
lnt_status lnt_script_read(lnt_script *s, const lnt_voice_config *config, lnt_espeak *espeak,
                           const lnt_lexicon_file *lexicon, lnt_voice_form form, const char *text,
                           lnt_bump *memory, lnt_error *err);
void lnt_script_free(lnt_script *s);

/* Ids of code[0..n), with those that begin and end a sentence and pad it, in memory of the bump's; symbols that the
 * voice does not have are left out and counted in *missing. */
lnt_status lnt_symbol_ids(const lnt_voice_config *config, const uint32_t *code, size_t n, lnt_bump *memory,
                          int64_t **ids, size_t *n_ids, size_t *missing, lnt_error *err);

#endif
