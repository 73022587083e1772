/* sound_cache.h — sounds that were spoken before, in a folder: the same text is spoken from there. */
#ifndef LNT_SPEECH_PROMPTS_SOUND_CACHE_H
#define LNT_SPEECH_PROMPTS_SOUND_CACHE_H

#include "speech/linnet_voice.h"

#include <stdbool.h>

typedef struct lnt_sound_cache lnt_sound_cache;

/* Of the folder, which is made if it is not there. most: bytes that its files may take together; where one more makes
 * them more, those that were not asked for longest are removed. Other programs may use the folder at the same time. */
lnt_status lnt_sound_cache_create(const char *folder, uint64_t most, lnt_sound_cache **cache, lnt_error *err);
/* Accepts NULL and pointers to NULL; sets *cache to NULL. */
void lnt_sound_cache_destroy(lnt_sound_cache **cache);

/* As lnt_voice_say: from a file whose voice, phonemes and options are the same, or else by the voice, and what it
 * says is kept. *found: there was such a file. A damaged one is none, and is replaced. *unkept, if given: why the
 * sound could not be kept, which is no failure of speaking; code LNT_OK: it could, or did not have to be. */
lnt_status lnt_sound_cache_say(lnt_sound_cache *cache, lnt_voice *voice, const char *text,
                               const lnt_say_options *options, lnt_voice_emit emit, void *user, bool *found,
                               lnt_error *unkept, lnt_error *err);

#endif
