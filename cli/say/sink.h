/* sink.h — where the sound of a text goes: a file, standard output, a folder, a loudspeaker. */
#ifndef LNT_CLI_SAY_SINK_H
#define LNT_CLI_SAY_SINK_H

#include "base/memory.h"
#include "cli/say/player.h"

typedef enum lnt_sink_kind {
    LNT_SINK_PLAY,  /* the program aplay, by a pipe */
    LNT_SINK_FILE,  /* one sound of all texts; "-": a .wav on standard output */
    LNT_SINK_RAW,   /* samples on standard output as they come */
    LNT_SINK_FOLDER /* a .wav for each text */
} lnt_sink_kind;

typedef struct lnt_sink {
    lnt_sink_kind kind;
    const char *path;   /* of file or folder */
    bool named_by_text; /* files of a folder; else by the time */
    uint32_t rate;
    int16_t *pcm; /* what is collected; an lnt_grow array */
    size_t n, room;
    size_t given;        /* samples received so far */
    lnt_player *player;  /* of LNT_SINK_PLAY alone */
    uint64_t generation; /* of what is played */
    bool interrupted;    /* it is of an older one, and not played any more */
    lnt_error *err;
    uint64_t last_time;
    char name[4096]; /* of the last file in the folder */
} lnt_sink;

/* Samples as files, players and clients have them: little-endian. Returns the bytes, 2 n. */
size_t lnt_pcm_bytes(const int16_t *pcm, size_t n, uint8_t *to);
/* An lnt_voice_emit: user is a sink, which explains failures in its err. */
int lnt_sink_take(void *sink, const int16_t *pcm, size_t n);
/* A text's sound is whole. file: where it goes instead of the sink's own place; NULL: there. *written: the name of the
 * file that is whole now, NULL if none is. */
lnt_status lnt_sink_end_text(lnt_sink *s, const char *text, const char *file, const char **written);
/* All texts are spoken. */
lnt_status lnt_sink_end(lnt_sink *s, const char **written);
/* Plays no further; gives back what the sink holds. */
void lnt_sink_free(lnt_sink *s);

#endif
