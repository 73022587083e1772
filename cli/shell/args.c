/* args.c — the option parser all verbs share. */
#include "cli/shell/args.h"

#include "base/memory.h"
#include "cli/shell/suggest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const lnt_option lnt_help_option = {"--help", NULL, LNT_OPTION_FLAG, NULL, "this text"};

const char *lnt_exit_text(int code)
{
    static const char *const texts[] = {
        [LNT_EXIT_OK] = "fine",
        [LNT_EXIT_MISMATCH] = "mismatch",
        [LNT_EXIT_USAGE] = "usage",
        [LNT_EXIT_FILE] = "bad file",
        [LNT_EXIT_UNSUPPORTED] = "unsupported",
        [LNT_EXIT_RESOURCE] = "resource or deadline",
    };
    return texts[code];
}

static lnt_bump memory = {.allocator = &lnt_malloc_allocator};

void *lnt_cli_alloc(size_t bytes)
{
    void *p = lnt_bump_alloc(&memory, bytes, NULL);
    if (!p) {
        fputs("linnet: out of memory\n", stderr);
        exit(LNT_EXIT_RESOURCE);
    }
    return p;
}

void *lnt_cli_grow(void *array, size_t n, size_t *capacity, size_t element)
{
    if (n < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 16;
    void *grown = lnt_cli_alloc(*capacity * element);
    return n ? memcpy(grown, array, n * element) : grown;
}

void lnt_cli_free(void)
{
    lnt_bump_free(&memory);
}

char *lnt_cli_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = lnt_cli_alloc((size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void lnt_texts_add(lnt_texts *list, const char *text)
{
    list->item = lnt_cli_grow(list->item, list->n, &list->capacity, sizeof *list->item);
    list->item[list->n++] = text;
}

bool lnt_split_pair(const char *text, bool last, const char **name, const char **rest)
{
    const char *at = last ? strrchr(text, '=') : strchr(text, '=');
    if (!at || at == text)
        return false;
    *name = lnt_cli_text("%.*s", (int)(at - text), text);
    *rest = at + 1;
    return true;
}

/* A whole number from 0 to INT64_MAX, and nothing else. */
static bool read_count(const char *text, int base, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, base);
    return *text && !*end && *value >= 0 && errno == 0;
}

bool lnt_split_count(const char *text, const char **name, int64_t *value)
{
    const char *rest;
    return lnt_split_pair(text, true, name, &rest) && read_count(rest, 10, value);
}

int lnt_usage_error(const lnt_verb *verb, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "linnet %s: ", verb->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (see: linnet %s --help)\n", verb->name);
    return LNT_EXIT_USAGE;
}

/* Prints each line of text indented. */
static void print_indented(const char *text)
{
    while (*text) {
        const size_t length = strcspn(text, "\n");
        printf("  %.*s\n", (int)length, text);
        text += length + (text[length] != '\0');
    }
}

/* Prints an option, and its text from a column on; names too long for that have a line of their own. */
static void print_option(const lnt_option *o, int column)
{
    const int used = printf("  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    if (used > column - 2)
        putchar('\n');
    int pad = used > column - 2 ? column : column - used;
    for (const char *line = o->help;; pad = column) {
        const size_t length = strcspn(line, "\n");
        printf("%*s%.*s\n", pad, "", (int)length, line);
        if (!line[length])
            return;
        line += length + 1;
    }
}

/* Where the options' texts begin: behind all names but the longest. */
static int column_of(const lnt_verb *verb)
{
    enum { NAME_MOST = 32 };
    int width = (int)strlen(lnt_help_option.name);
    for (size_t i = 0; i < verb->n_options; i++) {
        const lnt_option *o = &verb->options[i];
        const int w = (int)(strlen(o->name) + (o->value ? 1 + strlen(o->value) : 0));
        width = w > width && w <= NAME_MOST ? w : width;
    }
    return width + 4;
}

void lnt_verb_help(const lnt_verb *verb)
{
    const int column = column_of(verb);
    printf("linnet %s %s\n\n", verb->name, verb->usage);
    print_indented(verb->text);
    printf("\nOptions:\n");
    for (size_t i = 0; i < verb->n_options; i++)
        print_option(&verb->options[i], column);
    print_option(&lnt_help_option, column);
    printf("\nExamples:\n");
    print_indented(verb->examples);
}

static bool parse_choice(const char *words, const char *given, int *to)
{
    const size_t length = strlen(given);
    for (int i = 0; *words; i++) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, given, n) == 0) {
            *to = i;
            return true;
        }
        words += n + (words[n] == '|');
    }
    return false;
}

static bool store(const lnt_option *o, const char *value)
{
    char *end = NULL;
    switch (o->kind) {
    case LNT_OPTION_FLAG: *(bool *)o->to = true; return true;
    case LNT_OPTION_FLAG_FILE:
    case LNT_OPTION_TEXT: *(const char **)o->to = value; return true;
    case LNT_OPTION_TEXTS:
    case LNT_OPTION_PAIRS: lnt_texts_add(o->to, value); return true;
    case LNT_OPTION_COUNT: return read_count(value, 0, o->to);
    case LNT_OPTION_NUMBER:
        *(double *)o->to = strtod(value, &end);
        return *value && !*end && *(double *)o->to >= 0;
    case LNT_OPTION_CHOICE: return parse_choice(o->value, value, o->to);
    }
    return false;
}

static bool same_name(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (a[i] != b[i] && !(i > 1 && strchr("-_", a[i]) && strchr("-_", b[i])))
            return false;
    return true;
}

/* Is word[0..length) one of the option's names? */
static bool is_called(const lnt_option *o, const char *word, size_t length)
{
    for (const char *name = o->name; *name; name += strspn(name, ", ")) {
        const size_t n = strcspn(name, ",");
        if (n == length && same_name(name, word, n))
            return true;
        name += n;
    }
    return false;
}

/* The option called by word, which may be "--name=value": then *value points behind the '='. */
static const lnt_option *find(const lnt_verb *verb, const char *word, const char **value)
{
    const char *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    *value = equals ? equals + 1 : NULL;
    for (size_t i = 0; i < verb->n_options; i++)
        if (is_called(&verb->options[i], word, length))
            return &verb->options[i];
    return NULL;
}

static int unknown_option(const lnt_verb *verb, const char *word)
{
    lnt_texts names = {0};
    for (size_t i = 0; i < verb->n_options; i++)
        lnt_texts_add(&names, verb->options[i].name);
    const char *name = lnt_cli_text("%.*s", (int)strcspn(word, "="), word);
    return lnt_usage_error(verb, "unknown option %s%s", name, lnt_suggest_nearest(name, &names));
}

/* May word be what an LNT_OPTION_FLAG_FILE names? */
static bool is_its_file(const lnt_option *o, const char *word)
{
    const char *ending = strrchr(o->value, '.');
    const size_t length = strlen(ending) - 1; /* without the bracket */
    const size_t n = strlen(word);
    return word[0] != '-' && n > length && memcmp(word + n - length, ending, length) == 0;
}

/* What follows the option at argv[*i], which *value points to if it has it already; NULL: nothing has to. False: it
 * may have none, or lacks one. */
static bool take_value(const lnt_option *o, int argc, char **argv, int *i, const char **value)
{
    if (o->kind == LNT_OPTION_FLAG)
        return !*value;
    if (o->kind == LNT_OPTION_FLAG_FILE && !*value) {
        *value = *i + 1 < argc && is_its_file(o, argv[*i + 1]) ? argv[++*i] : "";
        return true;
    }
    if (!*value)
        *value = ++*i < argc ? argv[*i] : NULL;
    return *value;
}

bool lnt_args_parse(const lnt_verb *verb, int argc, char **argv, lnt_texts *words, int *exit_code)
{
    bool options = true;
    *exit_code = LNT_EXIT_OK;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *value;
        if (!options || word[0] != '-' || !word[1]) {
            lnt_texts_add(words, word);
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options = false;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            lnt_verb_help(verb);
            return false;
        }
        const lnt_option *o = find(verb, word, &value);
        if (!o) {
            *exit_code = unknown_option(verb, word);
            return false;
        }
        if (!take_value(o, argc, argv, &i, &value)) {
            *exit_code = lnt_usage_error(verb, value ? "%s takes no value" : "%s needs a value", o->name);
            return false;
        }
        if (o->kind == LNT_OPTION_PAIRS && i + 1 == argc) {
            *exit_code = lnt_usage_error(verb, "%s needs two values", o->name);
            return false;
        }
        if (o->kind == LNT_OPTION_PAIRS) {
            store(o, value);
            value = argv[++i];
        }
        if (!store(o, value)) {
            *exit_code = lnt_usage_error(verb, "%s %s, not '%s'", o->name, o->value, value);
            return false;
        }
    }
    return true;
}
