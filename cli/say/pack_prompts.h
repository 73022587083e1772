/* pack_prompts.h — `linnet say --pack`: a list of prompts becomes a pack. */
#ifndef LNT_CLI_SAY_PACK_PROMPTS_H
#define LNT_CLI_SAY_PACK_PROMPTS_H

#include "speech/prompts/pack.h"

typedef struct lnt_packing {
    const char *list, *file; /* paths of the prompts, and of the pack */
    lnt_pack_kind kind;
    bool quiet, json;
} lnt_packing;

/* Writes the pack, whole or not at all, and prints what was done. */
lnt_status lnt_pack_prompts(const lnt_packing *what, lnt_voice *voice, const lnt_say_options *how,
                            lnt_error *err);

#endif
