/* text_queue.c — texts that come while others are spoken. */
#include "cli/say/text_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MOST = 64 }; /* texts that are read ahead where none are dropped */

typedef struct waiting {
    lnt_spoken spoken;
    bool found; /* false: what was read is the end, or wrong */
    lnt_error err;
    uint64_t generation;
    lnt_bump memory; /* of what spoken points to */
    struct waiting *next;
} waiting;

struct lnt_text_queue {
    lnt_text_source *source;
    lnt_player *player;
    uint64_t generation; /* the reader's */
    pthread_t reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    waiting *first, *last, *spoken; /* spoken: the one that was given out */
    size_t n;
    bool ended, stopping; /* the reader's thread has ended; is to end */
};

static void drop(waiting *w)
{
    if (!w)
        return;
    lnt_bump_free(&w->memory);
    lnt_free(&lnt_malloc_allocator, w);
}

static void drop_all(lnt_text_queue *q)
{
    for (waiting *w = q->first, *next; w; w = next) {
        next = w->next;
        drop(w);
    }
    q->first = q->last = NULL;
    q->n = 0;
}

/* ---- the reader's thread ---- */

static lnt_status copy_text(lnt_bump *memory, const char **text, lnt_error *err)
{
    if (*text)
        *text = lnt_bump_string(memory, *text, strlen(*text), err);
    return *text || !err->code ? LNT_OK : err->code;
}

/* All that spoken points to becomes the memory's. */
static lnt_status copy(lnt_bump *memory, lnt_spoken *spoken, lnt_error *err)
{
    lnt_slot_value *value = lnt_bump_alloc(memory, spoken->n_values * sizeof *value, err);
    if (!value)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < spoken->n_values; i++) {
        value[i] = spoken->value[i];
        LNT_TRY(copy_text(memory, &value[i].slot, err));
        LNT_TRY(copy_text(memory, &value[i].value, err));
    }
    spoken->value = value;
    LNT_TRY(copy_text(memory, &spoken->text, err));
    LNT_TRY(copy_text(memory, &spoken->file, err));
    return copy_text(memory, &spoken->speaker, err);
}

/* The next text; NULL: no memory for one. */
static waiting *read_one(lnt_text_queue *q)
{
    waiting *w = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *w, NULL);
    if (!w)
        return NULL;
    lnt_bump_init(&w->memory, &lnt_malloc_allocator);
    lnt_status status = lnt_text_next(q->source, &w->spoken, &w->found, &w->err);
    if (status == LNT_OK && w->found)
        status = copy(&w->memory, &w->spoken, &w->err);
    w->found &= status == LNT_OK;
    return w;
}

/* Puts a text behind those that wait, or in their place. The lock is held. */
static void put(lnt_text_queue *q, waiting *w)
{
    const lnt_queue_kind kind = w->found ? w->spoken.queue : LNT_QUEUE_ADD;
    while (kind == LNT_QUEUE_ADD && w->found && q->n >= WAITING_MOST && !q->stopping)
        pthread_cond_wait(&q->changed, &q->lock);
    if (kind != LNT_QUEUE_ADD)
        drop_all(q);
    if (kind == LNT_QUEUE_INTERRUPT)
        q->generation = lnt_player_interrupt(q->player);
    w->generation = q->generation;
    if (q->first)
        q->last->next = w;
    else
        q->first = w;
    q->last = w;
    q->n++;
    pthread_cond_broadcast(&q->changed);
}

static void *reader_main(void *user)
{
    lnt_text_queue *q = user;
    bool more = true;
    while (more) {
        waiting *w = read_one(q);
        pthread_mutex_lock(&q->lock);
        more = w && w->found && !q->stopping;
        if (w && !q->stopping)
            put(q, w);
        else
            drop(w);
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_lock(&q->lock);
    q->ended = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- who speaks ---- */

lnt_status lnt_text_queue_start(lnt_text_source *source, lnt_player *player, lnt_text_queue **queue,
                                lnt_error *err)
{
    lnt_text_queue *q = *queue = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *q, err);
    if (!q)
        return LNT_E_MEMORY;
    q->source = source;
    q->player = player;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    const int failed = pthread_create(&q->reader, NULL, reader_main, q);
    if (failed) {
        lnt_free(&lnt_malloc_allocator, q);
        *queue = NULL;
    }
    LNT_REQUIRE(!failed, err, LNT_E_MEMORY, "cannot start the reader's thread: %s", strerror(failed));
    return LNT_OK;
}

lnt_status lnt_text_queue_next(lnt_text_queue *q, lnt_spoken *to, uint64_t *generation, bool *found,
                               lnt_error *err)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->ended)
        pthread_cond_wait(&q->changed, &q->lock);
    waiting *w = q->first;
    drop(q->spoken);
    q->spoken = w;
    if (w) {
        q->first = w->next;
        q->n--;
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    LNT_REQUIRE(w, err, LNT_E_MEMORY, "no memory for the next text");
    *found = w->found;
    *to = w->spoken;
    *generation = w->generation;
    if (w->err.code)
        *err = w->err;
    return w->err.code;
}

bool lnt_text_queue_stop(lnt_text_queue **queue)
{
    lnt_text_queue *q = *queue;
    if (!q)
        return true;
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    const bool ended = q->ended || (q->spoken && !q->spoken->found);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (!ended)
        return false;
    pthread_join(q->reader, NULL);
    drop_all(q);
    drop(q->spoken);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    lnt_free(&lnt_malloc_allocator, q);
    *queue = NULL;
    return true;
}
