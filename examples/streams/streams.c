/* streams.c — many streams on one model: a session and a thread for each.
 *
 *     streams VAD.lnt SOUND.raw SOUND.raw ...        (16 bits, mono, 16 kHz, little-endian as this machine)
 */
#include <linnet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 64, STEP = 512, MOST = 16 };

typedef struct stream {
    const lnt_model *model;
    lnt_session *session;
    const char *path;
    size_t steps, speech;
    lnt_error err;
} stream;

/* The memory of inputs is set once and filled again for each step; the state stays in the session. */
static lnt_status set_inputs(stream *s, float *frame, int64_t *rate)
{
    const lnt_tensor input = {LNT_FLOAT, 2, {1, CONTEXT + STEP}, frame, (CONTEXT + STEP) * sizeof *frame};
    const lnt_tensor sr = {LNT_INT64, 0, {0}, rate, sizeof *rate};
    const int n = lnt_model_find_input(s->model, "input"), k = lnt_model_find_input(s->model, "sr");
    const lnt_status status = lnt_set_input(s->session, (uint32_t)n, &input, &s->err);
    return status ? status : lnt_set_input(s->session, (uint32_t)k, &sr, &s->err);
}

/* A thread: one sound from its first to its last sample. A failure is in s->err. */
static void *run(void *argument)
{
    stream *s = argument;
    float frame[CONTEXT + STEP] = {0};
    int16_t samples[STEP];
    int64_t rate = 16000;
    lnt_tensor out;
    FILE *file = fopen(s->path, "rb");
    if (!file) {
        s->err.code = LNT_E_IO;
        snprintf(s->err.message, sizeof s->err.message, "cannot open %s", s->path);
        return NULL;
    }
    lnt_status status = set_inputs(s, frame, &rate);
    while (status == LNT_OK && fread(samples, sizeof samples, 1, file) == 1) {
        memmove(frame, frame + STEP, CONTEXT * sizeof *frame);
        for (int i = 0; i < STEP; i++)
            frame[CONTEXT + i] = (float)samples[i] / 32768;
        status = lnt_run(s->session, &s->err);
        if (status == LNT_OK)
            status = lnt_get_output(s->session, 0, &out, &s->err);
        s->speech += status == LNT_OK && *(const float *)out.data >= 0.5f;
        s->steps++;
    }
    fclose(file);
    return NULL;
}

static int report(const stream *s)
{
    lnt_session_info info = {.struct_bytes = sizeof info};
    lnt_error err = {0};
    if (s->err.code || lnt_session_get_info(s->session, &info, &err))
        return fprintf(stderr, "streams: %s\n", s->err.code ? s->err.message : err.message), 1;
    printf("%s: %zu of %zu steps are speech; the session holds %llu bytes\n", s->path, s->speech, s->steps,
           (unsigned long long)info.held_bytes);
    return 0;
}

int main(int argc, char **argv)
{
    const lnt_session_options options = {.struct_bytes = sizeof options, .intra_op_num_threads = 1};
    lnt_model *model = NULL;
    lnt_error err = {0};
    stream streams[MOST] = {0};
    pthread_t threads[MOST];
    int started = 0, failed = 0;
    const int n = argc - 2;
    if (n < 1 || n > MOST)
        return fprintf(stderr, "usage: streams VAD.lnt SOUND.raw ... (at most %d)\n", MOST), 2;
    if (lnt_model_create(argv[1], NULL, &model, &err))
        return fprintf(stderr, "streams: %s\n", err.message), 1;
    for (int i = 0; i < n; i++) {
        streams[i].model = model;
        streams[i].path = argv[2 + i];
        failed |= lnt_session_create(model, &options, &streams[i].session, &err) != LNT_OK;
    }
    if (failed)
        fprintf(stderr, "streams: %s\n", err.message);
    while (!failed && started < n && pthread_create(&threads[started], NULL, run, &streams[started]) == 0)
        started++;
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        failed |= report(&streams[i]);
    }
    for (int i = 0; i < n; i++)
        lnt_session_destroy(&streams[i].session);
    lnt_model_destroy(&model);
    return failed || started < n;
}
