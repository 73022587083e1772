/* vad.c — where in a sound is speech? Streams audio through silero VAD, frame by frame.
 *
 *     vad MODEL.lnt SOUND [MODEL.onnx]        (the .onnx only for the table of sizes)
 *
 * The model was converted with its recurrent state declared (--state stateN=state): the session carries it
 * from frame to frame, this program never sees it. Each frame is 512 new samples behind the last 64 of the
 * frame before. */
#include "read_audio.h"
#include "segments.h"

#include <linnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { RATE = 16000, CONTEXT = 64, STEP = 512, PICTURE = 100 };

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

/* Fills probability[0..n) with that of each step; *seconds receives the time spent in lnt_run. */
static lnt_status stream(lnt_model *model, lnt_session *session, const float *samples, size_t n_samples,
                         float *probability, size_t n, double *seconds, lnt_error *err)
{
    const int input = lnt_model_find_input(model, "input"), sr = lnt_model_find_input(model, "sr");
    const int64_t rate = RATE;
    float frame[CONTEXT + STEP] = {0};
    lnt_tensor out;

    /* The memory of inputs is read in every run: set once, filled again for each frame. */
    lnt_status status = lnt_set_input(
        session, (uint32_t)input, &(lnt_tensor){LNT_FLOAT, 2, {1, CONTEXT + STEP}, frame, sizeof frame}, err);
    if (status == LNT_OK)
        status = lnt_set_input(session, (uint32_t)sr,
                               &(lnt_tensor){LNT_INT64, 0, {0}, (void *)&rate, sizeof rate}, err);
    *seconds = 0;
    for (size_t i = 0; i < n && status == LNT_OK; i++) {
        const size_t left = n_samples - i * STEP, fresh = left < STEP ? left : STEP;
        memmove(frame, frame + STEP, CONTEXT * sizeof *frame);
        memcpy(frame + CONTEXT, samples + i * STEP, fresh * sizeof *frame);
        memset(frame + CONTEXT + fresh, 0, (STEP - fresh) * sizeof *frame);
        const double start = now();
        status = lnt_run(session, err);
        *seconds += now() - start;
        if (status == LNT_OK)
            status = lnt_get_output(session, 0, &out, err);
        if (status == LNT_OK)
            probability[i] = *(const float *)out.data;
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

int main(int argc, char **argv)
{
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    size_t n_samples, n_segments;
    double seconds;

    if (argc < 3) {
        fprintf(stderr, "usage: vad MODEL.lnt SOUND [MODEL.onnx]\n");
        return 2;
    }
    float *samples = audio_read(argv[2], RATE, &n_samples);
    if (!samples)
        return 3;
    const double start = now();
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    if (lnt_model_create(argv[1], NULL, &model, &err) || lnt_session_create(model, &options, &session, &err))
        return fail(&err);
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
    lnt_session_destroy(&session);
    lnt_model_destroy(&model);
    return 0;
}
