/* texts.h — the texts that are to be spoken, one after the other: words of the command line, files, standard
 * input, as lines or as lines of JSON. */
#ifndef LNT_CLI_SAY_TEXTS_H
#define LNT_CLI_SAY_TEXTS_H

#include "base/memory.h"
#include "cli/shell/args.h"
#include "speech/linnet_voice.h"
#include "speech/read_json.h"

#include <stdio.h>

/* What a text does to those before it. */
typedef enum lnt_queue_kind {
    LNT_QUEUE_ADD,      /* waits for them */
    LNT_QUEUE_FLUSH,    /* takes the place of those that nobody has begun to speak */
    LNT_QUEUE_INTERRUPT /* ends the one that is spoken, too */
} lnt_queue_kind;

typedef struct lnt_spoken {
    const char *text; /* until the next one; of a prompt its name */
    bool prompt;
    const lnt_slot_value *value; /* of a prompt's slots */
    size_t n_values;
    lnt_voice_form form;
    const char *file;    /* where its sound goes; NULL: where the others' does */
    const char *speaker; /* its name; NULL: none is given */
    int64_t speaker_id;  /* -1: none is given */
    lnt_queue_kind queue;
} lnt_spoken;

typedef struct lnt_text_source {
    const lnt_texts *words, *phonemes, *ids; /* of the command line */
    const lnt_texts *files;                  /* read if there are no words; without them standard input */
    bool json;
    bool prompts;         /* words are names of prompts, with slot=value behind them; lines of JSON may be */
    lnt_queue_kind queue; /* of texts that say nothing else */
    size_t at;            /* of phonemes, ids, files or prompts' words */
    FILE *in;
    const char *name; /* of in */
    size_t line_number;
    char *line; /* getline's */
    size_t line_room;
    lnt_bump memory; /* of the present line of JSON */
} lnt_text_source;

/* The next text in *to; *found false: there are no more. */
lnt_status lnt_text_next(lnt_text_source *s, lnt_spoken *to, bool *found, lnt_error *err);
/* LNT_E_NOT_FOUND if the voice has no speaker of that name. */
lnt_status lnt_find_speaker(const lnt_voice *voice, const char *name, int64_t *id, lnt_error *err);
/* A number, or the name of one. */
lnt_status lnt_take_speaker(const lnt_voice *voice, const char *text, int64_t *id, lnt_error *err);
/* "add", "flush" or "interrupt", the object's member "queue"; *to stays as it is where there is none. */
lnt_status lnt_take_queue(const lnt_json_value *object, lnt_queue_kind *to, lnt_error *err);
/* The members of an object, texts and numbers, as values of slots in memory of the bump's; NULL has none. */
lnt_status lnt_take_values(const lnt_json_value *object, lnt_bump *memory, const lnt_slot_value **value,
                           size_t *n, lnt_error *err);
void lnt_text_close(lnt_text_source *s);

#endif
