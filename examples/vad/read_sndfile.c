/* read_sndfile.c — a sound file as mono float samples, through libsndfile and libsamplerate. */
#include "read_audio.h"

#include <errno.h>
#include <fcntl.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Opens a regular file; for anything else, a FIFO say, it does not wait. -1 after a message. */
static int open_file(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    fprintf(stderr, "%s: %s\n", path, fd < 0 ? strerror(errno) : "not a regular file");
    if (fd >= 0)
        close(fd);
    return -1;
}

float *audio_read(const char *path, int rate, size_t *n)
{
    SF_INFO info = {0};
    const int fd = open_file(path);
    SNDFILE *file = fd >= 0 ? sf_open_fd(fd, SFM_READ, &info, SF_TRUE) : NULL;
    if (!file) {
        if (fd >= 0)
            fprintf(stderr, "%s: %s\n", path, sf_strerror(NULL));
        return NULL;
    }
    float *samples = calloc((size_t)info.frames + 1, (size_t)info.channels * sizeof *samples);
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
