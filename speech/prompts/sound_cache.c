/* sound_cache.c — a file for each sound, named by the hash of what decides it, which it holds in full: two with the
 * same hash are never taken for each other. Written whole or not at all.
 *
 *     0  8 bytes  "LNTSOUND"
 *     8  u32      bytes of the key
 *    12  u32      samples
 *    16  u64      XXH3-64 of what follows
 *    24           the key, then the samples, 16 bits each; all numbers little-endian */
#include "speech/prompts/sound_cache.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "base/memory.h"
#include "formats/byte_order.h"
#include "formats/hash.h"
#include "formats/lnt_file.h"
#include "speech/parts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

enum { HEAD = 24, AT_KEY_BYTES = 8, AT_SAMPLES = 12, AT_HASH = 16, AT_ONCE = 4096, PATH_MOST = 4096 };
enum { DIGITS = 16 }; /* of a file's name */

static const char MAGIC[8] = "LNTSOUND", ENDING[] = ".sound";

/* An array of lnt_grow. */
typedef struct bytes {
    uint8_t *at;
    size_t n, room;
} bytes;

struct lnt_sound_cache {
    char folder[PATH_MOST];
    uint64_t most, total; /* bytes of all files; total as far as this process knows */
    bytes file;           /* of the present text: head, key, and what is collected of the sound */
    size_t key_bytes;
    bool whole;          /* all of the sound was collected */
    lnt_voice_emit emit; /* who receives it */
    void *user;
};

static const lnt_allocator *const heap = &lnt_malloc_allocator;

/* ---- bytes ---- */

static void store(uint8_t *at, uint64_t x, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = (uint8_t)(x >> 8 * i);
}

/* Adds the n low bytes of x. */
static lnt_status put(bytes *b, uint64_t x, unsigned n, lnt_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        LNT_TRY(LNT_GROW(heap, b->at, b->room, b->n, err));
        b->at[b->n++] = (uint8_t)(x >> 8 * i);
    }
    return LNT_OK;
}

static lnt_status put_float(bytes *b, float x, lnt_error *err)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return put(b, bits, sizeof bits, err);
}

static lnt_status put_double(bytes *b, double x, lnt_error *err)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return put(b, bits, sizeof bits, err);
}

/* ---- what decides a sound ---- */

static lnt_status put_part(bytes *b, const lnt_part *p, lnt_error *err)
{
    LNT_TRY(put(b, p->n_ids, 8, err));
    for (size_t i = 0; i < p->n_ids; i++)
        LNT_TRY(put(b, (uint64_t)p->ids[i], 8, err));
    LNT_TRY(put_double(b, p->silence, err));
    LNT_TRY(put(b, p->ends_a_sentence, 1, err));
    LNT_TRY(put_float(b, p->rate, err));
    LNT_TRY(put_float(b, p->pitch, err));
    return put_float(b, p->volume, err);
}

/* The file but for its sound, with room for its head. */
static lnt_status make_key(lnt_sound_cache *c, const lnt_voice *voice, const lnt_parts *parts,
                           const lnt_say_options *how, lnt_error *err)
{
    bytes *b = &c->file;
    b->n = 0;
    for (unsigned i = 0; i < HEAD; i += 8)
        LNT_TRY(put(b, 0, 8, err));
    LNT_TRY(put(b, lnt_voice_hash(voice), 8, err));
    LNT_TRY(put(b, lnt_voice_streams(voice), 1, err));
    LNT_TRY(put(b, how->seed, 8, err));
    LNT_TRY(put(b, (uint64_t)how->speaker, 8, err));
    LNT_TRY(put_float(b, how->noise, err));
    LNT_TRY(put_float(b, how->length, err));
    LNT_TRY(put_float(b, how->noise_w, err));
    LNT_TRY(put_float(b, how->volume, err));
    LNT_TRY(put_float(b, how->pitch, err));
    LNT_TRY(put(b, how->as_computed, 1, err));
    LNT_TRY(put_double(b, how->sentence_silence, err));
    for (size_t i = 0; i < parts->n; i++)
        LNT_TRY(put_part(b, &parts->part[i], err));
    c->key_bytes = b->n - HEAD;
    return LNT_OK;
}

static void path_of(const lnt_sound_cache *c, const char *name, char path[PATH_MOST + 32])
{
    snprintf(path, PATH_MOST + 32, "%s/%.*s", c->folder, (int)(DIGITS + sizeof ENDING), name);
}

/* The file of the present key. */
static void own_path(const lnt_sound_cache *c, char path[PATH_MOST + 32])
{
    char name[32];
    snprintf(name, sizeof name, "%0*" PRIx64 "%s", DIGITS, lnt_hash(c->file.at + HEAD, c->key_bytes), ENDING);
    path_of(c, name, path);
}

/* ---- the folder ---- */

typedef struct kept_file {
    char name[DIGITS + sizeof ENDING];
    int64_t time;
    uint64_t size;
} kept_file;

static bool is_ours(const char *name)
{
    return strlen(name) == DIGITS + sizeof ENDING - 1 && strspn(name, "0123456789abcdef") >= DIGITS &&
           strcmp(name + DIGITS, ENDING) == 0;
}

static int older(const void *a, const void *b)
{
    const kept_file *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time ? -1 : 1) : strcmp(x->name, y->name);
}

/* The files of the cache, *file an array of lnt_grow, and how many bytes they take. */
static lnt_status list(const lnt_sound_cache *c, kept_file **file, size_t *n, uint64_t *total, lnt_error *err)
{
    size_t room = 0;
    lnt_status status = LNT_OK;
    DIR *folder = opendir(c->folder);
    *file = NULL;
    *n = 0;
    *total = 0;
    LNT_REQUIRE(folder, err, LNT_E_IO, "%s: %s", c->folder, strerror(errno));
    for (struct dirent *d; status == LNT_OK && (d = readdir(folder));) {
        char path[PATH_MOST + 32];
        struct stat found;
        kept_file next = {.name = ""};
        if (!is_ours(d->d_name))
            continue;
        memcpy(next.name, d->d_name, sizeof next.name);
        path_of(c, next.name, path);
        if (stat(path, &found) != 0 || !S_ISREG(found.st_mode))
            continue; /* another process may have removed it */
        next.time = found.st_mtime;
        next.size = (uint64_t)found.st_size;
        status = LNT_GROW(heap, *file, room, *n, err);
        if (status == LNT_OK) {
            (*file)[(*n)++] = next;
            *total += next.size;
        }
    }
    closedir(folder);
    return status;
}

/* Removes what was asked for longest ago, until the rest is few enough bytes. */
static lnt_status trim(lnt_sound_cache *c, lnt_error *err)
{
    kept_file *all;
    size_t n;
    lnt_status status = list(c, &all, &n, &c->total, err);
    if (status == LNT_OK && n)
        qsort(all, n, sizeof *all, older);
    for (size_t i = 0; status == LNT_OK && i < n && c->total > c->most; i++) {
        char path[PATH_MOST + 32];
        path_of(c, all[i].name, path);
        if (unlink(path) == 0 || errno == ENOENT)
            c->total -= all[i].size;
    }
    lnt_free(heap, all);
    return status;
}

lnt_status lnt_sound_cache_create(const char *folder, uint64_t most, lnt_sound_cache **cache, lnt_error *err)
{
    struct stat found;
    *cache = NULL;
    LNT_REQUIRE(*folder && strlen(folder) < PATH_MOST, err, LNT_E_ARGUMENT, "a cache needs a folder");
    LNT_REQUIRE(mkdir(folder, 0777) == 0 || errno == EEXIST, err, LNT_E_IO, "%s: %s", folder,
                strerror(errno));
    LNT_REQUIRE(stat(folder, &found) == 0 && S_ISDIR(found.st_mode), err, LNT_E_IO, "%s is no folder",
                folder);
    lnt_sound_cache *c = lnt_alloc_zero(heap, 1, sizeof *c, err);
    if (!c)
        return LNT_E_MEMORY;
    strcpy(c->folder, folder);
    c->most = most;
    const lnt_status status = trim(c, err);
    if (status == LNT_OK)
        *cache = c;
    else
        lnt_sound_cache_destroy(&c);
    return status;
}

void lnt_sound_cache_destroy(lnt_sound_cache **cache)
{
    lnt_sound_cache *c = cache ? *cache : NULL;
    if (!c)
        return;
    lnt_free(heap, c->file.at);
    lnt_free(heap, c);
    *cache = NULL;
}

/* ---- a sound that is there ---- */

/* Is the file whole, and that of the present key? *samples: of its sound, which is its end. */
static bool is_sound(const lnt_sound_cache *c, const lnt_blob *file, uint32_t *samples)
{
    const uint8_t *at = file->bytes;
    if (file->size < HEAD || memcmp(at, MAGIC, sizeof MAGIC) != 0)
        return false;
    const uint64_t key_bytes = lnt_load_le(at + AT_KEY_BYTES, 4);
    *samples = (uint32_t)lnt_load_le(at + AT_SAMPLES, 4);
    return key_bytes == c->key_bytes && file->size == HEAD + key_bytes + 2 * (uint64_t)*samples &&
           memcmp(at + HEAD, c->file.at + HEAD, c->key_bytes) == 0 &&
           lnt_load_le(at + AT_HASH, 8) == lnt_hash(at + HEAD, file->size - HEAD);
}

static lnt_status play(const uint8_t *sound, uint32_t samples, lnt_voice_emit emit, void *user,
                       lnt_error *err)
{
    int16_t pcm[AT_ONCE];
    for (uint32_t at = 0, n; at < samples; at += n) {
        n = samples - at < AT_ONCE ? samples - at : AT_ONCE;
        for (uint32_t i = 0; i < n; i++)
            pcm[i] = (int16_t)(uint16_t)lnt_load_le(sound + 2 * ((size_t)at + i), 2);
        LNT_REQUIRE(emit(user, pcm, n) == 0, err, LNT_E_CANCELLED, "stopped by who receives the sound");
    }
    return LNT_OK;
}

/* Speaks from the file of the present key, if it is one. */
static lnt_status find(const lnt_sound_cache *c, lnt_voice_emit emit, void *user, bool *found, lnt_error *err)
{
    char path[PATH_MOST + 32];
    lnt_blob file = {0};
    uint32_t samples;
    own_path(c, path);
    *found = lnt_blob_open(path, true, heap, &file, NULL) == LNT_OK;
    if (*found)
        *found = is_sound(c, &file, &samples);
    lnt_status status = LNT_OK;
    if (*found) {
        (void)utime(path, NULL); /* it was asked for now; a folder that is only read has no order */
        status =
            play((const uint8_t *)file.bytes + file.size - 2 * (size_t)samples, samples, emit, user, err);
    }
    lnt_blob_close(&file);
    return status;
}

/* ---- a sound that is new ---- */

/* An lnt_voice_emit that keeps what it passes on, as much as the folder may hold. */
static int collect(void *user, const int16_t *pcm, size_t n)
{
    lnt_sound_cache *c = user;
    for (size_t i = 0; i < n && c->whole; i++)
        c->whole = c->file.n < c->most && put(&c->file, (uint16_t)pcm[i], 2, NULL) == LNT_OK;
    return c->emit(c->user, pcm, n);
}

static lnt_status keep(lnt_sound_cache *c, lnt_error *err)
{
    char path[PATH_MOST + 32];
    uint8_t *at = c->file.at;
    const size_t n = c->file.n, samples = (n - HEAD - c->key_bytes) / 2;
    if (!c->whole || n > c->most || samples > UINT32_MAX || c->key_bytes > UINT32_MAX)
        return LNT_OK;
    memcpy(at, MAGIC, sizeof MAGIC);
    store(at + AT_KEY_BYTES, c->key_bytes, 4);
    store(at + AT_SAMPLES, samples, 4);
    store(at + AT_HASH, lnt_hash(at + HEAD, n - HEAD), 8);
    own_path(c, path);
    LNT_TRY(lnt_write_atomic(path, at, n, err));
    c->total += n;
    return c->total > c->most ? trim(c, err) : LNT_OK;
}

lnt_status lnt_sound_cache_say(lnt_sound_cache *c, lnt_voice *voice, const char *text,
                               const lnt_say_options *options, lnt_voice_emit emit, void *user, bool *found,
                               lnt_error *unkept, lnt_error *err)
{
    const lnt_parts *parts;
    lnt_say_options how;
    lnt_error_clear(unkept);
    *found = false;
    LNT_TRY(lnt_voice_take_options(voice, options, &how, err));
    LNT_TRY(lnt_voice_plan(voice, text, &how, &parts, err));
    LNT_TRY(make_key(c, voice, parts, &how, err));
    LNT_TRY(find(c, emit, user, found, err));
    if (*found)
        return LNT_OK;
    c->emit = emit;
    c->user = user;
    c->whole = true;
    LNT_TRY(lnt_voice_say_parts(voice, parts->part, parts->n, &how, collect, c, err));
    (void)keep(c, unkept);
    return LNT_OK;
}
