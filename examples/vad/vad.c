/* vad.c — where in a sound is speech? Streams audio through silero VAD, frame by frame.
 *
 *     vad MODEL.lnt SOUND [MODEL.onnx]        (the .onnx only for the table of sizes)
 *     arecord -q -f S16_LE -r 16000 -c 1 | vad MODEL.lnt -        (told as it is heard: live.c) */
#include "detector.h"
#include "read_audio.h"
#include "segments.h"

#include <linnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { RATE = VAD_RATE, STEP = VAD_STEP, PICTURE = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const lnt_error *err)
{
    fprintf(stderr, "vad: %s: %s\n", lnt_status_text(err->code), err->message);
    return 1;
}

/* Fills probability[0..n) with that of each step; *seconds receives the time spent in the model. */
static lnt_status stream(const lnt_model *model, lnt_session *session, const float *samples, size_t n_samples,
                         float *probability, size_t n, double *seconds, lnt_error *err)
{
    detector d;
    lnt_status status = detector_start(&d, model, session, err);
    *seconds = 0;
    for (size_t i = 0; i < n && status == LNT_OK; i++) {
        const size_t left = n_samples - i * STEP;
        const double start = now();
        status = detector_step(&d, samples + i * STEP, left < STEP ? left : STEP, &probability[i], err);
        *seconds += now() - start;
    }
    return status;
}

/* One row of characters, darker where speech is likelier, and one with the segments below. */
static void draw(const float *probability, size_t n, const segment *s, size_t n_segments)
{
    const size_t width = n < PICTURE ? n : PICTURE;
    char likely[PICTURE + 1] = "", found[PICTURE + 1] = "";
    for (size_t x = 0; x < width; x++) {
        const size_t from = x * n / width, to = (x + 1) * n / width;
        float most = 0;
        for (size_t i = from; i < to; i++)
            most = probability[i] > most ? probability[i] : most;
        likely[x] = " .:-=+*#%@"[(int)(most * 9.99f)];
        found[x] = ' ';
        for (size_t k = 0; k < n_segments; k++)
            if (s[k].begin < to * STEP && s[k].end > from * STEP)
                found[x] = '^';
    }
    printf("\n  |%s|\n  |%s|\n", likely, found);
}

static void row(const char *what, double value, const char *unit)
{
    printf("  %-20s %12.*f %s\n", what, value >= 1000 ? 0 : value >= 10 ? 1 : 4, value, unit);
}

static void row_file(const char *what, const char *path)
{
    struct stat st;
    if (path && stat(path, &st) == 0)
        row(what, (double)st.st_size, "bytes");
}

static int close_all(lnt_model **model, lnt_session **session, int code)
{
    lnt_session_destroy(session);
    lnt_model_destroy(model);
    return code;
}

int main(int argc, char **argv)
{
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    size_t n_samples, n_segments;
    double seconds;

    if (argc < 3) {
        fprintf(stderr, "usage: vad MODEL.lnt SOUND|- [MODEL.onnx]\n");
        return 2;
    }
    const bool live = strcmp(argv[2], "-") == 0;
    float *samples = live ? NULL : audio_read(argv[2], RATE, &n_samples);
    if (!samples && !live)
        return 3;
    const double start = now();
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    if (lnt_model_create(argv[1], NULL, &model, &err) || lnt_session_create(model, &options, &session, &err))
        return fail(&err);
    if (live)
        return close_all(&model, &session, vad_live(model, session));
    const double loaded = now() - start;

    const size_t n = (n_samples + STEP - 1) / STEP;
    float *probability = calloc(n + 1, sizeof *probability);
    if (!probability || stream(model, session, samples, n_samples, probability, n, &seconds, &err))
        return fail(&err);
    segment *s = find_segments(probability, n, STEP, n_samples, RATE, &n_segments);
    for (size_t i = 0; i < n_segments; i++)
        printf("  speech %7.3f s .. %7.3f s\n", (double)s[i].begin / RATE, (double)s[i].end / RATE);
    draw(probability, n, s, n_segments);

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("\n");
    row_file("model .onnx", argc > 3 ? argv[3] : NULL);
    row_file("model .lnt", argv[1]);
    row_file("program", "/proc/self/exe");
    row("audio", (double)n_samples / RATE, "s");
    row("load", loaded * 1e6, "us");
    row("a frame (32 ms)", seconds / (double)(n ? n : 1) * 1e6, "us");
    row("real-time factor", seconds * RATE / (double)(n_samples ? n_samples : 1), "");
    row("peak memory", (double)usage.ru_maxrss, "KiB");

    free(s);
    free(probability);
    free(samples);
    return close_all(&model, &session, 0);
}
