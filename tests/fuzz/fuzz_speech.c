/* fuzz_speech.c — texts, JSON of voices, lexicons, packs and lists of prompts: the first byte says which. */
#include "base/utf8.h"
#include "formats/hash.h"
#include "speech/clauses.h"
#include "speech/letters.h"
#include "speech/lexicon.h"
#include "speech/normalize.h"
#include "speech/prompts/pack.h"
#include "speech/read_json.h"
#include "speech/prompts/slots.h"
#include "speech/voice_config.h"
#include "tests/fuzz/fuzz.h"

/* What is read is read again without its blanks. */
static void try_json(const char *text, size_t bytes)
{
    lnt_bump memory;
    lnt_voice_config config;
    const lnt_json_value *v;
    lnt_error err = {0};
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_json_read(text, bytes, &memory, &v, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK) {
        char *squeezed = lnt_bump_string(&memory, text, bytes, NULL);
        if (lnt_json_read(squeezed, lnt_json_squeeze(squeezed, bytes), &memory, &v, &err) != LNT_OK)
            fuzz_fail("JSON without blanks is none");
    }
    lnt_error_clear(&err);
    fuzz_judge(lnt_voice_config_read(text, bytes, &memory, &config, &err), &err);
    lnt_bump_free(&memory);
}

static void check_words(const char *words)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' .,:;?!";
    if (words[strspn(words, allowed)])
        fuzz_fail("a word has a character that none has");
    if (*words == ' ' || strstr(words, "  "))
        fuzz_fail("a blank too many");
}

/* Clauses lie behind each other, and what is between them is blank. */
static void check_clauses(const char *text, const lnt_clause *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!c[i].bytes || strspn(text, " \t\r\n\v\f") != (size_t)(c[i].text - text))
            fuzz_fail("a clause is not behind the one before it");
        text = c[i].text + c[i].bytes;
    }
    if (text[strspn(text, " \t\r\n\v\f")])
        fuzz_fail("text behind the last clause");
}

static void try_text(const char *text)
{
    lnt_bump memory;
    lnt_clause *clause;
    size_t n;
    const char *words;
    lnt_error err = {0};
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_normalize(text, &memory, &words, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK) {
        check_words(words);
        fuzz_judge(lnt_clauses_split(text, strlen(text), &memory, &clause, &n, &err), &err);
        check_clauses(text, clause, n);
    }
    lnt_bump_free(&memory);
}

/* ---- lexicons ---- */

/* Makes the hash at the end right. */
static void repair(uint8_t *file, size_t size)
{
    const uint64_t hash = size < 8 ? 0 : lnt_hash(file, size - 8);
    for (unsigned i = 0; size >= 8 && i < 8; i++)
        file[size - 8 + i] = (uint8_t)(hash >> 8 * i);
}

/* What a lexicon says of a text is names of symbols, with one blank between them. */
static void say(lnt_lexicon *l, const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPRSTUVWYZ012|.,?!:; ";
    const char *phonemes;
    lnt_error err = {0};
    const lnt_status status = lnt_lexicon_phonemes(l, text, &phonemes, &err);
    fuzz_judge(status, &err);
    if (status != LNT_OK)
        return;
    if (phonemes[strspn(phonemes, allowed)])
        fuzz_fail("a character that no phoneme has");
    if (*phonemes == ' ' || *phonemes == '|' || strstr(phonemes, "  ") || strstr(phonemes, "| |"))
        fuzz_fail("a blank or a word's end too many");
}

static void try_lexicon(uint8_t *file, size_t size)
{
    lnt_lexicon *l;
    lnt_error err = {0};
    repair(file, size);
    const lnt_status status = lnt_lexicon_create(file, size, &l, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK)
        say(l, "A colonel's boxes, the island; don't measure music: union of okay churches singing "
               "qwertyuiopasdfghjklzxcvbnm's liked battery [[K]] hello world about what we have");
    lnt_lexicon_destroy(&l);
}

/* By a lexicon without entries, for which every letter sounds like the first vowel. */
static void pronounce(const char *text)
{
    enum {
        ROOTS = 64,
        BUCKETS = ROOTS + 4 * 27,
        RANKS = BUCKETS + 8,
        CLASS = RANKS + 56,
        NODE = CLASS + 2,
        SIZE = NODE + 9
    };
    uint8_t file[SIZE] = {0x89, 'L', 'E', 'X', '\r', '\n', 0x1a, '\n', 1, [12] = 1, [24] = 1, [36] = 1};
    lnt_lexicon *l;
    lnt_error err = {0};
    file[CLASS] = 1;
    file[NODE] = 128;
    repair(file, SIZE);
    if (lnt_lexicon_create(file, SIZE, &l, &err) != LNT_OK)
        fuzz_fail(err.message);
    say(l, text);
    lnt_lexicon_destroy(&l);
}

/* ---- prompts ---- */

static int hear(void *user, const int16_t *pcm, size_t n)
{
    int16_t *loudest = user;
    for (size_t i = 0; i < n; i++)
        *loudest = pcm[i] > *loudest ? pcm[i] : *loudest;
    return 0;
}

/* Every prompt is found by its name, and its sound is none or all there. */
static void try_prompts(const lnt_prompts *p)
{
    for (uint32_t k = 0; k < lnt_prompts_count(p); k++) {
        lnt_prompt_info info = {.struct_bytes = sizeof info};
        uint32_t found;
        int16_t loudest = 0;
        lnt_error err = {0};
        if (lnt_prompts_info(p, k, &info, &err) != LNT_OK ||
            lnt_prompts_find(p, info.name, &found, &err) != LNT_OK || found != k)
            fuzz_fail("a prompt is not found");
        fuzz_judge(lnt_prompts_sound(p, k, hear, &loudest, &err), &err);
    }
}

/* A pack whose bytes before the sounds have the right hash. */
static void try_pack(uint8_t *file, size_t size)
{
    uint64_t front = 0;
    lnt_prompts *p;
    lnt_error err = {0};
    for (unsigned i = 8; size >= LNT_PACK_HEAD && i-- > 0;)
        front = front << 8 | file[HEAD_FRONT + i];
    if (front <= size)
        repair(file, (size_t)front);
    const lnt_status status = lnt_prompts_create(file, size, &p, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK)
        try_prompts(p);
    lnt_prompts_destroy(&p);
}

/* A list of prompts, each with a value for slot a. */
static void try_list(const char *text)
{
    lnt_bump memory;
    lnt_prompt *prompt;
    size_t n, n_slots;
    lnt_error err = {0};
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    const lnt_status status = lnt_prompt_list_read("list", text, &memory, &prompt, &n, &err);
    fuzz_judge(status, &err);
    for (size_t i = 0; status == LNT_OK && i < n; i++) {
        const lnt_slot_value value = {"a", "14:30"};
        const char *filled;
        err = (lnt_error){0};
        fuzz_judge(lnt_slots_check(prompt[i].text, &n_slots, &err), &err);
        err = (lnt_error){0};
        fuzz_judge(lnt_slots_fill(prompt[i].text, &value, n_slots > 0, &memory, &filled, &err), &err);
    }
    lnt_bump_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!size)
        return 0;
    fuzz_begin(10);
    char *text = malloc(size);
    if (!text)
        fuzz_fail("out of memory");
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    if (bytes[0] == '{') {
        try_json(text, size - 1);
    } else if (bytes[0] == 'L') {
        try_lexicon((uint8_t *)text, size - 1);
    } else if (bytes[0] == 'P') {
        try_pack((uint8_t *)text, size - 1);
    } else if (bytes[0] == '|') {
        try_list(text);
    } else {
        try_text(text);
        pronounce(text);
    }
    free(text);
    return 0;
}
