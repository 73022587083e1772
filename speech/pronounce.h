/* pronounce.h — English text as phonemes, ends of words and marks. */
#ifndef LNT_SPEECH_PRONOUNCE_H
#define LNT_SPEECH_PRONOUNCE_H

#include "speech/lexicon.h"

/* Adds the phonemes of a text, UTF-8 with phonemes between [[ and ]]; memory is for what passes on the way. */
lnt_status lnt_pronounce(const lnt_lexicon_file *f, const char *text, lnt_bump *memory, lnt_phone_list *to);
/* Writes symbols by their names, with blanks between them, into memory of the bump's. */
lnt_status lnt_phones_text(const uint8_t *symbol, size_t n, lnt_bump *memory, const char **text,
                           lnt_error *err);

#endif
