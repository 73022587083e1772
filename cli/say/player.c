/* player.c — sound that is played by the program aplay. */
#include "cli/say/player.h"

#include "base/memory.h"
#include "cli/say/sink.h"
#include "speech/child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    RING_SECONDS = 2,
    AT_ONCE = 512,     /* samples that are written at once */
    PIPE_BYTES = 8192, /* that wait for the program */
};

struct lnt_player {
    uint32_t rate;
    bool started; /* the writer's thread runs */
    pthread_t writer;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything below */
    int16_t *ring;          /* [room]; samples [first, first + n), modulo room, are not written yet */
    size_t room, first, n;
    lnt_child child;     /* pid 0: none runs */
    bool stopped;        /* the program was killed, and is to be waited for */
    bool ending;         /* no more samples come */
    uint64_t generation; /* counts interrupts */
    lnt_error err;       /* why nothing is played any more */
};

/* ---- the writer's thread; the lock is held but for writes ---- */

static lnt_status start_program(lnt_player *p)
{
    char rate[16];
    const int bytes = PIPE_BYTES;
    snprintf(rate, sizeof rate, "%u", p->rate);
    const char *const argv[] = {"aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", rate, NULL};
    if (p->child.pid)
        return LNT_OK;
    const lnt_status status = lnt_child_start(argv, false, &p->child, &p->err);
    if (status == LNT_E_UNSUPPORTED)
        lnt_error_prefix(
            &p->err,
            "sound is played by the program aplay, which is not here (Debian's package alsa-utils; or "
            "-f FILE.wav): ");
    if (status == LNT_OK)
        setsockopt(p->child.to, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return status;
}

/* Takes what comes first out of the ring, and gives it to the program. */
static lnt_status write_some(lnt_player *p)
{
    uint8_t bytes[2 * AT_ONCE];
    lnt_error err = {0};
    const size_t whole = p->n < p->room - p->first ? p->n : p->room - p->first;
    const size_t n = whole < AT_ONCE ? whole : AT_ONCE;
    LNT_TRY(start_program(p));
    lnt_pcm_bytes(p->ring + p->first, n, bytes);
    p->first = (p->first + n) % p->room;
    p->n -= n;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    const lnt_status status = lnt_child_write(&p->child, bytes, 2 * n, &err);
    pthread_mutex_lock(&p->lock);
    if (status != LNT_OK && !p->stopped)
        p->err = err;
    return p->stopped ? LNT_OK : status;
}

static void *writer_main(void *user)
{
    lnt_player *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->err.code) {
        if (p->stopped) {
            lnt_child_stop(&p->child);
            p->stopped = false;
        } else if (p->n) {
            (void)write_some(p);
        } else if (p->ending) {
            break;
        } else {
            pthread_cond_wait(&p->changed, &p->lock);
        }
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- those who have sound ---- */

lnt_status lnt_player_create(uint32_t rate, lnt_player **player, lnt_error *err)
{
    lnt_player *p = *player = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *p, err);
    if (!p)
        return LNT_E_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->rate = rate;
    p->room = (size_t)RING_SECONDS * rate;
    p->ring = lnt_alloc(&lnt_malloc_allocator, p->room * sizeof *p->ring, err);
    const int failed = p->ring ? pthread_create(&p->writer, NULL, writer_main, p) : ENOMEM;
    p->started = !failed;
    if (failed)
        lnt_player_destroy(player);
    LNT_REQUIRE(!failed, err, LNT_E_MEMORY, "cannot start the player's thread: %s", strerror(failed));
    return LNT_OK;
}

static void put_some(lnt_player *p, const int16_t *pcm, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p->ring[(p->first + p->n + i) % p->room] = pcm[i];
    p->n += n;
    pthread_cond_broadcast(&p->changed);
}

static lnt_status put_all(lnt_player *p, const int16_t *pcm, size_t n, uint64_t generation, lnt_error *err)
{
    if (!p->child.pid && !p->err.code && generation == p->generation)
        (void)start_program(p); /* what it fails with is said at once */
    for (size_t at = 0, most; at < n; at += most) {
        while (p->n == p->room && !p->err.code && generation == p->generation)
            pthread_cond_wait(&p->changed, &p->lock);
        if (generation != p->generation)
            return LNT_E_CANCELLED;
        if (p->err.code) {
            *err = p->err;
            return p->err.code;
        }
        const size_t left = p->room - p->n;
        most = n - at < left ? n - at : left;
        put_some(p, pcm + at, most);
    }
    return LNT_OK;
}

lnt_status lnt_player_put(lnt_player *p, const int16_t *pcm, size_t n, uint64_t generation, lnt_error *err)
{
    pthread_mutex_lock(&p->lock);
    const lnt_status status = put_all(p, pcm, n, generation, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}

uint64_t lnt_player_interrupt(lnt_player *p)
{
    pthread_mutex_lock(&p->lock);
    p->n = 0;
    p->stopped = p->child.pid > 0;
    if (p->stopped)
        kill(p->child.pid, SIGKILL); /* the writer, whose write fails now, waits for it */
    const uint64_t generation = ++p->generation;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return generation;
}

static void end_writer(lnt_player *p)
{
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->started)
        pthread_join(p->writer, NULL);
    p->started = false;
}

lnt_status lnt_player_finish(lnt_player *p, lnt_error *err)
{
    int code = 0;
    end_writer(p);
    if (p->err.code) {
        *err = p->err;
        return p->err.code;
    }
    if (!p->child.pid)
        return LNT_OK;
    LNT_TRY(lnt_child_finish(&p->child, &code, err));
    LNT_REQUIRE(code == 0, err, LNT_E_IO,
                "aplay ends with %d: is there a loudspeaker? (-f FILE.wav writes a file)", code);
    return LNT_OK;
}

void lnt_player_destroy(lnt_player **player)
{
    lnt_player *p = *player;
    if (!p)
        return;
    (void)lnt_player_interrupt(p);
    end_writer(p);
    lnt_child_stop(&p->child);
    lnt_free(&lnt_malloc_allocator, p->ring);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    lnt_free(&lnt_malloc_allocator, p);
    *player = NULL;
}
