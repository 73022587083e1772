/* ssml.h — pauses, rate, pitch and volume within a text: three elements of the Speech Synthesis Markup Language (W3C,
 * 1.1), <speak>, <break> and <prosody>. */
#ifndef LNT_SPEECH_MARKUP_SSML_H
#define LNT_SPEECH_MARKUP_SSML_H

#include "base/memory.h"

/* A stretch of text between tags. */
typedef struct lnt_ssml_run {
    const char *text;          /* without tags; may be empty */
    float rate, volume, pitch; /* times the usual */
    double silence;            /* seconds behind it */
} lnt_ssml_run;

/* Does it begin with <speak? */
bool lnt_is_ssml(const char *text);
/* Takes a text apart; runs and their texts are the bump's. LNT_E_VALUE for what is no such markup, LNT_E_UNSUPPORTED
 * for other elements and attributes, by name. */
lnt_status lnt_ssml_read(const char *text, lnt_bump *memory, const lnt_ssml_run **run, size_t *n,
                         lnt_error *err);

#endif
