/* live.c — speech in what comes through a pipe, told as it is heard:
 *
 *     arecord -q -f S16_LE -r 16000 -c 1 | vad vad.lnt -
 *
 * Samples are signed 16 bits, little-endian, mono, 16 kHz, raw or behind the header of a .wav. */
#include "detector.h"
#include "segments.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 44, BYTES = 2 * VAD_STEP };

static unsigned little(const unsigned char *at, int bytes)
{
    unsigned value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* The first bytes of the sound, without a header; their number, or -1 after a message. */
static int read_first(unsigned char *bytes)
{
    const size_t n = fread(bytes, 1, BYTES, stdin);
    if (n < HEADER || memcmp(bytes, "RIFF", 4) != 0)
        return (int)n;
    if (little(bytes + 20, 2) != 1 || little(bytes + 22, 2) != 1 || little(bytes + 24, 4) != VAD_RATE ||
        little(bytes + 34, 2) != 16) {
        fprintf(stderr, "vad: the sound is not 16 bits, mono, %d Hz: arecord -f S16_LE -c 1 -r %d\n",
                VAD_RATE, VAD_RATE);
        return -1;
    }
    memmove(bytes, bytes + HEADER, n - HEADER);
    return (int)(n - HEADER + fread(bytes + n - HEADER, 1, BYTES - (n - HEADER), stdin));
}

static double seconds(size_t samples)
{
    return (double)samples / VAD_RATE;
}

/* Prints what is new: *told is whether the beginning of the present stretch was. */
static void tell(const segmenter *g, const segment *ended, bool *told)
{
    const size_t begin = ended ? ended->begin : g->begin;
    if (!*told && (ended || segmenter_sure(g)))
        printf("  speech %7.3f s .. ", seconds(begin > g->pad ? begin - g->pad : 0));
    *told = !ended && (*told || segmenter_sure(g));
    if (ended)
        printf("%7.3f s\n", seconds(ended->end + g->pad < g->at ? ended->end + g->pad : g->at));
    fflush(stdout);
}

int vad_live(const lnt_model *model, lnt_session *session)
{
    unsigned char bytes[BYTES];
    float samples[VAD_STEP], probability;
    segmenter g = segmenter_start(VAD_RATE);
    segment ended;
    detector d;
    bool told = false;
    lnt_error err = {0};
    if (detector_start(&d, model, session, &err))
        return fprintf(stderr, "vad: %s\n", err.message), 1;
    int n = read_first(bytes);
    for (; n > 1; n = (int)fread(bytes, 1, BYTES, stdin)) {
        for (int i = 0; i < n / 2; i++)
            samples[i] = (float)(int16_t)little(bytes + 2 * i, 2) / 32768;
        if (detector_step(&d, samples, (size_t)n / 2, &probability, &err))
            return fprintf(stderr, "vad: %s\n", err.message), 1;
        const bool over = segmenter_feed(&g, probability, (size_t)n / 2, &ended);
        tell(&g, over ? &ended : NULL, &told);
    }
    if (segmenter_end(&g, &ended))
        tell(&g, &ended, &told);
    return n < 0;
}
