/* read_audio.h — a sound file as mono float samples at the rate a model wants. */
#ifndef VAD_AUDIO_H
#define VAD_AUDIO_H

#include <stddef.h>

/* Reads path (any rate, any channels), brings it to rate Hz. Returns samples to free(), their number in *n;
 * NULL after a message to stderr. */
float *audio_read(const char *path, int rate, size_t *n);

#endif
