/* adpcm.c — IMA ADPCM: each sample is a number of steps from the one before; the step follows the numbers. */
#include "speech/prompts/adpcm.h"

/* clang-format off */
static const int16_t step[] = {
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118,
    130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060,
    1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132,
    7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};
/* clang-format on */
enum { N_STEPS = sizeof step / sizeof *step };
static const int8_t moves[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

typedef struct state {
    int sample, index;
} state;

static int between(int x, int least, int most)
{
    return x < least ? least : x > most ? most : x;
}

/* The sample that four bits lead to. */
static void move(state *s, unsigned code)
{
    const int size = step[s->index];
    int way = size >> 3;
    for (unsigned bit = 0; bit < 3; bit++)
        way += code >> bit & 1 ? size >> (2 - bit) : 0;
    s->sample = between(s->sample + (code & 8 ? -way : way), INT16_MIN, INT16_MAX);
    s->index = between(s->index + moves[code & 7], 0, N_STEPS - 1);
}

/* The bits that lead nearest to the sample. */
static unsigned code_of(const state *s, int sample)
{
    int size = step[s->index], left = sample - s->sample;
    unsigned code = left < 0 ? 8 : 0;
    left = left < 0 ? -left : left;
    for (unsigned bit = 4; bit; bit >>= 1, size >>= 1)
        if (left >= size) {
            code |= bit;
            left -= size;
        }
    return code;
}

uint64_t lnt_adpcm_bytes(uint64_t n)
{
    const uint64_t rest = n % LNT_ADPCM_SAMPLES;
    return n / LNT_ADPCM_SAMPLES * LNT_ADPCM_BYTES + (rest ? LNT_ADPCM_HEAD + rest / 2 : 0);
}

static void encode_block(const int16_t *pcm, size_t n, int *index, uint8_t *to)
{
    state s = {pcm[0], *index};
    to[0] = (uint8_t)(uint16_t)pcm[0];
    to[1] = (uint8_t)((uint16_t)pcm[0] >> 8);
    to[2] = (uint8_t)*index;
    to[3] = 0;
    for (size_t i = 1; i < n; i++) {
        const unsigned code = code_of(&s, pcm[i]);
        uint8_t *at = to + LNT_ADPCM_HEAD + (i - 1) / 2;
        *at = (uint8_t)(i % 2 ? code : *at | code << 4);
        move(&s, code);
    }
    *index = s.index;
}

void lnt_adpcm_encode(const int16_t *pcm, size_t n, uint8_t *to)
{
    int index = 0;
    for (size_t at = 0; at < n; at += LNT_ADPCM_SAMPLES, to += LNT_ADPCM_BYTES)
        encode_block(pcm + at, n - at < LNT_ADPCM_SAMPLES ? n - at : LNT_ADPCM_SAMPLES, &index, to);
}

bool lnt_adpcm_decode(const uint8_t *from, size_t n, int16_t *pcm)
{
    state s = {(int16_t)(uint16_t)(from[0] | from[1] << 8), from[2]};
    if (s.index >= N_STEPS || from[3])
        return false;
    pcm[0] = (int16_t)s.sample;
    for (size_t i = 1; i < n; i++) {
        move(&s, from[LNT_ADPCM_HEAD + (i - 1) / 2] >> (i % 2 ? 0 : 4) & 15);
        pcm[i] = (int16_t)s.sample;
    }
    return true;
}
