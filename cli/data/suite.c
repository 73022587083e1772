/* suite.c — verifying a whole tree of case folders.
 *
 * Each case runs in a forked child that writes its exit code and a reason into a pipe. A child that crashes,
 * or is silent for a minute, has failed; the suite goes on. Lines are printed in the order of the names,
 * whatever the order in which children end. */
#include "cli/data/suite.h"

#include "cli/data/folder.h"
#include "cli/shell/pipe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BUSY_SECONDS = 60,     /* of its own that a case may compute: the machine may have other work */
    SILENCE_SECONDS = 600, /* that may pass until it answers */
    REASON_BYTES = 480
};

/* What a child sends: one write, smaller than PIPE_BUF. */
typedef struct message {
    int code;
    char reason[REASON_BYTES];
} message;

typedef struct suite_case {
    const char *name, *folder;
    pid_t pid; /* of the child while it runs, else 0 */
    int pipe;
    double deadline;
    bool done;
    message result;
} suite_case;

typedef struct suite {
    const lnt_verify_options *verify;
    suite_case *item;
    size_t n, started, printed;
    unsigned running, passed, failed, skipped;
} suite;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the case folders below folder to list, in the order of their names. */
static lnt_status collect(const char *folder, lnt_texts *list, lnt_error *err)
{
    lnt_texts names = {0};
    bool has_model = false, has_data = false;
    LNT_TRY(lnt_folder_names(folder, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        has_model |= strcmp(names.item[i], "model.onnx") == 0;
        has_data |= lnt_is_case_folder(names.item[i]);
    }
    if (has_model && has_data)
        lnt_texts_add(list, folder);
    for (size_t i = 0; i < names.n && !has_model; i++)
        LNT_TRY(collect(lnt_cli_text("%s/%s", folder, names.item[i]), list, err));
    return LNT_OK;
}

/* The lines of a names file without blanks around them; '#' begins a comment. */
static lnt_status read_names(const char *path, lnt_texts *names, lnt_error *err)
{
    char *text, *rest = NULL, word[512];
    LNT_TRY(lnt_read_text(path, &text, err));
    for (const char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, " %511[^# \t\r]", word) == 1)
            lnt_texts_add(names, lnt_cli_text("%s", word));
    if (names->n)
        qsort(names->item, names->n, sizeof *names->item, by_text);
    return LNT_OK;
}

static bool wanted(const lnt_texts *names, const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    return bsearch(&name, names->item, names->n, sizeof *names->item, by_text) ||
           bsearch(&last, names->item, names->n, sizeof *names->item, by_text);
}

/* The child: verifies one case. */
static message verify_folder(const lnt_verify_options *verify, const char *folder)
{
    message m = {.code = LNT_EXIT_FILE};
    lnt_error err = {0};
    lnt_texts folders = {0};
    lnt_cases cases = {0};
    lnt_verdict verdict = LNT_VERDICT_PASS;
    char reason[256] = "";

    lnt_status status = lnt_case_folders(folder, &folders, &err);
    if (status == LNT_OK)
        status = lnt_cases_read(&folders, &cases, &err);
    if (status == LNT_E_IO || status == LNT_E_MEMORY) {
        m.code = LNT_EXIT_MISMATCH;
        snprintf(m.reason, sizeof m.reason, "%.470s", err.message);
        return m;
    }
    /* Strings, sequences and optionals in the data: the conversion tells what is not supported. */
    const bool readable = status == LNT_OK;
    lnt_verify_options plain = *verify;
    plain.bake = LNT_BAKE_NONE;
    lnt_error_clear(&err);
    status = lnt_verify_onnx(readable ? verify : &plain, lnt_cli_text("%s/model.onnx", folder),
                             readable ? &cases : &(lnt_cases){0}, &verdict, reason, &err);
    if (status == LNT_OK && !readable)
        status = lnt_fail(&err, LNT_E_UNSUPPORTED, "case data cannot be read");
    if (status == LNT_OK) {
        m.code = verdict == LNT_VERDICT_PASS ? LNT_EXIT_OK : LNT_EXIT_MISMATCH;
        snprintf(m.reason, sizeof m.reason, "%s", reason);
    } else {
        m.code = status == LNT_E_UNSUPPORTED ? LNT_EXIT_UNSUPPORTED : LNT_EXIT_MISMATCH;
        snprintf(m.reason, sizeof m.reason, "%.470s", err.message);
    }
    return m;
}

static void start(suite *s, suite_case *c)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0 || (c->pid = fork()) < 0) {
        c->pid = 0;
        c->done = true;
        c->result = (message){.code = LNT_EXIT_RESOURCE, .reason = "cannot start a process"};
        return;
    }
    if (c->pid == 0) {
        close(ends[0]);
        const message m = verify_folder(s->verify, c->folder);
        _exit(lnt_wire_write(ends[1], &m, sizeof m) ? 0 : 1);
    }
    close(ends[1]);
    c->pipe = ends[0];
    c->deadline = lnt_now() + SILENCE_SECONDS;
    s->running++;
}

/* Seconds that the process has computed. */
static double computed(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool too_long(const suite_case *c)
{
    return lnt_now() > c->deadline || computed(c->pid) > BUSY_SECONDS;
}

/* The child has written, ended or been silent for too long. */
static void finish(suite *s, suite_case *c, bool silent)
{
    int how;
    const bool answered = !silent && lnt_wire_read(c->pipe, &c->result, sizeof c->result);
    if (silent)
        kill(c->pid, SIGKILL);
    waitpid(c->pid, &how, 0);
    close(c->pipe);
    if (!answered) {
        c->result = (message){.code = LNT_EXIT_MISMATCH};
        if (silent)
            snprintf(c->result.reason, REASON_BYTES, "no answer in %d s, or %d of its own", SILENCE_SECONDS,
                     BUSY_SECONDS);
        else if (WIFSIGNALED(how))
            snprintf(c->result.reason, REASON_BYTES, "crashed: %s", strsignal(WTERMSIG(how)));
        else
            snprintf(c->result.reason, REASON_BYTES, "ended with %d", WEXITSTATUS(how));
    }
    c->pid = 0;
    c->done = true;
    s->running--;
}

static void wait_for_some(suite *s)
{
    struct pollfd fds[64];
    suite_case *of[64];
    nfds_t n = 0;
    for (size_t i = s->printed; i < s->started; i++)
        if (s->item[i].pid) {
            of[n] = &s->item[i];
            fds[n++] = (struct pollfd){.fd = s->item[i].pipe, .events = POLLIN};
        }
    if (poll(fds, n, 1000) < 0 && errno != EINTR)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents || too_long(of[i]))
            finish(s, of[i], !fds[i].revents);
}

static void print_line(suite *s, const suite_case *c)
{
    const char *word = "fail";
    if (c->result.code == LNT_EXIT_OK) {
        word = "pass";
        s->passed++;
    } else if (c->result.code == LNT_EXIT_UNSUPPORTED) {
        word = "unsupported";
        s->skipped++;
    } else {
        s->failed++;
    }
    printf("%s %s%s%s\n", word, c->name, c->result.reason[0] ? " " : "", c->result.reason);
}

int lnt_suite_run(const lnt_verb *verb, const lnt_verify_options *verify, const char *dir,
                  const char *names_file, unsigned jobs)
{
    suite s = {.verify = verify};
    lnt_texts folders = {0}, names = {0};
    lnt_error err = {0};
    if (names_file && read_names(names_file, &names, &err) != LNT_OK)
        return lnt_failed(verb, &err);
    if (collect(dir, &folders, &err) != LNT_OK)
        return lnt_failed(verb, &err);
    s.item = lnt_cli_alloc(folders.n * sizeof *s.item);
    for (size_t i = 0; i < folders.n; i++) {
        const char *below = folders.item[i] + strlen(dir);
        below += strspn(below, "/");
        if (!names_file || wanted(&names, below))
            s.item[s.n++] = (suite_case){.name = *below ? below : dir, .folder = folders.item[i]};
    }
    if (!s.n)
        return lnt_usage_error(verb, "no case folder (model.onnx and test_data_set_*) below %s", dir);

    const bool progress = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
    jobs = jobs < 1 ? 1 : jobs > 64 ? 64 : jobs;
    while (s.printed < s.n) {
        while (s.running < jobs && s.started < s.n)
            start(&s, &s.item[s.started++]);
        if (s.running)
            wait_for_some(&s);
        for (; s.printed < s.started && s.item[s.printed].done; s.printed++)
            print_line(&s, &s.item[s.printed]);
        if (progress)
            fprintf(stderr, "\r%zu of %zu", s.printed, s.n);
    }
    if (progress)
        fputs("\r\x1b[K", stderr);
    printf("%u passed, %u failed, %u skipped\n", s.passed, s.failed, s.skipped);
    return s.failed ? LNT_EXIT_MISMATCH : s.skipped ? LNT_EXIT_UNSUPPORTED : LNT_EXIT_OK;
}
