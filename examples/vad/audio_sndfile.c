/* audio_sndfile.c — a sound file as mono float samples, through libsndfile and libsamplerate. */
#include "audio.h"

#include <samplerate.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>

static float *resample(float *samples, size_t *n, double ratio)
{
    const size_t room = (size_t)((double)*n * ratio) + 16;
    float *out = malloc(room * sizeof *out);
    SRC_DATA job = {.data_in = samples,
                    .data_out = out,
                    .input_frames = (long)*n,
                    .output_frames = (long)room,
                    .src_ratio = ratio};
    const int failed = out ? src_simple(&job, SRC_SINC_BEST_QUALITY, 1) : -1;
    free(samples);
    if (failed) {
        fprintf(stderr, "resampling: %s\n", out ? src_strerror(failed) : "out of memory");
        free(out);
        return NULL;
    }
    *n = (size_t)job.output_frames_gen;
    return out;
}

float *audio_read(const char *path, int rate, size_t *n)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, sf_strerror(NULL));
        return NULL;
    }
    float *samples = malloc((size_t)info.frames * (size_t)info.channels * sizeof *samples + 1);
    *n = samples ? (size_t)sf_readf_float(file, samples, info.frames) : 0;
    sf_close(file);
    for (size_t i = 0; i < *n; i++) { /* the mean of all channels */
        float sum = 0;
        for (int c = 0; c < info.channels; c++)
            sum += samples[i * (size_t)info.channels + (size_t)c];
        samples[i] = sum / (float)info.channels;
    }
    return samples && info.samplerate != rate ? resample(samples, n, (double)rate / info.samplerate)
                                              : samples;
}
