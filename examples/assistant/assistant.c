/* assistant.c — waits for a word, hears until who spoke is silent, and answers:
 *
 *     arecord -q -f S16_LE -r 16000 -c 1 -t raw | assistant MODELS | aplay -q -t raw -f S16_LE -r 16000
 *
 * MODELS is a folder with mels.lnt, embedding.lnt, word.lnt (openWakeWord's), vad.lnt (silero's) and voice.lnt. Five
 * models in one process share one pool of threads. The answer is what can be known without understanding: how long
 * somebody spoke. */
#include "detector.h"
#include "segments.h"
#include "wake.h"

#include <linnet_voice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { RATE = VAD_RATE, PATIENCE = 5 * RATE /* samples until nobody is expected to speak */ };
enum { MELS, EMBEDDING, WORD, VAD, VOICE, N_MODELS };

typedef struct assistant {
    lnt_pool *pool;
    lnt_model *model[N_MODELS];
    lnt_session *session[VOICE];
    lnt_voice *voice;
    wake wake;
    detector detector;
    segmenter segments;
    bool listening;
    size_t since, rest;      /* samples heard since the word; of them not yet given to the detector */
    float samples[VAD_STEP]; /* those */
    size_t heard;            /* samples in all */
    lnt_error err;
} assistant;

static int play(void *user, const int16_t *pcm, size_t n)
{
    (void)user;
    return fwrite(pcm, sizeof *pcm, n, stdout) != n;
}

static lnt_status open_models(assistant *a, const char *folder)
{
    static const char *const names[] = {"mels", "embedding", "word", "vad", "voice"};
    lnt_status status = lnt_pool_create(0, &a->pool, &a->err);
    const lnt_session_options options = {.struct_bytes = sizeof options, .pool = a->pool};
    const lnt_voice_options spoken = {.struct_bytes = sizeof spoken, .session = &options};
    for (int i = 0; i < N_MODELS && status == LNT_OK; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.lnt", folder, names[i]);
        status = lnt_model_create(path, NULL, &a->model[i], &a->err);
        if (status == LNT_OK && i != VOICE)
            status = lnt_session_create(a->model[i], &options, &a->session[i], &a->err);
    }
    if (status == LNT_OK)
        status = lnt_voice_create(a->model[VOICE], &spoken, &a->voice, &a->err);
    if (status == LNT_OK)
        status = wake_start(&a->wake, a->session[MELS], a->session[EMBEDDING], a->session[WORD], &a->err);
    if (status == LNT_OK)
        status = detector_start(&a->detector, a->model[VAD], a->session[VAD], &a->err);
    return status;
}

static void close_models(assistant *a)
{
    lnt_voice_destroy(&a->voice);
    for (int i = 0; i < VOICE; i++)
        lnt_session_destroy(&a->session[i]);
    for (int i = 0; i < N_MODELS; i++)
        lnt_model_destroy(&a->model[i]);
    lnt_pool_destroy(&a->pool);
}

static double seconds(size_t samples)
{
    return (double)samples / RATE;
}

static lnt_status answer(assistant *a, const segment *spoken)
{
    char text[64] = "I am listening, but I hear nothing.";
    if (spoken)
        snprintf(text, sizeof text, "You spoke for %.1f seconds.", seconds(spoken->end - spoken->begin));
    fprintf(stderr, "%7.2f s  %s\n", seconds(a->heard), text);
    a->listening = false;
    const lnt_status status = lnt_voice_say(a->voice, text, NULL, play, NULL, &a->err);
    fflush(stdout);
    if (status != LNT_OK)
        return status;
    return wake_start(&a->wake, a->session[MELS], a->session[EMBEDDING], a->session[WORD], &a->err);
}

/* Does the word end here? */
static lnt_status wait_for_word(assistant *a, const float *samples)
{
    float likely;
    const lnt_status status = wake_step(&a->wake, samples, &likely, &a->err);
    if (status != LNT_OK || likely < 0.5f)
        return status;
    fprintf(stderr, "%7.2f s  the word\n", seconds(a->heard));
    a->listening = true;
    a->since = a->rest = 0;
    a->segments = segmenter_start(RATE);
    return lnt_state_reset(a->session[VAD], &a->err);
}

/* Has somebody spoken, and is silent now? */
static lnt_status listen(assistant *a, const float *samples)
{
    lnt_status status = LNT_OK;
    for (size_t i = 0, n; i < WAKE_STEP && a->listening && status == LNT_OK; i += n) {
        float speech;
        segment spoken;
        n = VAD_STEP - a->rest < WAKE_STEP - i ? VAD_STEP - a->rest : WAKE_STEP - i;
        for (size_t k = 0; k < n; k++)
            a->samples[a->rest++] = samples[i + k] / 32768;
        if (a->rest < VAD_STEP)
            continue;
        a->rest = 0;
        a->since += VAD_STEP;
        status = detector_step(&a->detector, a->samples, VAD_STEP, &speech, &a->err);
        if (status == LNT_OK && segmenter_feed(&a->segments, speech, VAD_STEP, &spoken))
            status = answer(a, &spoken);
        else if (status == LNT_OK && !a->segments.speaking && a->since >= PATIENCE)
            status = answer(a, NULL);
    }
    return status;
}

static void tell_costs(size_t heard)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double busy = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                        1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    fprintf(stderr, "%.1f s heard, %.1f %% of a processor, at most %.1f MB of memory\n", seconds(heard),
            100 * busy / (seconds(heard) + 1e-9), (double)used.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
    static assistant a;
    unsigned char bytes[2 * WAKE_STEP];
    float samples[WAKE_STEP];
    if (argc != 2)
        return fprintf(stderr, "usage: assistant MODELS < samples of 16 bits, mono, 16 kHz > the same\n"), 2;
    lnt_status status = open_models(&a, argv[1]);
    while (status == LNT_OK && fread(bytes, 1, sizeof bytes, stdin) == sizeof bytes) {
        for (int i = 0; i < WAKE_STEP; i++)
            samples[i] = (float)(int16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
        a.heard += WAKE_STEP;
        status = a.listening ? listen(&a, samples) : wait_for_word(&a, samples);
    }
    if (status != LNT_OK)
        fprintf(stderr, "assistant: %s: %s\n", lnt_status_text(status), a.err.message);
    else
        tell_costs(a.heard);
    close_models(&a);
    return status != LNT_OK;
}
