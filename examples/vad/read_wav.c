/* read_wav.c — a sound file without any library: a .wav at the rate the model wants, by the program's own
 * reader. */
#include "read_audio.h"

#include "cli/data/audio.h"

#include <stdio.h>

float *audio_read(const char *path, int rate, size_t *n)
{
    lnt_sound sound;
    lnt_error err = {0};
    if (lnt_sound_read(path, (uint32_t)rate, &sound, &err) != LNT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return NULL;
    }
    *n = sound.n;
    return sound.samples;
}
