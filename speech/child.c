/* child.c — another program, with pipes to and from it. */
#include "speech/child.h"

#include "base/lnt_assert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Its standard input and output are ours, and nothing else of this process is; what it complains of nobody reads. */
static int spawn(const char *const *argv, const int in[2], const int out[2], bool reads, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    if (!failed && reads)
        failed = posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (!failed && !reads)
        failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void close_both(const int pair[2])
{
    for (unsigned i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

lnt_status lnt_child_start(const char *const *argv, bool reads, lnt_child *child, lnt_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    *child = (lnt_child){.to = -1, .from = -1, .name = argv[0]};
    /* A socket, not a pipe: what is sent to one raises no signal if the program has ended. */
    bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0;
    made = made && (!reads || pipe2(out, O_CLOEXEC) == 0);
    const int failed = made ? spawn(argv, in, out, reads, &child->pid) : errno;
    if (failed) {
        close_both(in);
        close_both(out);
        child->pid = 0;
        return lnt_fail(err, failed == ENOENT ? LNT_E_UNSUPPORTED : LNT_E_IO, "cannot start %s: %s", argv[0],
                        strerror(failed));
    }
    close(in[0]);
    if (reads)
        close(out[1]);
    child->to = in[1];
    child->from = out[0];
    return LNT_OK;
}

lnt_status lnt_child_write(const lnt_child *child, const void *bytes, size_t n, lnt_error *err)
{
    LNT_ASSERT(child->pid > 0);
    for (const uint8_t *from = bytes; n > 0;) {
        const ssize_t sent = send(child->to, from, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        LNT_REQUIRE(sent > 0, err, LNT_E_IO, "cannot write to %s: %s", child->name, strerror(errno));
        from += sent;
        n -= (size_t)sent;
    }
    return LNT_OK;
}

lnt_status lnt_child_read(const lnt_child *child, void *bytes, size_t size, int milliseconds, size_t *n,
                          lnt_error *err)
{
    struct pollfd ready = {.fd = child->from, .events = POLLIN};
    int found;
    do
        found = poll(&ready, 1, milliseconds);
    while (found < 0 && errno == EINTR);
    LNT_REQUIRE(found != 0, err, LNT_E_DEADLINE, "%s says nothing for %d s", child->name,
                milliseconds / 1000);
    ssize_t got;
    do
        got = read(child->from, bytes, size);
    while (got < 0 && errno == EINTR);
    LNT_REQUIRE(got >= 0, err, LNT_E_IO, "cannot read from %s: %s", child->name, strerror(errno));
    *n = (size_t)got;
    return LNT_OK;
}

static void close_ends(lnt_child *child)
{
    if (child->to >= 0)
        close(child->to);
    if (child->from >= 0)
        close(child->from);
    child->to = child->from = -1;
}

lnt_status lnt_child_finish(lnt_child *child, int *code, lnt_error *err)
{
    int status = 0;
    pid_t ended;
    LNT_ASSERT(child->pid > 0);
    close_ends(child);
    do
        ended = waitpid(child->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    child->pid = 0;
    LNT_REQUIRE(ended > 0, err, LNT_E_IO, "%s: %s", child->name, strerror(errno));
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return LNT_OK;
}

void lnt_child_stop(lnt_child *child)
{
    int code;
    if (child->pid <= 0)
        return;
    kill(child->pid, SIGKILL);
    (void)lnt_child_finish(child, &code, NULL);
}
