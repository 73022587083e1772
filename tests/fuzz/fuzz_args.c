/* fuzz_args.c — the command line: the first byte chooses a verb, lines are its words. Every verb parses them;
 * `info`, which writes no file, also runs, on a model of the tests'. */
#include "cli/verbs.h"
#include "runtime/thread_pool.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MAX_WORDS = 64, MAX_OPTIONS = 64, OPTION_BYTES = sizeof(lnt_texts) };

static const lnt_verb *const verbs[] = {
#define X(name) &lnt_verb_##name,
    LNT_VERB_LIST(X)
#undef X
};

/* In place of what the machine has free. */
uint64_t __wrap_lnt_available_memory(void);
uint64_t __wrap_lnt_available_memory(void)
{
    return (uint64_t)256 << 20;
}

/* A pool without workers, whatever --threads says. */
lnt_status __real_lnt_pool_make(const lnt_allocator *a, uint32_t threads, bool spin, lnt_pool **pool, lnt_error *err);
lnt_status __wrap_lnt_pool_make(const lnt_allocator *a, uint32_t threads, bool spin, lnt_pool **pool, lnt_error *err);
lnt_status __wrap_lnt_pool_make(const lnt_allocator *a, uint32_t threads, bool spin, lnt_pool **pool, lnt_error *err)
{
    return __real_lnt_pool_make(a, threads ? 1 : 0, spin, pool, err);
}

static size_t option_bytes(const lnt_option *o)
{
    switch (o->kind) {
    case LNT_OPTION_FLAG: return sizeof(bool);
    case LNT_OPTION_FLAG_FILE:
    case LNT_OPTION_TEXT: return sizeof(const char *);
    case LNT_OPTION_TEXTS:
    case LNT_OPTION_PAIRS: return sizeof(lnt_texts);
    case LNT_OPTION_COUNT: return sizeof(int64_t);
    case LNT_OPTION_NUMBER: return sizeof(double);
    case LNT_OPTION_CHOICE: return sizeof(int);
    }
    return 0;
}

/* Options are static: a verb's defaults are kept aside and put back, as a new process would have them. */
static void keep_options(const lnt_verb *verb, uint8_t (*kept)[OPTION_BYTES], bool restore)
{
    for (size_t i = 0; i < verb->n_options && i < MAX_OPTIONS; i++) {
        void *to = restore ? verb->options[i].to : kept[i];
        memcpy(to, restore ? kept[i] : verb->options[i].to, option_bytes(&verb->options[i]));
    }
}

/* Cuts text into words at newlines. */
static int split(char *text, char **word)
{
    int n = 0;
    for (char *end; n < MAX_WORDS && (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        word[n++] = text;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { MAX_TEXT = 4096 };
    static const char *model = "build/fuzz/model.lnt";
    static uint8_t kept[MAX_OPTIONS][OPTION_BYTES];
    char text[MAX_TEXT + 1], *word[MAX_WORDS];
    lnt_texts words = {0};
    int code = LNT_EXIT_OK;
    if (size < 1 || size > MAX_TEXT)
        return 0;
    fuzz_begin(10);
    const lnt_verb *verb = verbs[bytes[0] % (sizeof verbs / sizeof *verbs)];
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    keep_options(verb, kept, false);
    if (lnt_args_parse(verb, split(text, word), word, &words, &code) && verb == &lnt_verb_info) {
        words = (lnt_texts){.item = &model, .n = 1};
        code = verb->run(&words);
    }
    keep_options(verb, kept, true);
    lnt_cli_free();
    if (code < LNT_EXIT_OK || code > LNT_EXIT_RESOURCE)
        fuzz_fail("an exit code that is not documented");
    return 0;
}
