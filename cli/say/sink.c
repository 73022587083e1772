/* sink.c — where the sound of a text goes. */
#include "cli/say/sink.h"

#include "cli/data/audio.h"
#include "formats/lnt_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- samples ---- */

static lnt_status collect(lnt_sink *s, const int16_t *pcm, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        LNT_TRY(LNT_GROW(&lnt_malloc_allocator, s->pcm, s->room, s->n, s->err));
        s->pcm[s->n++] = pcm[i];
    }
    return LNT_OK;
}

size_t lnt_pcm_bytes(const int16_t *pcm, size_t n, uint8_t *to)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = (uint8_t)(uint16_t)pcm[i];
        to[2 * i + 1] = (uint8_t)((uint16_t)pcm[i] >> 8);
    }
    return 2 * n;
}

static lnt_status write_bytes(lnt_sink *s, const uint8_t *bytes, size_t n)
{
    LNT_REQUIRE(fwrite(bytes, 1, n, stdout) == n, s->err, LNT_E_IO, "cannot write the sound: %s",
                strerror(errno));
    return LNT_OK;
}

/* Passes samples on at once. */
static lnt_status pass(lnt_sink *s, const int16_t *pcm, size_t n)
{
    enum { AT_ONCE = 2048 };
    uint8_t bytes[2 * AT_ONCE];
    for (size_t at = 0; at < n; at += AT_ONCE) {
        const size_t most = n - at < AT_ONCE ? n - at : AT_ONCE;
        LNT_TRY(write_bytes(s, bytes, lnt_pcm_bytes(pcm + at, most, bytes)));
    }
    LNT_REQUIRE(fflush(stdout) == 0, s->err, LNT_E_IO, "cannot write the sound: %s", strerror(errno));
    return LNT_OK;
}

static lnt_status play(lnt_sink *s, const int16_t *pcm, size_t n)
{
    const lnt_status status = lnt_player_put(s->player, pcm, n, s->generation, s->err);
    s->interrupted |= status == LNT_E_CANCELLED;
    return status;
}

int lnt_sink_take(void *sink, const int16_t *pcm, size_t n)
{
    lnt_sink *s = sink;
    s->given += n;
    switch (s->kind) {
    case LNT_SINK_PLAY: return play(s, pcm, n) != LNT_OK;
    case LNT_SINK_RAW: return pass(s, pcm, n) != LNT_OK;
    default: return collect(s, pcm, n) != LNT_OK;
    }
}

/* ---- files ---- */

static lnt_status write_sound(lnt_sink *s, const char *path)
{
    void *bytes = NULL;
    size_t size = 0;
    const bool out = strcmp(path, "-") == 0;
    lnt_status status =
        lnt_sound_encode_pcm(out ? "-.wav" : path, s->pcm, s->n, s->rate, &bytes, &size, s->err);
    if (status == LNT_OK && out)
        status = write_bytes(s, bytes, size);
    else if (status == LNT_OK)
        status = lnt_write_atomic(path, bytes, size, s->err);
    lnt_free(&lnt_malloc_allocator, bytes);
    s->n = 0;
    return status;
}

/* The folder and those it is in; where one cannot be made, writing the file will say so. */
static void make_folder(const char *path)
{
    char part[4096];
    for (size_t n = 1; n < sizeof part && path[n - 1]; n++)
        if (path[n] == '/' || !path[n]) {
            memcpy(part, path, n);
            part[n] = '\0';
            mkdir(part, 0777);
        }
}

/* The text's own characters, without those that some system's names may not have. */
static void name_by_text(const char *text, char *to)
{
    enum { MOST = 200 }; /* what writes files puts something behind the name until they are whole */
    size_t n = strlen(text);
    char *const begin = to;
    if (n > MOST)
        for (n = MOST; n > 0 && (text[n] & 0xc0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0x20 && !strchr("/\\:*?\"<>|\x7f", text[i]))
            *to++ = text[i];
    *to = '\0';
    if (!begin[strspn(begin, ".")])
        strcpy(begin, "_");
}

/* Nanoseconds, of no two files the same. */
static void name_by_time(lnt_sink *s, char *to, size_t room)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    s->last_time = now > s->last_time ? now : s->last_time + 1;
    snprintf(to, room, "%llu", (unsigned long long)s->last_time);
}

/* Path of the text's file in the folder. */
static lnt_status name_file(lnt_sink *s, const char *text)
{
    enum { NAME_ROOM = 256 };
    char name[NAME_ROOM];
    make_folder(s->path);
    if (s->named_by_text)
        name_by_text(text, name);
    else
        name_by_time(s, name, sizeof name);
    const int n = snprintf(s->name, sizeof s->name, "%s/%s.wav", s->path, name);
    LNT_REQUIRE(n > 0 && (size_t)n < sizeof s->name, s->err, LNT_E_ARGUMENT, "%s: too long a path", s->path);
    return LNT_OK;
}

lnt_status lnt_sink_end_text(lnt_sink *s, const char *text, const char *file, const char **written)
{
    *written = NULL;
    if (!file && s->kind != LNT_SINK_FOLDER)
        return LNT_OK;
    if (!file)
        LNT_TRY(name_file(s, text));
    *written = file ? file : s->name;
    return write_sound(s, *written);
}

lnt_status lnt_sink_end(lnt_sink *s, const char **written)
{
    *written = NULL;
    if (s->kind != LNT_SINK_FILE)
        return s->player ? lnt_player_finish(s->player, s->err) : LNT_OK;
    LNT_TRY(write_sound(s, s->path));
    *written = strcmp(s->path, "-") == 0 ? NULL : s->path;
    return LNT_OK;
}

void lnt_sink_free(lnt_sink *s)
{
    lnt_player_destroy(&s->player);
    lnt_free(&lnt_malloc_allocator, s->pcm);
    s->pcm = NULL;
}
