/* main.c — `linnet VERB …`: finds the verb, parses its options, runs it. */
#include "cli/verbs.h"

#include "formats/lnt_file.h"
#include "runtime/linnet.h"

#include <stdio.h>
#include <string.h>

static const lnt_verb *const verbs[] = {
#define X(name) &lnt_verb_##name,
    LNT_VERB_LIST(X)
#undef X
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void help(FILE *out)
{
    fprintf(out, "linnet " LNT_VERSION " - runs neural networks on CPUs, from one file\n"
                 "\n"
                 "  linnet convert model.onnx -o model.lnt     once, on a workstation\n"
                 "  linnet verify model.lnt                    does it compute what it should, here?\n"
                 "  linnet bench model.lnt                     how fast?\n"
                 "\n"
                 "Verbs (linnet VERB --help tells more):\n");
    for (size_t i = 0; i < N_VERBS; i++)
        fprintf(out, "  %-8s  %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(
        out,
        "\nExit codes: 0 fine, 1 mismatch, 2 usage, 3 bad file, 4 unsupported, 5 resource or deadline.\n");
}

/* In a bundle the model may be left out: it is the program itself. */
static void take_own_model(const lnt_verb *verb, lnt_texts *words)
{
    static const char own[] = "/proc/self/exe";
    if (verb->takes_model && words->n == 0 && lnt_blob_is_bundle(own))
        lnt_texts_add(words, own);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0) {
        printf("linnet %s\n", lnt_version());
        return LNT_EXIT_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        help(stdout);
        return LNT_EXIT_OK;
    }
    for (size_t i = 0; i < N_VERBS; i++) {
        lnt_texts words = {0};
        int code;
        if (strcmp(name, verbs[i]->name) != 0)
            continue;
        if (lnt_args_parse(verbs[i], argc - 2, argv + 2, &words, &code)) {
            take_own_model(verbs[i], &words);
            code = verbs[i]->run(&words);
        }
        lnt_cli_free();
        return code;
    }
    if (*name)
        fprintf(stderr, "linnet: no verb called '%s'\n\n", name);
    help(stderr);
    return LNT_EXIT_USAGE;
}
