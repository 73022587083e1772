/* fuzz_speech.c — texts, and JSON of voices: the first byte says which. */
#include "base/utf8.h"
#include "speech/clauses.h"
#include "speech/letters.h"
#include "speech/normalize.h"
#include "speech/read_json.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!size)
        return 0;
    char *text = malloc(size);
    if (!text)
        fuzz_fail("out of memory");
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    if (bytes[0] == '{')
        try_json(text, size - 1);
    else
        try_text(text);
    free(text);
    return 0;
}
