/* pack.c — a file of prompts, checked before it is used and read where it lies. */
#include "speech/prompts/pack.h"

#include "base/checked.h"
#include "base/file.h"
#include "formats/byte_order.h"
#include "formats/hash.h"
#include "runtime/internal.h"
#include "speech/prompts/adpcm.h"
#include "speech/letters.h"
#include "speech/prompts/slots.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const uint8_t lnt_pack_magic[8] = {0x89, 'L', 'P', 'K', '\r', '\n', 0x1a, '\n'};

struct lnt_prompts {
    const uint8_t *data;
    size_t bytes;
    void *mapped; /* NULL: data is the caller's */
    uint32_t n, rate;
    uint64_t voice, front;
};

/* A prompt's record and what it points at. */
typedef struct prompt_view {
    const uint8_t *record;
    const uint8_t *parts, *ids; /* [n_parts] and [n_ids] */
    uint32_t n_parts, n_ids;
    const char *name, *text;
    uint32_t name_bytes, text_bytes;
    lnt_pack_kind kind;
    uint32_t samples;
    uint64_t at, sound; /* offsets */
} prompt_view;

static uint32_t number(const uint8_t *at)
{
    return (uint32_t)lnt_load_le(at, 4);
}

static prompt_view view(const lnt_prompts *p, uint32_t k)
{
    const uint8_t *r = p->data + LNT_PACK_HEAD + (size_t)k * LNT_PACK_RECORD;
    prompt_view v = {.record = r,
                     .n_parts = number(r + RECORD_PARTS),
                     .n_ids = number(r + RECORD_IDS),
                     .name_bytes = (uint32_t)lnt_load_le(r + RECORD_NAME_BYTES, 2),
                     .text_bytes = number(r + RECORD_TEXT_BYTES),
                     .kind = (lnt_pack_kind)lnt_load_le(r + RECORD_KIND, 2),
                     .samples = number(r + RECORD_SAMPLES),
                     .at = (uint64_t)number(r + RECORD_AT) * LNT_PACK_ALIGN,
                     .sound = (uint64_t)number(r + RECORD_SOUND) * LNT_PACK_ALIGN};
    return v;
}

/* Bytes of parts, ids, name and text. */
static uint64_t block_bytes(const prompt_view *v)
{
    return (uint64_t)v->n_parts * LNT_PACK_PART + (uint64_t)v->n_ids * 4 + v->name_bytes + 1 +
           (uint64_t)v->text_bytes + 1;
}

/* The same with pointers; the block is known to lie within the file. */
static prompt_view open_prompt(const lnt_prompts *p, uint32_t k)
{
    prompt_view v = view(p, k);
    v.parts = p->data + v.at;
    v.ids = v.parts + (size_t)v.n_parts * LNT_PACK_PART;
    v.name = (const char *)v.ids + (size_t)v.n_ids * 4;
    v.text = v.name + v.name_bytes + 1;
    return v;
}

uint64_t lnt_pack_sound_bytes(lnt_pack_kind kind, uint64_t samples)
{
    return kind == LNT_PACK_PCM ? 2 * samples : kind == LNT_PACK_ADPCM ? lnt_adpcm_bytes(samples) : 0;
}

static uint64_t rounded(uint64_t n)
{
    return (n + LNT_PACK_ALIGN - 1) / LNT_PACK_ALIGN * LNT_PACK_ALIGN;
}

/* ---- the verifier ---- */

/* Where the next block and the next sound have to begin: they lie in the table's order, without gaps. */
typedef struct places {
    uint64_t block, sound;
} places;

static lnt_status check_head(lnt_prompts *p, lnt_error *err)
{
    const uint8_t *d = p->data;
    LNT_REQUIRE(p->bytes >= LNT_PACK_HEAD + LNT_PACK_HASH &&
                    memcmp(d, lnt_pack_magic, sizeof lnt_pack_magic) == 0,
                err, LNT_E_FILE, "pack: not a pack of prompts");
    LNT_REQUIRE(number(d + HEAD_VERSION) == LNT_PACK_VERSION, err, LNT_E_FILE,
                "pack: version %u, this build reads %d: make it again", number(d + HEAD_VERSION),
                LNT_PACK_VERSION);
    p->n = number(d + HEAD_PROMPTS);
    p->rate = number(d + HEAD_RATE);
    p->front = lnt_load_le(d + HEAD_FRONT, 8);
    p->voice = lnt_load_le(d + HEAD_VOICE, 8);
    LNT_REQUIRE(lnt_load_le(d + HEAD_BYTES, 8) == p->bytes, err, LNT_E_FILE,
                "pack: has %zu bytes, its head says other", p->bytes);
    LNT_REQUIRE(p->n <= LNT_PACK_MOST && p->rate >= 1 && p->front % LNT_PACK_ALIGN == 0 &&
                    p->front <= p->bytes &&
                    p->front >= LNT_PACK_HEAD + (uint64_t)p->n * LNT_PACK_RECORD + LNT_PACK_HASH,
                err, LNT_E_FILE, "pack: prompts do not fit into it");
    const size_t hashed = (size_t)p->front - LNT_PACK_HASH;
    LNT_REQUIRE(lnt_load_le(d + hashed, 8) == lnt_hash(d, hashed), err, LNT_E_FILE,
                "pack: damaged (hash differs)");
    return LNT_OK;
}

/* Names ascend by their hashes. */
static lnt_status check_name(uint32_t k, const prompt_view *v, lnt_error *err)
{
    const uint64_t hash = lnt_load_le(v->record + RECORD_NAME_HASH, 8);
    LNT_REQUIRE(v->name_bytes >= 1 && v->name_bytes <= LNT_PACK_NAME_MOST &&
                    strnlen(v->name, v->name_bytes + 1) == v->name_bytes &&
                    strnlen(v->text, (size_t)v->text_bytes + 1) == v->text_bytes,
                err, LNT_E_FILE, "pack: prompt %u has no name or no text", k);
    LNT_REQUIRE(hash == lnt_hash(v->name, v->name_bytes) &&
                    (k == 0 || hash > lnt_load_le(v->record - LNT_PACK_RECORD + RECORD_NAME_HASH, 8)),
                err, LNT_E_FILE, "pack: prompt %u is not in the order of names", k);
    return lnt_check_text(v->name, err);
}

/* A part: its ids, 1 if it ends a sentence; seconds of silence, a double. */
static lnt_part part_at(const prompt_view *v, uint32_t k)
{
    const uint8_t *at = v->parts + (size_t)k * LNT_PACK_PART;
    const uint64_t bits = lnt_load_le(at + 8, 8);
    lnt_part part = {.n_ids = number(at), .ends_a_sentence = number(at + 4) != 0};
    memcpy(&part.silence, &bits, sizeof bits);
    return part;
}

static lnt_status check_parts(uint32_t k, const prompt_view *v, lnt_error *err)
{
    uint64_t ids = 0;
    for (uint32_t i = 0; i < v->n_parts; i++) {
        const lnt_part part = part_at(v, i);
        ids += part.n_ids;
        LNT_REQUIRE(part.n_ids && part.silence >= 0 && part.silence <= 60, err, LNT_E_FILE,
                    "pack: prompt %u: part %u has no ids, or silence that is none", k, i);
    }
    LNT_REQUIRE(ids == v->n_ids, err, LNT_E_FILE, "pack: prompt %u: its parts have other ids", k);
    return LNT_OK;
}

static lnt_status check_sound(const lnt_prompts *p, uint32_t k, const prompt_view *v, places *to,
                              lnt_error *err)
{
    const uint64_t bytes = rounded(lnt_pack_sound_bytes(v->kind, v->samples));
    LNT_REQUIRE(v->kind < LNT_PACK_KINDS && v->sound == (v->kind ? to->sound : 0) &&
                    bytes <= p->bytes - to->sound && (v->kind || !v->samples),
                err, LNT_E_FILE, "pack: prompt %u: no place for its sound", k);
    to->sound += bytes;
    return LNT_OK;
}

static lnt_status check_prompt(const lnt_prompts *p, uint32_t k, places *to, lnt_error *err)
{
    prompt_view v = view(p, k);
    size_t n_slots;
    const uint64_t most = p->front - LNT_PACK_HASH, bytes = block_bytes(&v);
    LNT_REQUIRE(v.at == to->block && to->block <= most && bytes <= most - to->block, err, LNT_E_FILE,
                "pack: prompt %u: no place for its text", k);
    to->block = rounded(to->block + bytes);
    v = open_prompt(p, k);
    LNT_TRY(check_name(k, &v, err));
    LNT_TRY(check_parts(k, &v, err));
    LNT_TRY(lnt_slots_check(v.text, &n_slots, err));
    LNT_REQUIRE(!n_slots || (!v.n_parts && !v.kind), err, LNT_E_FILE,
                "pack: prompt %u has slots, and sound all the same", k);
    return check_sound(p, k, &v, to, err);
}

static lnt_status check_pack(lnt_prompts *p, lnt_error *err)
{
    LNT_TRY(check_head(p, err));
    places at = {LNT_PACK_HEAD + (uint64_t)p->n * LNT_PACK_RECORD, p->front};
    for (uint32_t k = 0; k < p->n; k++)
        LNT_TRY(check_prompt(p, k, &at, err));
    LNT_REQUIRE(at.block <= p->front && p->front - at.block <= LNT_PACK_ALIGN && at.sound == p->bytes, err,
                LNT_E_FILE, "pack: bytes that belong to no prompt");
    return LNT_OK;
}

/* ---- opening ---- */

/* p->mapped, if there is one, is the pack's from now on. */
static lnt_status create(const lnt_prompts *given, lnt_prompts **pack, lnt_error *err)
{
    lnt_prompts *p = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *p, err);
    *pack = p;
    if (!p) {
        if (given->mapped)
            munmap(given->mapped, given->bytes);
        return LNT_E_MEMORY;
    }
    *p = *given;
    const lnt_status status = check_pack(p, err);
    if (status != LNT_OK)
        lnt_prompts_destroy(pack);
    return status;
}

lnt_status lnt_prompts_create(const void *data, size_t bytes, lnt_prompts **pack, lnt_error *err)
{
    return create(&(lnt_prompts){.data = data, .bytes = bytes}, pack, err);
}

lnt_status lnt_prompts_open(const char *path, lnt_prompts **pack, lnt_error *err)
{
    int fd;
    size_t size;
    *pack = NULL;
    LNT_TRY(lnt_open_regular(path, 0, &fd, &size, err));
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const int failed = errno;
    close(fd);
    LNT_REQUIRE(size, err, LNT_E_FILE, "%s: pack: not a pack of prompts", path);
    LNT_REQUIRE(bytes != MAP_FAILED, err, LNT_E_IO, "cannot map %s: %s", path, strerror(failed));
    const lnt_status status =
        create(&(lnt_prompts){.data = bytes, .bytes = size, .mapped = bytes}, pack, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", path);
    return status;
}

void lnt_prompts_destroy(lnt_prompts **pack)
{
    lnt_prompts *p = pack ? *pack : NULL;
    if (!p)
        return;
    if (p->mapped)
        munmap(p->mapped, p->bytes);
    lnt_free(&lnt_malloc_allocator, p);
    *pack = NULL;
}

/* ---- prompts ---- */

uint32_t lnt_prompts_count(const lnt_prompts *pack)
{
    return pack->n;
}

uint32_t lnt_prompts_rate(const lnt_prompts *pack)
{
    return pack->rate;
}

static lnt_status check_number(const lnt_prompts *p, uint32_t k, lnt_error *err)
{
    LNT_REQUIRE(k < p->n, err, LNT_E_ARGUMENT, "the pack has no prompt %u: it has %u", k, p->n);
    return LNT_OK;
}

lnt_status lnt_prompts_info(const lnt_prompts *pack, uint32_t k, lnt_prompt_info *info, lnt_error *err)
{
    const size_t known = info->struct_bytes;
    LNT_TRY(lnt_check_struct_bytes(known, "lnt_prompt_info", err));
    LNT_TRY(check_number(pack, k, err));
    const prompt_view v = open_prompt(pack, k);
    lnt_prompt_info all = {known, v.name, v.text, 0, v.kind != LNT_PACK_NONE, v.samples};
    LNT_TRY(lnt_slots_check(v.text, &all.n_slots, err));
    memcpy(info, &all, known < sizeof all ? known : sizeof all);
    return LNT_OK;
}

/* The first prompt whose name's hash is at least that. */
static uint32_t lower_bound(const lnt_prompts *p, uint64_t hash)
{
    uint32_t first = 0, end = p->n;
    while (first < end) {
        const uint32_t k = first + (end - first) / 2;
        const uint8_t *record = p->data + LNT_PACK_HEAD + (size_t)k * LNT_PACK_RECORD;
        if (lnt_load_le(record + RECORD_NAME_HASH, 8) < hash)
            first = k + 1;
        else
            end = k;
    }
    return first;
}

lnt_status lnt_prompts_find(const lnt_prompts *pack, const char *name, uint32_t *k, lnt_error *err)
{
    *k = lower_bound(pack, lnt_hash(name, strlen(name)));
    LNT_REQUIRE(*k < pack->n && strcmp(open_prompt(pack, *k).name, name) == 0, err, LNT_E_NOT_FOUND,
                "the pack has no prompt called %.200s", name);
    return LNT_OK;
}

/* ---- sound ---- */

/* n samples of a sound, at most LNT_ADPCM_SAMPLES, from a multiple of that on. */
static bool read_samples(const prompt_view *v, const uint8_t *sound, uint32_t at, uint32_t n, int16_t *pcm)
{
    if (v->kind == LNT_PACK_ADPCM)
        return lnt_adpcm_decode(sound + lnt_adpcm_bytes(at), n, pcm);
    for (uint32_t i = 0; i < n; i++)
        pcm[i] = (int16_t)(uint16_t)lnt_load_le(sound + 2 * ((size_t)at + i), 2);
    return true;
}

lnt_status lnt_prompts_sound(const lnt_prompts *pack, uint32_t k, lnt_voice_emit emit, void *user,
                             lnt_error *err)
{
    int16_t pcm[LNT_ADPCM_SAMPLES];
    LNT_TRY(check_number(pack, k, err));
    const prompt_view v = open_prompt(pack, k);
    const uint8_t *sound = pack->data + v.sound;
    LNT_REQUIRE(v.kind, err, LNT_E_NOT_FOUND, "the prompt %s has no sound in the pack", v.name);
    LNT_REQUIRE(lnt_load_le(v.record + RECORD_SOUND_HASH, 8) ==
                    lnt_hash(sound, (size_t)rounded(lnt_pack_sound_bytes(v.kind, v.samples))),
                err, LNT_E_FILE, "pack: the sound of %s is damaged (hash differs)", v.name);
    for (uint32_t at = 0, n; at < v.samples; at += n) {
        n = v.samples - at < LNT_ADPCM_SAMPLES ? v.samples - at : LNT_ADPCM_SAMPLES;
        LNT_REQUIRE(read_samples(&v, sound, at, n, pcm), err, LNT_E_FILE, "pack: the sound of %s is none",
                    v.name);
        LNT_REQUIRE(emit(user, pcm, n) == 0, err, LNT_E_CANCELLED, "stopped by who receives the sound");
    }
    return LNT_OK;
}

/* ---- speaking ---- */

static uint64_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Of numbers, whatever the machine's order of bytes. */
static uint64_t hash_numbers(const uint64_t *x, size_t n)
{
    uint8_t bytes[64];
    LNT_ASSERT(8 * n <= sizeof bytes);
    for (size_t i = 0; i < 8 * n; i++)
        bytes[i] = (uint8_t)(x[i / 8] >> 8 * (i % 8));
    return lnt_hash(bytes, 8 * n);
}

uint64_t lnt_pack_parts_key(const lnt_voice *voice, const char *text, const lnt_say_options *how)
{
    uint64_t of[] = {lnt_voice_hash(voice), lnt_hash(text, strlen(text)), lnt_voice_streams(voice)};
    uint64_t key = hash_numbers(of, 3);
    for (size_t i = 0; i < how->n_silences; i++) {
        const lnt_voice_silence *s = &how->silence[i];
        of[0] = key;
        of[1] = lnt_hash(s->phoneme, strlen(s->phoneme));
        of[2] = float_bits(s->seconds);
        key = hash_numbers(of, 3);
    }
    return key;
}

uint64_t lnt_pack_sound_key(uint64_t parts_key, const lnt_say_options *how)
{
    const uint64_t of[] = {parts_key,
                           how->seed,
                           (uint64_t)how->speaker,
                           float_bits(how->noise) << 32 | float_bits(how->length),
                           float_bits(how->noise_w) << 32 | float_bits(how->volume),
                           double_bits(how->sentence_silence),
                           how->as_computed,
                           float_bits(how->pitch)};
    return hash_numbers(of, sizeof of / sizeof *of - (how->pitch == 1));
}

static lnt_status say_ids(const prompt_view *v, lnt_voice *voice, const lnt_say_options *how,
                          lnt_voice_emit emit, void *user, lnt_bump *memory, lnt_error *err)
{
    lnt_part *part = lnt_bump_alloc(memory, v->n_parts * sizeof *part, err);
    int64_t *ids = lnt_bump_alloc(memory, v->n_ids * sizeof *ids, err);
    if (!part || !ids)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < v->n_ids; i++)
        ids[i] = number(v->ids + 4 * (size_t)i);
    for (uint32_t i = 0; i < v->n_parts; i++) {
        part[i] = part_at(v, i);
        part[i].ids = ids;
        ids += part[i].n_ids;
    }
    return lnt_voice_say_parts(voice, part, v->n_parts, how, emit, user, err);
}

static lnt_status say_text(const prompt_view *v, const lnt_slot_value *value, size_t n, lnt_voice *voice,
                           const lnt_say_options *how, lnt_voice_emit emit, void *user, lnt_bump *memory,
                           lnt_error *err)
{
    const char *text;
    LNT_TRY(lnt_slots_fill(v->text, value, n, memory, &text, err));
    return lnt_voice_say(voice, text, how, emit, user, err);
}

lnt_status lnt_prompts_say(const lnt_prompts *pack, uint32_t k, const lnt_slot_value *value, size_t n,
                           lnt_voice *voice, const lnt_say_options *options, lnt_voice_emit emit, void *user,
                           lnt_error *err)
{
    lnt_say_options how;
    lnt_bump memory;
    lnt_status status;
    LNT_REQUIRE(pack->voice == lnt_voice_hash(voice), err, LNT_E_VALUE,
                "the pack was made with another voice, or this one has changed since: make it again with "
                "this one (linnet say --pack)");
    LNT_TRY(check_number(pack, k, err));
    LNT_TRY(lnt_voice_take_options(voice, options, &how, err));
    how.form = LNT_VOICE_TEXT;
    const prompt_view v = open_prompt(pack, k);
    const uint64_t parts_key = lnt_pack_parts_key(voice, v.text, &how);
    const bool parts = !n && v.n_parts && lnt_load_le(v.record + RECORD_PARTS_KEY, 8) == parts_key;
    if (parts && v.kind && lnt_load_le(v.record + RECORD_SOUND_KEY, 8) == lnt_pack_sound_key(parts_key, &how))
        return lnt_prompts_sound(pack, k, emit, user, err);
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    if (parts)
        status = say_ids(&v, voice, &how, emit, user, &memory, err);
    else
        status = say_text(&v, value, n, voice, &how, emit, user, &memory, err);
    lnt_bump_free(&memory);
    return status;
}
