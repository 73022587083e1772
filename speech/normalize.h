/* normalize.h — English text as it is spoken: words in small letters, letters by name as capital ones, marks. */
#ifndef LNT_SPEECH_NORMALIZE_H
#define LNT_SPEECH_NORMALIZE_H

#include "base/memory.h"

/* Writes text, UTF-8, into memory of the bump's: "Mr. Lee paid $5 at 7 p.m." becomes "mister lee paid five dollars at
 * seven P M.". Characters that no English word has are left out. */
lnt_status lnt_normalize(const char *text, lnt_bump *memory, const char **words, lnt_error *err);

#endif
