/* main.c — `linnet VERB …`: finds the verb, parses its options, runs it. */
#include "cli/verbs.h"

#include "base/cpu.h"
#include "cli/data/model.h"
#include "cli/shell/completion.h"
#include "cli/shell/manual.h"
#include "cli/shell/suggest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const lnt_verb *const verbs[] = {
#define X(name) &lnt_verb_##name,
    LNT_VERB_LIST(X)
#undef X
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };
static const lnt_cli program = {LNT_VERSION, "runs neural networks on CPUs, from one file", verbs, N_VERBS};

static void help(FILE *out)
{
    fprintf(out,
            "linnet %s - %s\n\n"
            "  linnet convert model.onnx -o model.lnt     once, on a workstation\n"
            "  linnet verify model.lnt                    does it compute what it should, here?\n"
            "  linnet bench model.lnt                     how fast?\n"
            "\n"
            "Verbs (linnet VERB --help tells more):\n",
            program.version, program.summary);
    for (size_t i = 0; i < N_VERBS; i++)
        fprintf(out, "  %-8s  %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(out, "\nExit codes:");
    for (int i = LNT_EXIT_OK; i <= LNT_EXIT_RESOURCE; i++)
        fprintf(out, " %d %s%s", i, lnt_exit_text(i), i < LNT_EXIT_RESOURCE ? "," : ".\n");
}

/* In a bundle the model may be left out: it is the program itself. */
static void take_own_model(const lnt_verb *verb, lnt_texts *words)
{
    static const char own[] = "/proc/self/exe";
    if (verb->takes_model && words->n == 0 && lnt_blob_is_bundle(own))
        lnt_texts_add(words, own);
}

/* Pages of a mapped file that is cut short, or of a disk that fails, cannot be had: the program ends. Nothing
 * is written from a mapped file, so no target is half done. */
static void on_lost_page(int number, siginfo_t *info, void *context)
{
    static const char text[] = "linnet: a file became shorter while it was mapped, or cannot be read\n";
    (void)number;
    (void)context;
    if (info->si_code != BUS_ADRERR)
        return; /* to the same instruction, and this time to the default action */
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(LNT_EXIT_RESOURCE);
    _exit(LNT_EXIT_FILE);
}

static void watch_mapped_files(void)
{
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(SIGBUS, &action, NULL);
}

/* code, unless what was printed did not arrive. */
static int finish(const lnt_verb *verb, int code)
{
    lnt_error err = {0};
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code != LNT_EXIT_OK)
        return code;
    lnt_fail(&err, LNT_E_IO, "cannot write the output: %s", strerror(errno));
    return lnt_failed(verb, &err);
}

static int run_verb(const lnt_verb *verb, int argc, char **argv)
{
    lnt_texts words = {0};
    int code;
    if (lnt_args_parse(verb, argc, argv, &words, &code)) {
        take_own_model(verb, &words);
        code = verb->run(&words);
    }
    code = finish(verb, code);
    lnt_cli_free();
    return code;
}

/* What goes behind a message that there is no level as LINNET_LEVEL has it. */
static const char *like_level(void)
{
    lnt_texts names = {0};
    for (int i = 0; i < LNT_LEVEL_COUNT; i++)
        lnt_texts_add(&names, lnt_level_text((lnt_level)i));
    return lnt_suggest(lnt_cpu_unknown_level(), &names);
}

static void no_verb(const char *name)
{
    lnt_texts names = {0};
    for (size_t i = 0; i < N_VERBS; i++)
        lnt_texts_add(&names, verbs[i]->name);
    fprintf(stderr, "linnet: no verb called '%s'%s (see: linnet --help)\n", name, lnt_suggest(name, &names));
}

static const lnt_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i]->name) == 0)
            return verbs[i];
    return NULL;
}

/* What packages install: `--man [VERB]`, `--completion SHELL`. */
static int tell(const char *option, const char *word)
{
    const lnt_verb *verb = word ? find_verb(word) : NULL;
    bool told = true;
    if (strcmp(option, "--completion") == 0) {
        told = word && lnt_print_completion(&program, word);
        if (!told)
            fprintf(stderr, "linnet: --completion bash, zsh or fish\n");
    } else if (word && !verb) {
        no_verb(word);
        told = false;
    } else {
        lnt_print_manual(&program, verb);
    }
    lnt_cli_free();
    return told ? LNT_EXIT_OK : LNT_EXIT_USAGE;
}

#ifdef LNT_SPEECH
/* Is the program called as Piper's is, by a link to it? */
static bool is_piper(const char *called)
{
    const char *slash = strrchr(called, '/');
    return strcmp(slash ? slash + 1 : called, "piper") == 0;
}
#endif

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    watch_mapped_files();
    if (lnt_cpu_unknown_level()) {
        fprintf(stderr, "linnet: LINNET_LEVEL: this build has no level %s%s\n", lnt_cpu_unknown_level(),
                like_level());
        lnt_cli_free();
        return LNT_EXIT_USAGE;
    }
#ifdef LNT_SPEECH
    if (argc && is_piper(argv[0])) {
        lnt_say_as_piper();
        return run_verb(&lnt_verb_say, argc - 1, argv + 1);
    }
#endif
    if (strcmp(name, "--version") == 0) {
        printf("linnet %s\n", lnt_version());
        return LNT_EXIT_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        help(stdout);
        return LNT_EXIT_OK;
    }
    if (strcmp(name, "--man") == 0 || strcmp(name, "--completion") == 0)
        return tell(name, argc > 2 ? argv[2] : NULL);
    const lnt_verb *verb = find_verb(name);
    if (verb)
        return run_verb(verb, argc - 2, argv + 2);
    if (*name)
        no_verb(name);
    else
        help(stderr);
    lnt_cli_free();
    return LNT_EXIT_USAGE;
}
