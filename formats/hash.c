/* hash.c — XXH3-64 of bytes, of the file's root and of its tensors. */
#include "formats/hash.h"

#include "base/lnt_assert.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t lnt_hash(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

uint64_t lnt_hash_root(const void *file, uint32_t n_sections)
{
    LNT_ASSERT(n_sections <= LNT_FILE_MAX_SECTIONS);
    uint8_t copy[sizeof(lnt_rec_header) + LNT_FILE_MAX_SECTIONS * sizeof(lnt_rec_section)];
    const size_t size = sizeof(lnt_rec_header) + n_sections * sizeof(lnt_rec_section);
    memcpy(copy, file, size);
    memset(copy + offsetof(lnt_rec_header, root_hash), 0, sizeof(uint64_t));
    return lnt_hash(copy, size);
}

uint64_t lnt_hash_tensors(const lnt_rec_constant *constants, uint32_t n)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (uint32_t i = 0; i < n; i++)
        XXH3_64bits_update(&state, &constants[i].hash, sizeof constants[i].hash);
    return XXH3_64bits_digest(&state);
}
