/* adpcm.h — IMA ADPCM, samples of 4 bits, in blocks as .wav files have them (IMA Digital Audio Focus and Technical
 * Working Groups, "Recommended Practices for Enhancing Digital Audio Compatibility in Multimedia Systems", 1992). */
#ifndef LNT_SPEECH_PROMPTS_ADPCM_H
#define LNT_SPEECH_PROMPTS_ADPCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LNT_ADPCM_HEAD = 4, /* bytes: the first sample, the index of the step, 0 */
    LNT_ADPCM_BYTES = 512,
    LNT_ADPCM_SAMPLES = 1 + 2 * (LNT_ADPCM_BYTES - LNT_ADPCM_HEAD)
};

/* Of n samples: full blocks, and one that is as long as the rest. */
uint64_t lnt_adpcm_bytes(uint64_t n);
void lnt_adpcm_encode(const int16_t *pcm, size_t n, uint8_t *to);
/* n samples, at most LNT_ADPCM_SAMPLES, of the block that begins at from. False: its head is none. */
bool lnt_adpcm_decode(const uint8_t *from, size_t n, int16_t *pcm);

#endif
