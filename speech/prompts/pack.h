/* pack.h — prompts ahead of time: what a pack's file holds, and how one is made. docs/say.md has the format. */
#ifndef LNT_SPEECH_PROMPTS_PACK_H
#define LNT_SPEECH_PROMPTS_PACK_H

#include "speech/parts.h"

enum {
    LNT_PACK_VERSION = 1,
    LNT_PACK_HEAD = 64,   /* bytes */
    LNT_PACK_RECORD = 64, /* of a prompt, in the table behind the head */
    LNT_PACK_PART = 16,   /* of a part of a prompt */
    LNT_PACK_HASH = 8,
    LNT_PACK_ALIGN = 64,
    LNT_PACK_MOST = 1 << 20, /* at most */
    LNT_PACK_NAME_MOST = 200 /* bytes */
};

extern const uint8_t lnt_pack_magic[8];

/* Where numbers are, in the head and in a prompt's record. */
enum {
    HEAD_VERSION = 8,
    HEAD_PROMPTS = 12,
    HEAD_RATE = 16,
    HEAD_FRONT = 24,
    HEAD_BYTES = 32,
    HEAD_VOICE = 40
};
enum {
    RECORD_NAME_HASH = 0,
    RECORD_PARTS_KEY = 8,
    RECORD_SOUND_KEY = 16,
    RECORD_SOUND_HASH = 24,
    RECORD_AT = 32, /* of parts, ids, name and text; of the sound: multiples of LNT_PACK_ALIGN */
    RECORD_SOUND = 36,
    RECORD_PARTS = 40,
    RECORD_IDS = 44,
    RECORD_SAMPLES = 48,
    RECORD_TEXT_BYTES = 52,
    RECORD_NAME_BYTES = 56,
    RECORD_KIND = 58
};

typedef enum lnt_pack_kind { LNT_PACK_NONE, LNT_PACK_PCM, LNT_PACK_ADPCM, LNT_PACK_KINDS } lnt_pack_kind;

/* Bytes of a sound, without what fills up to LNT_PACK_ALIGN. */
uint64_t lnt_pack_sound_bytes(lnt_pack_kind kind, uint64_t samples);

/* What the parts of a text follow from, and its sound: two voices, texts or options with the same key give the same. */
uint64_t lnt_pack_parts_key(const lnt_voice *voice, const char *text, const lnt_say_options *how);
uint64_t lnt_pack_sound_key(uint64_t parts_key, const lnt_say_options *how);

typedef struct lnt_prompt {
    const char *name, *text;
    size_t missing; /* filled in: symbols of the text that the voice does not have */
} lnt_prompt;

/* Speaks all prompts that have no slots, and makes a file of them and the others: *image is freed with lnt_free. */
lnt_status lnt_pack_build(lnt_voice *voice, lnt_prompt *prompt, size_t n, const lnt_say_options *how,
                          lnt_pack_kind kind, void **image, size_t *bytes, lnt_error *err);

/* The prompts of a text, "name|text" a line; lines that are blank or begin with '#' are none. name is that of the
 * text, for messages. Results are the bump's. */
lnt_status lnt_prompt_list_read(const char *name, const char *text, lnt_bump *memory, lnt_prompt **prompt,
                                size_t *n, lnt_error *err);

#endif
