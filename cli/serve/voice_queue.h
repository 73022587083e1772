/* voice_queue.h — a voice that many threads may ask: jobs wait in a line, and the voice's own thread speaks them. */
#ifndef LNT_CLI_SERVE_VOICE_QUEUE_H
#define LNT_CLI_SERVE_VOICE_QUEUE_H

#include "cli/say/texts.h"
#include "speech/prompts/sound_cache.h"

#include <pthread.h>

/* Filled with zeros, but for what is asked for, until it is put into a queue; from then on the queue's, until
 * lnt_voice_queue_drop. */
typedef struct lnt_voice_job {
    const char *text; /* stays until the job is dropped */
    lnt_say_options how;
    const lnt_prompts *prompts; /* not NULL: the prompt of them whose name is the text, with values */
    const lnt_slot_value *value;
    size_t n_values;
    lnt_queue_kind kind;
    bool phonemes;  /* not sound, but JSON: an array of the sentences' phonemes */
    uint8_t *bytes; /* what nobody has taken yet: samples of 16 bits, little-endian; an lnt_grow array */
    size_t n, room;
    bool done, cancelled;
    lnt_error err; /* once it is done; code LNT_OK: all went well */
    struct lnt_voice_job *next;
} lnt_voice_job;

typedef struct lnt_voice_queue {
    lnt_voice *voice;
    lnt_sound_cache *cache; /* set before the start; NULL: none */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked, ready; /* a job was put in; a job has more bytes or is done */
    lnt_voice_job *first, *last; /* the first is at work */
    bool ending;
} lnt_voice_queue;

/* The voice is the queue's until lnt_voice_queue_end, but for what reads it alone. */
lnt_status lnt_voice_queue_start(lnt_voice_queue *q, lnt_voice *voice, lnt_error *err);
/* Cancels what is left; every job must be dropped before. */
void lnt_voice_queue_end(lnt_voice_queue *q);

/* Cancels jobs before it, as its kind says. */
void lnt_voice_queue_put(lnt_voice_queue *q, lnt_voice_job *job);
/* Waits for bytes and gives those that are there, to be freed with lnt_free; 0: the job is done, and all are taken. */
size_t lnt_voice_queue_take(lnt_voice_queue *q, lnt_voice_job *job, uint8_t **bytes);
/* Waits until the job is done. */
void lnt_voice_queue_wait(lnt_voice_queue *q, lnt_voice_job *job);
/* Cancels the job if it is not done, and frees what it holds. */
void lnt_voice_queue_drop(lnt_voice_queue *q, lnt_voice_job *job);
/* Cancels all jobs there are. */
void lnt_voice_queue_cancel(lnt_voice_queue *q);

#endif
