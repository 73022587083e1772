/* left_out.c — what the program cannot do on Windows: it would take processes that share pipes. */
#include "cli/data/suite.h"
#include "cli/measure/duel.h"
#include "cli/measure/ort.h"
#include "cli/measure/worker.h"

static lnt_status not_here(const char *what, lnt_error *err)
{
    return lnt_fail(err, LNT_E_UNSUPPORTED, "%s is not in the program for Windows: use Linux, or WSL", what);
}

lnt_status lnt_paired_run(const lnt_paired_options *options, const lnt_named *in, size_t n_in, lnt_paired *paired,
                          lnt_error *err)
{
    (void)options, (void)in, (void)n_in, (void)paired;
    return not_here("bench --vs", err);
}

const char *lnt_ort_find(const char *given)
{
    return given;
}

bool lnt_ort_saturates(void)
{
    return false;
}

int lnt_worker(const lnt_worker_options *options)
{
    (void)options;
    return LNT_EXIT_RESOURCE;
}

int lnt_suite_run(const lnt_verb *verb, const lnt_verify_options *verify, const char *dir, const char *names,
                  unsigned jobs)
{
    (void)verify, (void)dir, (void)names, (void)jobs;
    lnt_error err = {0};
    not_here("verify --suite", &err);
    return lnt_failed(verb, &err);
}
