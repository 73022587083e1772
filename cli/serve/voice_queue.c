/* voice_queue.c — a voice that many threads may ask. */
#include "cli/serve/voice_queue.h"

#include "base/memory.h"
#include "cli/say/sink.h"
#include "cli/shell/json.h"

#include <stdio.h>
#include <string.h>

/* Bytes that may wait for one who asks and does not take them: three quarters of an hour of speech. */
static const size_t MOST_WAITING = (size_t)128 << 20;

/* ---- the voice's thread ---- */

typedef struct listener { /* of lnt_voice_say */
    lnt_voice_queue *q;
    lnt_voice_job *job;
    lnt_error full; /* why it takes no more */
} listener;

static lnt_status make_room(lnt_voice_job *job, size_t more, lnt_error *err)
{
    LNT_REQUIRE(job->n + more <= MOST_WAITING, err, LNT_E_LIMIT,
                "who asked for the sound takes it too slowly");
    if (job->n + more <= job->room)
        return LNT_OK;
    const size_t room = 2 * (job->n + more);
    uint8_t *bytes = lnt_alloc(&lnt_malloc_allocator, room, err);
    if (!bytes)
        return LNT_E_MEMORY;
    if (job->n)
        memcpy(bytes, job->bytes, job->n);
    lnt_free(&lnt_malloc_allocator, job->bytes);
    job->bytes = bytes;
    job->room = room;
    return LNT_OK;
}

static int take_sound(void *user, const int16_t *pcm, size_t n)
{
    listener *to = user;
    pthread_mutex_lock(&to->q->lock);
    bool stop = to->job->cancelled;
    if (!stop) {
        stop = make_room(to->job, 2 * n, &to->full) != LNT_OK;
        if (!stop)
            to->job->n += lnt_pcm_bytes(pcm, n, to->job->bytes + to->job->n);
        pthread_cond_broadcast(&to->q->ready);
    }
    pthread_mutex_unlock(&to->q->lock);
    return stop;
}

static lnt_status give_text(lnt_voice_queue *q, lnt_voice_job *job, const lnt_json_memory *m, lnt_error *err)
{
    pthread_mutex_lock(&q->lock);
    const lnt_status status = make_room(job, m->bytes, err);
    if (status == LNT_OK)
        memcpy(job->bytes, m->text, job->n = m->bytes);
    pthread_mutex_unlock(&q->lock);
    return status;
}

static lnt_status list_phonemes(lnt_voice_queue *q, lnt_voice_job *job, lnt_error *err)
{
    const lnt_voice_sentence *sentence;
    size_t n;
    lnt_json_memory m;
    LNT_TRY(lnt_voice_sentences(q->voice, job->text, job->how.form, &sentence, &n, err));
    LNT_TRY(lnt_json_open(&m));
    lnt_json_begin(&m.json, NULL, '[');
    for (size_t k = 0; k < n; k++)
        lnt_json_text(&m.json, NULL, sentence[k].phonemes);
    lnt_json_end(&m.json, ']');
    lnt_status status = lnt_json_close(&m);
    *err = m.err;
    if (status == LNT_OK)
        status = give_text(q, job, &m, err);
    lnt_json_free(&m);
    return status;
}

static lnt_status speak(lnt_voice_queue *q, listener *to, lnt_error *err)
{
    const lnt_voice_job *job = to->job;
    uint32_t k;
    bool found;
    if (!job->prompts && q->cache)
        return lnt_sound_cache_say(q->cache, q->voice, job->text, &job->how, take_sound, to, &found, NULL,
                                   err);
    if (!job->prompts)
        return lnt_voice_say(q->voice, job->text, &job->how, take_sound, to, err);
    LNT_TRY(lnt_prompts_find(job->prompts, job->text, &k, err));
    return lnt_prompts_say(job->prompts, k, job->value, job->n_values, q->voice, &job->how, take_sound, to,
                           err);
}

static void work_on(lnt_voice_queue *q, lnt_voice_job *job)
{
    listener to = {.q = q, .job = job};
    lnt_error err = {0};
    const lnt_status status = job->phonemes ? list_phonemes(q, job, &err) : speak(q, &to, &err);
    pthread_mutex_lock(&q->lock);
    job->err = to.full.code ? to.full : err;
    job->err.code = to.full.code ? to.full.code : status;
}

static void *voice_main(void *user)
{
    lnt_voice_queue *q = user;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->ending)
            pthread_cond_wait(&q->asked, &q->lock);
        lnt_voice_job *job = q->first;
        if (!job)
            break;
        if (job->cancelled)
            (void)lnt_fail(&job->err, LNT_E_CANCELLED, "stopped before it was spoken");
        else {
            pthread_mutex_unlock(&q->lock);
            work_on(q, job);
        }
        q->first = job->next;
        job->done = true;
        pthread_cond_broadcast(&q->ready);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- those who ask ---- */

lnt_status lnt_voice_queue_start(lnt_voice_queue *q, lnt_voice *voice, lnt_error *err)
{
    *q = (lnt_voice_queue){.voice = voice, .cache = q->cache};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->asked, NULL);
    pthread_cond_init(&q->ready, NULL);
    const int failed = pthread_create(&q->thread, NULL, voice_main, q);
    LNT_REQUIRE(!failed, err, LNT_E_MEMORY, "cannot start the voice's thread: %s", strerror(failed));
    return LNT_OK;
}

void lnt_voice_queue_end(lnt_voice_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_signal(&q->asked);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->ready);
    pthread_cond_destroy(&q->asked);
    pthread_mutex_destroy(&q->lock);
}

static void cancel_from(lnt_voice_job *first)
{
    for (lnt_voice_job *job = first; job; job = job->next)
        job->cancelled = true;
}

void lnt_voice_queue_put(lnt_voice_queue *q, lnt_voice_job *job)
{
    pthread_mutex_lock(&q->lock);
    if (job->kind != LNT_QUEUE_ADD && q->first)
        cancel_from(job->kind == LNT_QUEUE_INTERRUPT ? q->first : q->first->next);
    if (q->first)
        q->last->next = job;
    else
        q->first = job;
    q->last = job;
    pthread_cond_signal(&q->asked);
    pthread_mutex_unlock(&q->lock);
}

size_t lnt_voice_queue_take(lnt_voice_queue *q, lnt_voice_job *job, uint8_t **bytes)
{
    pthread_mutex_lock(&q->lock);
    while (!job->n && !job->done)
        pthread_cond_wait(&q->ready, &q->lock);
    const size_t n = job->n;
    *bytes = n ? job->bytes : NULL;
    if (n) {
        job->bytes = NULL;
        job->n = job->room = 0;
    }
    pthread_mutex_unlock(&q->lock);
    return n;
}

void lnt_voice_queue_wait(lnt_voice_queue *q, lnt_voice_job *job)
{
    pthread_mutex_lock(&q->lock);
    while (!job->done)
        pthread_cond_wait(&q->ready, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void lnt_voice_queue_drop(lnt_voice_queue *q, lnt_voice_job *job)
{
    pthread_mutex_lock(&q->lock);
    job->cancelled = true;
    pthread_mutex_unlock(&q->lock);
    lnt_voice_queue_wait(q, job);
    lnt_free(&lnt_malloc_allocator, job->bytes);
    job->bytes = NULL;
}

void lnt_voice_queue_cancel(lnt_voice_queue *q)
{
    pthread_mutex_lock(&q->lock);
    cancel_from(q->first);
    pthread_mutex_unlock(&q->lock);
}
