/* windows.c — a sentence's sound, piece by piece.
 *
 * The model is run up to the cut, whose value is copied: [1, channels, frames]. Then it is run from there, for a window
 * of frames at a time with as many around it as its samples are made of; the samples of those are dropped. */
#include "speech/windows.h"

#include "base/checked.h"
#include "base/clock.h"
#include "speech/voice_config.h"

#include <stdlib.h>
#include <string.h>

/* Of windows that grow: frames of the first; up to how many they double; the largest. */
enum { FIRST = 16, DOUBLED = 64, LARGEST = 256, FRAMES_MOST = 1 << 20 };

/* ---- metadata ---- */

static lnt_status read_number(const lnt_model *model, const char *key, int64_t least, int64_t *to,
                              lnt_error *err)
{
    const char *text = lnt_voice_metadata(model, key);
    char *end = NULL;
    const long long n = text ? strtoll(text, &end, 10) : least - 1;
    LNT_REQUIRE(text && end != text && !*end && n >= least && n <= FRAMES_MOST, err, LNT_E_VALUE,
                "the model's metadata %s is no number from %lld to %d", key, (long long)least, FRAMES_MOST);
    *to = n;
    return LNT_OK;
}

static lnt_status read_gain(const lnt_model *model, float *gain, lnt_error *err)
{
    const char *text = lnt_voice_metadata(model, "stream.gain");
    char *end = NULL;
    *gain = text ? strtof(text, &end) : 1;
    LNT_REQUIRE(!text || (end != text && !*end && *gain > 0 && *gain <= 1000), err, LNT_E_VALUE,
                "the model's metadata stream.gain is no number above 0 and up to 1000");
    return LNT_OK;
}

lnt_status lnt_windows_open(lnt_windows *w, const lnt_model *model, uint32_t rate, int64_t size,
                            lnt_error *err)
{
    *w = (lnt_windows){.value = lnt_voice_metadata(model, "stream.value"), .size = size};
    if (!w->value)
        return LNT_OK;
    LNT_REQUIRE(size >= 0 && size <= FRAMES_MOST, err, LNT_E_ARGUMENT, "a window has from 1 to %d frames",
                FRAMES_MOST);
    LNT_TRY(read_number(model, "stream.left", 0, &w->left, err));
    LNT_TRY(read_number(model, "stream.right", 0, &w->right, err));
    LNT_TRY(read_number(model, "stream.hop", 1, &w->hop, err));
    LNT_TRY(read_number(model, "stream.align", 1, &w->align, err));
    w->frame_ns = (uint64_t)w->hop * 1000000000 / rate;
    return read_gain(model, &w->gain, err);
}

void lnt_windows_free(lnt_windows *w)
{
    lnt_free(&lnt_malloc_allocator, w->latent);
    lnt_free(&lnt_malloc_allocator, w->piece);
    *w = (lnt_windows){0};
}

/* ---- runs ---- */

/* The model up to the cut; *t: a copy of its value. */
static lnt_status compute_latent(lnt_windows *w, lnt_session *session, lnt_tensor *t, lnt_error *err)
{
    static const uint32_t none[1];
    LNT_TRY(lnt_set_value(session, w->value, NULL, err));
    LNT_TRY(lnt_select_outputs(session, none, 0, err));
    LNT_TRY(lnt_run(session, err));
    LNT_TRY(lnt_get_value(session, w->value, t, err));
    LNT_REQUIRE(t->dtype == LNT_FLOAT && t->rank == 3 && t->dims[0] == 1, err, LNT_E_SHAPE,
                "the model's value %s is no float [1, channels, frames]", w->value);
    LNT_TRY(LNT_RENEW(&lnt_malloc_allocator, w->latent, w->latent_room, t->bytes / sizeof *w->latent, err));
    if (t->bytes)
        memcpy(w->latent, t->data, t->bytes);
    return LNT_OK;
}

/* Sound of frames [first, end) of the latent. */
static lnt_status run_piece(lnt_windows *w, lnt_session *session, uint32_t output, const lnt_tensor *latent,
                            int64_t first, int64_t end, lnt_tensor *sound, lnt_error *err)
{
    const int64_t channels = latent->dims[1], frames = latent->dims[2], n = end - first;
    lnt_tensor t = {.dtype = LNT_FLOAT, .rank = 3, .dims = {1, channels, n}};
    t.bytes = (size_t)(channels * n) * sizeof *w->piece;
    LNT_TRY(LNT_RENEW(&lnt_malloc_allocator, w->piece, w->piece_room, (size_t)(channels * n), err));
    for (int64_t c = 0; c < channels; c++)
        memcpy(w->piece + c * n, w->latent + c * frames + first, (size_t)n * sizeof *w->piece);
    t.data = w->piece;
    LNT_TRY(lnt_set_value(session, w->value, &t, err));
    LNT_TRY(lnt_run(session, err));
    LNT_TRY(lnt_get_output(session, output, sound, err));
    LNT_REQUIRE(sound->bytes == (size_t)(n * w->hop) * sizeof(float), err, LNT_E_VALUE,
                "the model's metadata stream.hop is %lld, but of %lld frames it makes %zu samples",
                (long long)w->hop, (long long)n, sound->bytes / sizeof(float));
    return LNT_OK;
}

/* A multiple of what pieces must begin at, at least one. */
static int64_t window_size(const lnt_windows *w, int64_t grown)
{
    const int64_t wanted = w->size ? w->size : grown;
    return (wanted + w->align - 1) / w->align * w->align;
}

/* How large the window behind one of n frames is, whose piece of `computed` frames took so long: as many frames as are
 * computed in two thirds of the time in which those play, as what is around a window is computed twice. Samples are the
 * same whatever their windows. */
static int64_t grow(const lnt_windows *w, int64_t n, int64_t computed, uint64_t ns)
{
    const double in_time = (double)n * (double)w->frame_ns * 2 / 3 * (double)computed / (double)(ns + 1) -
                           (double)(w->left + w->right);
    const int64_t doubled = n < DOUBLED / 2 ? 2 * n : DOUBLED;
    return in_time >= LARGEST ? LARGEST : in_time > (double)doubled ? (int64_t)in_time : doubled;
}

lnt_status lnt_windows_run(lnt_windows *w, lnt_session *session, uint32_t output, lnt_windows_emit emit,
                           void *user, lnt_error *err)
{
    lnt_tensor latent, sound;
    LNT_TRY(compute_latent(w, session, &latent, err));
    LNT_TRY(lnt_select_outputs(session, &output, 1, err));
    const int64_t frames = latent.dims[2];
    int64_t grown = FIRST;
    for (int64_t at = 0, next; at < frames; at = next) {
        const int64_t size = window_size(w, grown), left = at < w->left ? at : w->left;
        next = frames - at < size ? frames : at + size;
        const int64_t first = (at - left) / w->align * w->align;
        const int64_t end = frames - next < w->right ? frames : next + w->right;
        const uint64_t begun = lnt_now_ns();
        LNT_TRY(run_piece(w, session, output, &latent, first, end, &sound, err));
        grown = grow(w, next - at, end - first, lnt_now_ns() - begun);
        LNT_TRY(
            emit(user, (const float *)sound.data + (at - first) * w->hop, (size_t)((next - at) * w->hop)));
    }
    return LNT_OK;
}
