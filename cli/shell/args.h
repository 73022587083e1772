/* args.h — the option parser all verbs share: a verb declares its options, the parser fills them in and
 * writes the help. */
#ifndef LNT_CLI_SHELL_ARGS_H
#define LNT_CLI_SHELL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of the program. */
enum {
    LNT_EXIT_OK = 0,
    LNT_EXIT_MISMATCH = 1,
    LNT_EXIT_USAGE = 2,
    LNT_EXIT_FILE = 3,
    LNT_EXIT_UNSUPPORTED = 4,
    LNT_EXIT_RESOURCE = 5
};
const char *lnt_exit_text(int code);

typedef struct lnt_texts { /* an option that may be given again and again, or the words that are no options */
    const char **item;
    size_t n, capacity;
} lnt_texts;

typedef enum lnt_option_kind {
    LNT_OPTION_FLAG, /* bool */
    LNT_OPTION_FLAG_FILE, /* const char *: NULL, "" where no file is named, or its name: --trace=FILE, or a next word
                           * that ends as value, "[FILE.json]", does */
    LNT_OPTION_TEXT,   /* const char * */
    LNT_OPTION_TEXTS,  /* lnt_texts */
    LNT_OPTION_PAIRS,  /* lnt_texts: two words each time */
    LNT_OPTION_COUNT,  /* int64_t, >= 0 */
    LNT_OPTION_NUMBER, /* double, >= 0 */
    LNT_OPTION_CHOICE  /* int: position in value, "none|basic|all" */
} lnt_option_kind;

typedef struct lnt_option {
    const char *name; /* "--opt", or several: "-o, --opt"; within them '_' is as good as '-' */
    const char
        *value; /* what follows it in the help; the words of a choice. Shells offer by it (completion.c) */
    lnt_option_kind kind;
    void *to;
    const char *help;
} lnt_option;

extern const lnt_option lnt_help_option; /* that every verb has besides its own */

typedef struct lnt_verb {
    const char *name;
    const char *summary;  /* one line, in the list of verbs */
    const char *usage;    /* words behind the verb's name */
    const char *text;     /* what it does, for people who have not used it before */
    const char *examples; /* one a line */
    const lnt_option *options;
    size_t n_options;
    bool takes_model; /* its first word is a model; in a bundle, none means the program's own */
    int (*run)(const lnt_texts *words); /* options filled in; returns the exit code */
} lnt_verb;

/* Parses argv[0..argc), the words behind the verb. True: go on with *words. False: *exit_code says how to end
 * (help was printed, or what was wrong). */
bool lnt_args_parse(const lnt_verb *verb, int argc, char **argv, lnt_texts *words, int *exit_code);
void lnt_verb_help(const lnt_verb *verb);

/* "linnet VERB: message" and where to read on, to stderr; returns LNT_EXIT_USAGE. */
int lnt_usage_error(const lnt_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Zeroed memory for what the command line itself needs, valid until main ends; ends the program when memory
 * is out. */
void *lnt_cli_alloc(size_t bytes);
/* array, which has room for *capacity elements, with room for one more after n. */
void *lnt_cli_grow(void *array, size_t n, size_t *capacity, size_t element);
/* Gives back all of it. */
void lnt_cli_free(void);
/* A formatted copy in such memory. */
char *lnt_cli_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lnt_texts_add(lnt_texts *list, const char *text);
/* Splits "NAME=REST" at the last or first '='; false if there is none or NAME is empty. */
bool lnt_split_pair(const char *text, bool last, const char **name, const char **rest);
/* "NAME=N" with N >= 0; NAME may hold '='. */
bool lnt_split_count(const char *text, const char **name, int64_t *value);

#endif
