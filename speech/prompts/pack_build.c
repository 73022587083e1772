/* pack_build.c — a file of prompts is made: their texts are read, spoken, and laid out. */
#include "speech/markup/ssml.h"
#include "speech/prompts/pack.h"

#include "base/checked.h"
#include "formats/hash.h"
#include "speech/prompts/adpcm.h"
#include "speech/letters.h"
#include "speech/prompts/slots.h"

#include <stdlib.h>
#include <string.h>

/* A prompt on its way into the file. */
typedef struct entry {
    lnt_prompt *prompt;
    uint64_t name_hash, parts_key, sound_key;
    const lnt_part *part;
    uint32_t n_parts, n_ids, samples;
    const uint8_t *sound; /* as the file has it */
} entry;

typedef struct packer {
    lnt_voice *voice;
    const lnt_say_options *how;
    lnt_pack_kind kind;
    entry *entry;
    size_t n;
    lnt_bump memory;
    int16_t *pcm; /* of the present prompt; an lnt_grow array */
    size_t n_pcm, pcm_room;
    lnt_error *err;
} packer;

/* ---- speaking ---- */

/* An lnt_voice_emit. */
static int collect(void *user, const int16_t *pcm, size_t n)
{
    packer *p = user;
    for (size_t i = 0; i < n; i++) {
        if (LNT_GROW(&lnt_malloc_allocator, p->pcm, p->pcm_room, p->n_pcm, p->err) != LNT_OK)
            return 1;
        p->pcm[p->n_pcm++] = pcm[i];
    }
    return 0;
}

/* The parts, which are the voice's, become the entry's. */
static lnt_status keep_parts(packer *p, entry *e, const lnt_parts *parts)
{
    lnt_part *copy = lnt_bump_alloc(&p->memory, parts->n * sizeof *copy, p->err);
    size_t n_ids = 0;
    e->part = copy;
    if (!copy)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < parts->n; i++) {
        const size_t bytes = parts->part[i].n_ids * sizeof *copy->ids;
        int64_t *ids = lnt_bump_alloc(&p->memory, bytes, p->err);
        if (!ids)
            return LNT_E_MEMORY;
        copy[i] = parts->part[i];
        copy[i].ids = memcpy(ids, parts->part[i].ids, bytes);
        n_ids += parts->part[i].n_ids;
    }
    e->n_parts = (uint32_t)parts->n;
    e->n_ids = (uint32_t)n_ids;
    return LNT_OK;
}

static void encode(const packer *p, uint8_t *to)
{
    if (p->kind == LNT_PACK_ADPCM) {
        lnt_adpcm_encode(p->pcm, p->n_pcm, to);
        return;
    }
    for (size_t i = 0; i < p->n_pcm; i++) {
        to[2 * i] = (uint8_t)(uint16_t)p->pcm[i];
        to[2 * i + 1] = (uint8_t)((uint16_t)p->pcm[i] >> 8);
    }
}

static lnt_status add_sound(packer *p, entry *e)
{
    p->n_pcm = 0;
    LNT_TRY(lnt_voice_say_parts(p->voice, e->part, e->n_parts, p->how, collect, p, p->err));
    LNT_REQUIRE(p->n_pcm <= UINT32_MAX / 2, p->err, LNT_E_LIMIT, "the prompt %s is too long",
                e->prompt->name);
    uint8_t *sound = lnt_bump_alloc(&p->memory, (size_t)lnt_pack_sound_bytes(p->kind, p->n_pcm), p->err);
    if (!sound)
        return LNT_E_MEMORY;
    encode(p, sound);
    e->samples = (uint32_t)p->n_pcm;
    e->sound = sound;
    e->sound_key = lnt_pack_sound_key(e->parts_key, p->how);
    return LNT_OK;
}

/* One without slots. */
static lnt_status speak(packer *p, entry *e)
{
    const lnt_parts *parts;
    const char *text;
    LNT_TRY(lnt_slots_fill(e->prompt->text, NULL, 0, &p->memory, &text, p->err));
    LNT_REQUIRE(!lnt_is_ssml(text), p->err, LNT_E_UNSUPPORTED,
                "prompt %s: a pack keeps no rate, pitch and volume: write it without <speak>", e->prompt->name);
    LNT_TRY(lnt_voice_plan(p->voice, text, p->how, &parts, p->err));
    e->parts_key = lnt_pack_parts_key(p->voice, e->prompt->text, p->how);
    e->prompt->missing = parts->missing;
    LNT_TRY(keep_parts(p, e, parts));
    return p->kind && e->n_parts ? add_sound(p, e) : LNT_OK;
}

static lnt_status check_name(const char *name, lnt_error *err)
{
    const size_t n = strlen(name);
    LNT_TRY(lnt_check_text(name, err));
    LNT_REQUIRE(n && n <= LNT_PACK_NAME_MOST && !strpbrk(name, " \t=|") && *name != '#', err, LNT_E_VALUE,
                "a prompt's name has 1 to %d bytes, no blank and none of = |, and does not begin with #",
                LNT_PACK_NAME_MOST);
    return LNT_OK;
}

static lnt_status add_prompt(packer *p, lnt_prompt *prompt)
{
    entry *e = &p->entry[p->n++];
    size_t n_slots = 0;
    *e = (entry){.prompt = prompt};
    prompt->missing = 0;
    lnt_status status = check_name(prompt->name, p->err);
    if (status == LNT_OK)
        status = lnt_slots_check(prompt->text, &n_slots, p->err);
    e->name_hash = lnt_hash(prompt->name, strlen(prompt->name));
    if (status == LNT_OK && !n_slots)
        status = speak(p, e);
    if (status != LNT_OK)
        lnt_error_prefix(p->err, "prompt %.200s: ", prompt->name);
    return status;
}

/* ---- the file ---- */

static int by_name(const void *a, const void *b)
{
    const uint64_t x = ((const entry *)a)->name_hash, y = ((const entry *)b)->name_hash;
    return x < y ? -1 : x > y;
}

static lnt_status sort(packer *p)
{
    qsort(p->entry, p->n, sizeof *p->entry, by_name);
    for (size_t i = 1; i < p->n; i++)
        LNT_REQUIRE(p->entry[i].name_hash != p->entry[i - 1].name_hash, p->err, LNT_E_VALUE,
                    "two prompts are called %.200s", p->entry[i].prompt->name);
    return LNT_OK;
}

static uint64_t rounded(uint64_t n)
{
    return (n + LNT_PACK_ALIGN - 1) / LNT_PACK_ALIGN * LNT_PACK_ALIGN;
}

static uint64_t block_bytes(const entry *e)
{
    return (uint64_t)e->n_parts * LNT_PACK_PART + (uint64_t)e->n_ids * 4 + strlen(e->prompt->name) + 1 +
           strlen(e->prompt->text) + 1;
}

static uint64_t sound_bytes(const packer *p, const entry *e)
{
    return e->sound ? lnt_pack_sound_bytes(p->kind, e->samples) : 0;
}

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static void put_block(const entry *e, uint8_t *to)
{
    for (uint32_t i = 0; i < e->n_parts; i++, to += LNT_PACK_PART) {
        uint64_t bits;
        memcpy(&bits, &e->part[i].silence, sizeof bits);
        put(to, e->part[i].n_ids, 4);
        put(to + 4, e->part[i].ends_a_sentence, 4);
        put(to + 8, bits, 8);
    }
    for (uint32_t i = 0; i < e->n_parts; i++)
        for (size_t k = 0; k < e->part[i].n_ids; k++, to += 4)
            put(to, (uint64_t)e->part[i].ids[k], 4);
    const size_t name = strlen(e->prompt->name) + 1;
    memcpy(to, e->prompt->name, name);
    memcpy(to + name, e->prompt->text, strlen(e->prompt->text) + 1);
}

/* The record, and what it points at. */
static void put_entry(const packer *p, const entry *e, uint8_t *file, uint8_t *record, uint64_t at,
                      uint64_t sound)
{
    put(record + RECORD_NAME_HASH, e->name_hash, 8);
    put(record + RECORD_PARTS_KEY, e->parts_key, 8);
    put(record + RECORD_SOUND_KEY, e->sound_key, 8);
    put(record + RECORD_AT, at / LNT_PACK_ALIGN, 4);
    put(record + RECORD_PARTS, e->n_parts, 4);
    put(record + RECORD_IDS, e->n_ids, 4);
    put(record + RECORD_SAMPLES, e->samples, 4);
    put(record + RECORD_TEXT_BYTES, strlen(e->prompt->text), 4);
    put(record + RECORD_NAME_BYTES, strlen(e->prompt->name), 2);
    put_block(e, file + at);
    if (!e->sound)
        return;
    const size_t bytes = (size_t)sound_bytes(p, e);
    memcpy(file + sound, e->sound, bytes);
    put(record + RECORD_KIND, p->kind, 2);
    put(record + RECORD_SOUND, sound / LNT_PACK_ALIGN, 4);
    put(record + RECORD_SOUND_HASH, lnt_hash(file + sound, (size_t)rounded(bytes)), 8);
}

static void put_head(const packer *p, uint8_t *file, uint32_t rate, uint64_t front, uint64_t bytes)
{
    memcpy(file, lnt_pack_magic, sizeof lnt_pack_magic);
    put(file + HEAD_VERSION, LNT_PACK_VERSION, 4);
    put(file + HEAD_PROMPTS, p->n, 4);
    put(file + HEAD_RATE, rate, 4);
    put(file + HEAD_FRONT, front, 8);
    put(file + HEAD_BYTES, bytes, 8);
    put(file + HEAD_VOICE, lnt_voice_hash(p->voice), 8);
}

static lnt_status lay_out(const packer *p, void **image, size_t *bytes)
{
    lnt_voice_info info = {.struct_bytes = sizeof info};
    uint64_t front = LNT_PACK_HEAD + p->n * LNT_PACK_RECORD, sounds = 0;
    uint64_t at = front;
    for (size_t i = 0; i < p->n; i++) {
        front = rounded(front + block_bytes(&p->entry[i]));
        sounds += rounded(sound_bytes(p, &p->entry[i]));
    }
    front += LNT_PACK_ALIGN;
    LNT_REQUIRE((front + sounds) / LNT_PACK_ALIGN <= UINT32_MAX && front + sounds <= PTRDIFF_MAX, p->err,
                LNT_E_LIMIT, "the pack is too large");
    LNT_TRY(lnt_voice_get_info(p->voice, &info, p->err));
    *bytes = (size_t)(front + sounds);
    uint8_t *file = *image = lnt_alloc_zero(&lnt_malloc_allocator, 1, *bytes, p->err);
    if (!file)
        return LNT_E_MEMORY;
    put_head(p, file, info.rate, front, *bytes);
    uint64_t sound = front;
    for (size_t i = 0; i < p->n; i++) {
        put_entry(p, &p->entry[i], file, file + LNT_PACK_HEAD + i * LNT_PACK_RECORD, at, sound);
        at = rounded(at + block_bytes(&p->entry[i]));
        sound += rounded(sound_bytes(p, &p->entry[i]));
    }
    const size_t hashed = (size_t)front - LNT_PACK_HASH;
    put(file + hashed, lnt_hash(file, hashed), 8);
    return LNT_OK;
}

static lnt_status build(packer *p, lnt_prompt *prompt, size_t n, void **image, size_t *bytes)
{
    LNT_REQUIRE(n <= LNT_PACK_MOST, p->err, LNT_E_LIMIT, "a pack has at most %d prompts", LNT_PACK_MOST);
    p->entry = lnt_bump_alloc(&p->memory, n * sizeof *p->entry, p->err);
    if (!p->entry)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        LNT_TRY(add_prompt(p, &prompt[i]));
    LNT_TRY(sort(p));
    return lay_out(p, image, bytes);
}

lnt_status lnt_pack_build(lnt_voice *voice, lnt_prompt *prompt, size_t n, const lnt_say_options *how,
                          lnt_pack_kind kind, void **image, size_t *bytes, lnt_error *err)
{
    lnt_say_options texts;
    LNT_TRY(lnt_voice_take_options(voice, how, &texts, err));
    texts.form = LNT_VOICE_TEXT;
    packer p = {.voice = voice, .how = &texts, .kind = kind, .err = err};
    *image = NULL;
    lnt_bump_init(&p.memory, &lnt_malloc_allocator);
    const lnt_status status = build(&p, prompt, n, image, bytes);
    lnt_free(&lnt_malloc_allocator, p.pcm);
    lnt_bump_free(&p.memory);
    return status;
}

/* ---- lists of prompts ---- */

/* "name|text", without blanks around either; *found false: the line is blank or a comment. */
static lnt_status read_line(const char *line, size_t bytes, lnt_bump *memory, lnt_prompt *to, bool *found,
                            lnt_error *err)
{
    static const char blanks[] = " \t\r\n";
    while (bytes && strchr(blanks, *line))
        line++, bytes--;
    while (bytes && strchr(blanks, line[bytes - 1]))
        bytes--;
    *found = bytes && *line != '#';
    if (!*found)
        return LNT_OK;
    const char *bar = memchr(line, '|', bytes);
    LNT_REQUIRE(bar, err, LNT_E_VALUE, "a line is name|text, or a comment behind #");
    size_t name = (size_t)(bar - line), text = bytes - name - 1;
    for (bar++; text && strchr(blanks, *bar); text--)
        bar++;
    while (name && strchr(blanks, line[name - 1]))
        name--;
    to->name = lnt_bump_string(memory, line, name, err);
    to->text = lnt_bump_string(memory, bar, text, err);
    return to->name && to->text ? LNT_OK : LNT_E_MEMORY;
}

static size_t count_lines(const char *text)
{
    size_t n = 1;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        n++;
    return n;
}

lnt_status lnt_prompt_list_read(const char *name, const char *text, lnt_bump *memory, lnt_prompt **prompt,
                                size_t *n, lnt_error *err)
{
    const size_t lines = count_lines(text);
    size_t bytes;
    *n = 0;
    LNT_REQUIRE(lnt_mul_size(lines, sizeof **prompt, &bytes), err, LNT_E_LIMIT, "%s is too long", name);
    *prompt = lnt_bump_alloc(memory, bytes, err);
    if (!*prompt)
        return LNT_E_MEMORY;
    for (size_t k = 1; k <= lines; k++) {
        const size_t length = strcspn(text, "\n");
        bool found;
        const lnt_status status = read_line(text, length, memory, &(*prompt)[*n], &found, err);
        if (status != LNT_OK)
            lnt_error_prefix(err, "%s, line %zu: ", name, k);
        LNT_TRY(status);
        *n += found;
        text += length + (k < lines);
    }
    return LNT_OK;
}
