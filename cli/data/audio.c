/* audio.c — sound files in memory, between a path and what decodes them. */
#include "cli/data/audio.h"

#include "cli/data/model.h"

bool lnt_sound_name(const char *path)
{
    return lnt_ends_with(path, ".wav") || lnt_ends_with(path, ".flac") || lnt_ends_with(path, ".ogg");
}

lnt_status lnt_sound_read(const char *path, uint32_t want_rate, lnt_sound *out, lnt_error *err)
{
    lnt_blob file;
    LNT_TRY(lnt_blob_open(path, true, &lnt_malloc_allocator, &file, err));
    const lnt_status status = lnt_sound_decode(path, file.bytes, file.size, want_rate, out, err);
    lnt_blob_close(&file);
    return status;
}

lnt_status lnt_sound_write(const char *path, const float *samples, size_t n, uint32_t rate, lnt_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    lnt_status status = lnt_sound_encode(path, samples, n, rate, &bytes, &size, err);
    if (status == LNT_OK)
        status = lnt_write_atomic(path, bytes, size, err);
    lnt_free(&lnt_malloc_allocator, bytes);
    return status;
}
